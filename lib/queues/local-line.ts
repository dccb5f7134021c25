import type { Wait } from "../taking/wait.js";
import type { Blocked } from "../taking/watch.js";

/** A call that waits for a lock, and what it does with a lease that a section before it has left. */
export interface Caller<Lease extends object> {
  readonly wait: Pick<Wait, "enough" | "holder" | "stay" | "waitedMs">;
  /** Whether it can go on with the lease as it is. */
  fits(lease: Lease): boolean;
  /** Begins its section on the lease. @returns false if it waits no longer, or the lease was lost. */
  take(lease: Lease): boolean;
}

/** A caller that stands in line. */
export interface Waiter<Lease extends object> {
  /** Its number: callers are numbered in the order of asking. */
  readonly number: number;
  readonly caller: Caller<Lease>;
  /** It leads from now on: for one that is behind the one that leads. */
  readonly lead?: () => void;
}

/**
 * The callers of one process for one lock, first come, first served. The first of them leads: it takes a row from the table,
 * for itself. The others wait behind it without a request. A lease whose section has ended goes to the first who can go on
 * with it, the one that leads included. While as many leases are out as the lock has rows, nobody leads.
 */
export class LocalLine<Lease extends object> {
  /** Since when others have kept those who lead from the row; undefined where they have not. */
  blocked: Blocked | undefined;
  /** How many leases its callers may have at once. */
  capacity: number;
  /** In the order of their numbers. */
  readonly #waiters: Waiter<Lease>[] = [];
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

  /** Whether as many leases are out as there may be, or are asked for. */
  get isFull(): boolean {
    return this.#leases.size + this.#beside >= this.capacity;
  }

  get isEmpty(): boolean {
    return this.#leader === undefined && this.#leases.size + this.#waiters.length + this.#beside === 0;
  }

  /** Whether the first caller that waits may go on with a lease of this process. */
  get admitsFirst(): boolean {
    return true;
  }

  /** Gives up what nobody waits for any more. @returns whether nobody is left. */
  tidy(): boolean {
    return this.isEmpty;
  }

  /** Whether somebody else than this caller waits. */
  isAwaited(caller: Caller<Lease>): boolean {
    return this.#waiters.length > 0 || (this.#leader !== undefined && this.#leader.caller !== caller);
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

  /** Waits until it leads, and keeps the process alive meanwhile. @throws the reason of `enough`, also where it is served. */
  async waitToLead(caller: Caller<Lease>): Promise<void> {
    const { wait } = caller;
    const { enough } = wait;
    // A caller that claimed without standing in line may have been answered meanwhile. Its abort event has already fired,
    // so the listener below would never run.
    enough.throwIfAborted();
    if (this.#waiters.length === 0 && this.#tryLead(caller)) return;
    await new Promise<void>((resolve, reject) => {
      const mayExit = wait.stay();
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
      const waiter = { number: ++this.#lastNumber, caller, lead };
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
  exitToLead(caller: Caller<Lease>): boolean {
    this.#beside -= 1;
    return this.#tryLead(caller);
  }

  /** A caller has taken a lease from the table. If it leads, the next does from here on. */
  settle(caller: Caller<Lease>, lease: Lease): void {
    this.#leases.add(lease);
    this.blocked = undefined;
    if (this.#leader?.caller === caller) this.#leader = undefined;
    this.#advance();
  }

  /** Whether the first who waits could go on with this lease. */
  canPass(lease: Lease): boolean {
    return this.#leases.has(lease) && (this.#first?.caller.fits(lease) ?? false);
  }

  /** Passes the lease to the first who waits, where it is that one's turn. @returns whether a section has begun on it. */
  pass(lease: Lease): boolean {
    // Asked before each: where the first waits no longer, it may not be the turn of the one behind it.
    while (this.admitsFirst && this.canPass(lease)) {
      const first = this.#first as Waiter<Lease>;
      const leads = first === this.#leader;
      if (leads) this.#leader = undefined;
      const isTaken = first.caller.take(lease);
      if (!isTaken && !first.caller.wait.enough.aborted) {
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
    if (this.#leader?.caller === who) this.#leader = undefined;
    this.#leases.delete(who as Lease);
    this.#advance();
  }

  #tryLead(caller: Caller<Lease>): boolean {
    if (this.#leader !== undefined || this.isFull) return false;
    this.#leader = { number: ++this.#lastNumber, caller };
    return true;
  }

  #advance(): void {
    if (this.#leader !== undefined || this.isFull) return;
    this.#leader = this.#waiters.shift();
    this.#leader?.lead?.();
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
