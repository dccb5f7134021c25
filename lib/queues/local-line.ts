import type { KeptOut } from "../taking/watch.js";

/** A call that waits for a lock. */
export interface Caller {
  /** Aborts when it has its lock, or waits no longer. */
  readonly enough: AbortSignal;
  readonly waitedMs: number;
  /** Keeps the process alive, until the returned function is called. */
  stay(): () => void;
}

/** What a caller does with a lease that a section before it has left. */
export interface Taker<Lease extends object> {
  /** Whether it can go on with the lease as it is. */
  readonly fits: (lease: Lease) => boolean;
  /** Begins its section on the lease. @returns false if it waits no longer, or the lease was lost. */
  readonly take: (lease: Lease) => boolean;
}

/** A caller that stands in line. */
export interface Waiter<Lease extends object> extends Taker<Lease> {
  /** Its number: callers are numbered in the order of asking. */
  readonly number: number;
  readonly who: Caller;
}

/** A waiter behind the one that leads. */
interface Standing<Lease extends object> extends Waiter<Lease> {
  /** It leads from now on. */
  readonly lead: () => void;
}

/**
 * The callers of one process for one lock, first come, first served. The first of them leads: it takes a row from the table,
 * for itself. The others wait behind it without a request. A lease whose section has ended goes to the first who can go on
 * with it, the one that leads included. While as many leases are out as the lock has rows, nobody leads.
 */
export class LocalLine<Lease extends object> {
  /** Since when others have kept those who lead from the row; undefined where they have not. */
  keptOut: KeptOut | undefined;
  /** How many leases its callers may have at once. */
  capacity: number;
  /** In the order of their numbers. */
  readonly #waiters: Standing<Lease>[] = [];
  readonly #leases = new Set<Lease>();
  #leader: Waiter<Lease> | undefined;
  /** How many ask beside the line. */
  #beside = 0;
  #lastNumber = 0;

  constructor(capacity: number) {
    this.capacity = capacity;
  }

  /** The leases that its callers have, the latest last. */
  get leases(): ReadonlySet<Lease> {
    return this.#leases;
  }

  /** The number of the caller that asked last; 0 where none has. */
  get lastNumber(): number {
    return this.#lastNumber;
  }

  /** The caller that leads. */
  get leader(): Waiter<Lease> | undefined {
    return this.#leader;
  }

  get isLed(): boolean {
    return this.#leader !== undefined;
  }

  /** Whether as many leases are out as there may be, or are asked for. */
  get isFull(): boolean {
    return this.#leases.size + this.#beside >= this.capacity;
  }

  get isEmpty(): boolean {
    return this.#leader === undefined && this.#leases.size + this.#waiters.length + this.#beside === 0;
  }

  /** Whether somebody else than this caller waits. */
  isAwaited(who: Caller): boolean {
    return this.#waiters.length > 0 || (this.#leader !== undefined && this.#leader.who !== who);
  }

  /** The number of the first that has no lock yet, the one that leads included. */
  get first(): number | undefined {
    return this.#first?.number;
  }

  /** The first behind the one that leads whose number is greater than this. */
  firstAfter(number: number): Waiter<Lease> | undefined {
    return this.#waiters[this.#indexAfter(number)];
  }

  /** How many of those behind the one that leads have a number greater than this. */
  countAfter(number: number): number {
    return this.#waiters.length - this.#indexAfter(number);
  }

  /** Becomes the leader, if there is none and nobody waits. */
  tryLead(who: Caller, taker: Taker<Lease>): boolean {
    if (this.#first !== undefined || this.isFull) return false;
    this.#leader = { ...taker, number: ++this.#lastNumber, who };
    return true;
  }

  /** Waits until it leads, and keeps the process alive meanwhile. @throws the reason of `enough`, also where it is served. */
  async waitToLead(who: Caller, taker: Taker<Lease>): Promise<void> {
    const { enough } = who;
    // A caller that claimed without standing in line may have been answered meanwhile. Its abort event has already fired,
    // so the listener below would never run.
    enough.throwIfAborted();
    if (this.tryLead(who, taker)) return;
    await new Promise<void>((resolve, reject) => {
      const mayExit = who.stay();
      const giveUp = (): void => {
        mayExit();
        this.#remove(waiter);
        reject(enough.reason);
      };
      const lead = (): void => {
        mayExit();
        enough.removeEventListener("abort", giveUp);
        resolve();
      };
      const waiter: Standing<Lease> = { ...taker, number: ++this.#lastNumber, who, lead };
      enough.addEventListener("abort", giveUp, { once: true });
      this.#waiters.push(waiter);
    });
  }

  /** A caller asks for a lease beside the line, because nobody has to wait. */
  enter(): void {
    this.#beside += 1;
  }

  /** It has its lease, or waits no longer. */
  exit(): void {
    this.#beside -= 1;
    this.#advance();
  }

  /** The caller did not get its lease. It becomes the leader, ahead of callers that came meanwhile, if there is none. */
  exitToLead(who: Caller, taker: Taker<Lease>): boolean {
    this.#beside -= 1;
    if (this.#leader !== undefined || this.isFull) return false;
    this.#leader = { ...taker, number: ++this.#lastNumber, who };
    return true;
  }

  /** A caller has taken a lease from the table. If it leads, the next does from here on. */
  settle(who: Caller, lease: Lease): void {
    this.#leases.add(lease);
    this.keptOut = undefined;
    if (this.#leader?.who === who) this.#leader = undefined;
    this.#advance();
  }

  /** Whether the first who waits could go on with this lease. */
  canPass(lease: Lease): boolean {
    return this.#leases.has(lease) && (this.#first?.fits(lease) ?? false);
  }

  /**
   * Passes the lease to the first who waits. @returns whether a section has begun on it.
   * @param isTurn asked before each: where the first waits no longer, it may not be the turn of the one behind it.
   */
  pass(lease: Lease, isTurn: () => boolean = () => true): boolean {
    while (isTurn() && this.canPass(lease)) {
      const first = this.#first as Waiter<Lease>;
      const leads = first === this.#leader;
      if (leads) this.#leader = undefined;
      const isTaken = first.take(lease);
      if (!isTaken && !first.who.enough.aborted) {
        // The lease has just ended: the first goes on waiting.
        if (leads) this.#leader = first;
        return false;
      }
      this.#remove(first);
      this.#advance();
      if (isTaken) return true;
    }
    return false;
  }

  /** A caller that leads waits no longer, or a lease is not there any more. Does nothing for others. */
  leave(who: object): void {
    if (this.#leader?.who === who) this.#leader = undefined;
    this.#leases.delete(who as Lease);
    this.#advance();
  }

  #advance(): void {
    if (this.#leader !== undefined || this.isFull) return;
    const next = this.#waiters.shift();
    this.#leader = next;
    next?.lead();
  }

  /** Does nothing for one that is not behind the one that leads. */
  #remove({ number }: Waiter<Lease>): void {
    const index = this.#indexAfter(number - 1);
    if (this.#waiters[index]?.number === number) this.#waiters.splice(index, 1);
  }

  /** Where those with a greater number begin. */
  #indexAfter(number: number): number {
    let [low, high] = [0, this.#waiters.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#waiters[middle] as Waiter<Lease>).number > number) high = middle;
      else low = middle + 1;
    }
    return low;
  }

  get #first(): Waiter<Lease> | undefined {
    return this.#leader ?? this.#waiters[0];
  }
}
