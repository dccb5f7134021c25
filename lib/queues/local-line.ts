import type { KeptOut } from "../taking/watch.js";

/** What a waiter gets: a lease that another section passed on, or the task of taking the lock for itself. */
export type Turn<Lease extends object> = { readonly kind: "lease"; readonly lease: Lease } | { readonly kind: "lead" };

/** A call that waits for its turn. */
export interface Caller {
  readonly enough: AbortSignal;
  readonly waitedMs: number;
  /** Keeps the process alive, until the returned function is called. */
  stay(): () => void;
}

/** A caller that stands in line. */
export interface Waiter<Lease extends object> {
  /** Its number: callers are numbered in the order of asking. */
  readonly number: number;
  /** Comes to the front once it is this waiter's turn. */
  readonly who: Caller;
  /** Whether this waiter can go on with the lease as it is. */
  readonly fits: (lease: Lease) => boolean;
}

/**
 * The waiters of one process for one name, first come, first served. At its front is one of them, who polls the table, or
 * the lease that was taken. The others wait behind it without a request, and get the lease when its section ends.
 */
export class LocalLine<Lease extends object> {
  /** Since when others have kept those who lead from the row; undefined where they have not. */
  keptOut: KeptOut | undefined;
  readonly #waiters = new Map<Waiter<Lease>, (turn: Turn<Lease>) => void>();
  #front: object | undefined;
  /** The number of the waiter at the front; undefined where a lease is there, or nobody. */
  #leader: number | undefined;
  #asked = 0;

  get front(): object | undefined {
    return this.#front;
  }

  /** The number of the caller that asked last; 0 where none has. */
  get asked(): number {
    return this.#asked;
  }

  /** Whether a waiter is at the front. */
  get isLed(): boolean {
    return this.#leader !== undefined;
  }

  /** The number of the first that has no lock yet, the one at the front included. */
  get first(): number | undefined {
    return this.#leader ?? this.#first?.number;
  }

  /** Those behind the front, in order. */
  get waiters(): Iterable<Waiter<Lease>> {
    return this.#waiters.keys();
  }

  /** Takes the front if nobody is there. */
  tryTurn(who: object): boolean {
    if (this.#front !== undefined) return false;
    this.#front = who;
    this.#leader = ++this.#asked;
    return true;
  }

  /** Waits for the front, and keeps the process alive meanwhile. @throws the reason of `enough`. */
  async turn(who: Caller, fits: (lease: Lease) => boolean): Promise<Turn<Lease>> {
    if (this.tryTurn(who)) return { kind: "lead" };
    const { enough } = who;
    return await new Promise<Turn<Lease>>((resolve, reject) => {
      const mayExit = who.stay();
      const giveUp = (): void => {
        mayExit();
        this.#waiters.delete(waiter);
        reject(enough.reason);
      };
      const waiter: Waiter<Lease> = { number: ++this.#asked, who, fits };
      enough.addEventListener("abort", giveUp, { once: true });
      this.#waiters.set(waiter, (turn) => {
        mayExit();
        enough.removeEventListener("abort", giveUp);
        resolve(turn);
      });
    });
  }

  /** The leader has taken the lock: from here on its lease is at the front. */
  settle(leader: object, lease: Lease): void {
    if (this.#front !== leader) return;
    [this.#front, this.#leader] = [lease, undefined];
    this.keptOut = undefined;
  }

  /** Whether the next waiter could go on with this lease. */
  canPass(lease: Lease): boolean {
    return this.#front === lease && (this.#first?.fits(lease) ?? false);
  }

  /** Passes the lease, which stays at the front, to the next waiter. */
  pass(lease: Lease): boolean {
    if (!this.canPass(lease)) return false;
    this.#shift()?.call({ kind: "lease", lease });
    return true;
  }

  /** The front leaves without a lease to pass on: the next waiter leads. Does nothing for others. */
  leave(who: object): void {
    if (this.#front !== who) return;
    const next = this.#shift();
    [this.#front, this.#leader] = [next?.waiter.who, next?.waiter.number];
    next?.call({ kind: "lead" });
  }

  get #first(): Waiter<Lease> | undefined {
    for (const waiter of this.#waiters.keys()) return waiter;
    return undefined;
  }

  #shift(): { readonly waiter: Waiter<Lease>; readonly call: (turn: Turn<Lease>) => void } | undefined {
    for (const [waiter, call] of this.#waiters) {
      this.#waiters.delete(waiter);
      return { waiter, call };
    }
    return undefined;
  }
}
