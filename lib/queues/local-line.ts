import type { Wait } from "../taking/wait.js";
import type { Blocked } from "../taking/watch.js";

/** A call that waits for a lock, and what it does with a lease that a section before it has left. */
export interface Caller<Lease extends object> {
  readonly wait: Pick<Wait, "endSignal" | "seen" | "stay" | "waitedMs">;
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
  /** Called when it begins to lead. Absent on a caller that led at once. */
  readonly lead?: () => void;
}

/**
 * The callers of one process for one lock, first come, first served: a line. The first caller leads: it takes a row from the
 * table, for itself. The others wait behind it without a request. A lease whose section has ended passes to the first caller,
 * the leader included, if it can use that lease. While as many leases are in use as the lock has rows, nobody leads.
 */
export class LocalLine<Lease extends object> {
  /** Since when holders elsewhere have kept the leaders of this line from the row; undefined if they have not. */
  blocked: Blocked | undefined;
  /** How many leases its callers may have at once. */
  capacity: number;
  /** The callers behind the leader, in the order of their numbers. */
  readonly #waiters: Waiter<Lease>[] = [];
  readonly #leases = new Set<Lease>();
  #leader: Waiter<Lease> | undefined;
  /** How many callers are claiming without standing in the line. */
  #claimsOutside = 0;
  #lastNumber = 0;
  #asking: { readonly wait: Pick<Wait, "seen">; readonly answered: Promise<unknown> } | undefined;

  constructor(capacity: number) {
    this.capacity = capacity;
  }

  /** The leases that its callers have, the latest last. */
  get leases(): ReadonlySet<Lease> {
    return this.#leases;
  }

  /** The number of the caller that asked last; 0 if none has. */
  get lastNumber(): number {
    return this.#lastNumber;
  }

  get leader(): Waiter<Lease> | undefined {
    return this.#leader;
  }

  /** Whether as many leases are in use or being claimed as there may be. */
  get isFull(): boolean {
    return this.#leases.size + this.#claimsOutside >= this.capacity;
  }

  get isEmpty(): boolean {
    return this.#leader === undefined && this.#leases.size + this.#waiters.length + this.#claimsOutside === 0;
  }

  /** Whether the first caller that waits may go on with a lease of this process. */
  get admitsFirst(): boolean {
    return true;
  }

  /** Gives up what no caller needs any more. @returns whether the line is empty. */
  tidy(): boolean {
    return this.isEmpty;
  }

  /** Whether another caller than this one waits. */
  isAwaited(caller: Caller<Lease>): boolean {
    return this.#waiters.length > 0 || (this.#leader !== undefined && this.#leader.caller !== caller);
  }

  /** The number of the first caller that has no lock yet, the leader included. */
  get first(): number | undefined {
    return this.#first?.number;
  }

  /** The first caller behind the leader whose number is greater than this. */
  firstAfter(number: number): Waiter<Lease> | undefined {
    return this.#waiters[this.#indexAfter(number)];
  }

  /** How many callers behind the leader have a number greater than this. */
  countAfter(number: number): number {
    return this.#waiters.length - this.#indexAfter(number);
  }

  /**
   * Waits until the caller leads, and keeps the process alive meanwhile.
   * @throws the reason of `endSignal`, which also aborts when the caller is served.
   */
  async waitToLead(caller: Caller<Lease>): Promise<void> {
    const { wait } = caller;
    const { endSignal } = wait;
    // A caller that claimed without standing in line may have been answered meanwhile. Its abort event has already fired,
    // so the listener below would never run.
    endSignal.throwIfAborted();
    if (this.#waiters.length === 0 && this.#tryLead(caller)) return;
    await new Promise<void>((resolve, reject) => {
      const mayExit = wait.stay();
      const giveUp = (): void => {
        mayExit();
        this.#remove(waiter);
        reject(endSignal.reason);
      };
      const lead = (): void => {
        mayExit();
        endSignal.removeEventListener("abort", giveUp);
        resolve();
      };
      const waiter = { number: ++this.#lastNumber, caller, lead };
      endSignal.addEventListener("abort", giveUp, { once: true });
      this.#waiters.push(waiter);
    });
  }

  /**
   * The last claim of a caller that does not stand in the line: until it is answered, nobody in this process knows who has the lock.
   */
  get asking(): { readonly wait: Pick<Wait, "seen">; readonly answered: Promise<unknown> } | undefined {
    return this.#asking;
  }

  /** Notes the claim of a caller outside the line. @returns its outcome. */
  async asks<Outcome>(wait: Pick<Wait, "seen">, claim: Promise<Outcome>): Promise<Outcome> {
    this.#asking = { wait, answered: claim.catch(() => undefined) };
    return await claim;
  }

  /** A caller begins to claim without standing in the line. */
  beginClaim(): void {
    this.#claimsOutside += 1;
  }

  /** A caller that claimed without standing in the line has its lease, or has stopped waiting. */
  endClaim(): void {
    this.#claimsOutside -= 1;
    this.#advance();
  }

  /**
   * A caller that claimed without standing in the line got no lease. If nobody leads, it becomes the leader, ahead of callers
   * that came meanwhile.
   */
  endClaimAndLead(caller: Caller<Lease>): boolean {
    this.#claimsOutside -= 1;
    return this.#tryLead(caller);
  }

  /** A caller has taken a lease from the table. If it was the leader, the next caller leads from here on. */
  settle(caller: Caller<Lease>, lease: Lease): void {
    this.#leases.add(lease);
    this.blocked = undefined;
    if (this.#leader?.caller === caller) this.#leader = undefined;
    this.#advance();
  }

  /** Whether the first caller that waits can use this lease. */
  canPass(lease: Lease): boolean {
    return this.#leases.has(lease) && (this.#first?.caller.fits(lease) ?? false);
  }

  /** Passes the lease to the first caller that waits, if it is that caller's turn. @returns whether a section has begun on it. */
  pass(lease: Lease): boolean {
    // Check the turn of each caller: if the first one has stopped waiting, it may not be the turn of the next one.
    while (this.admitsFirst && this.canPass(lease)) {
      const first = this.#first as Waiter<Lease>;
      const leads = first === this.#leader;
      if (leads) this.#leader = undefined;
      const isTaken = first.caller.take(lease);
      if (!isTaken && !first.caller.wait.endSignal.aborted) {
        // The lease has just ended: this caller goes on waiting.
        if (leads) this.#leader = first;
        return false;
      }
      this.#remove(first);
      this.#advance();
      if (isTaken) return true;
    }
    return false;
  }

  /** A leader has stopped waiting, or a lease has ended. Does nothing for other callers. */
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

  /** Does nothing for a caller that is not behind the leader. */
  #remove({ number }: Waiter<Lease>): void {
    const index = this.#indexAfter(number - 1);
    if (this.#waiters[index]?.number === number) this.#waiters.splice(index, 1);
  }

  /** The index of the first caller with a greater number. */
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
