import type { KeptOut } from "../taking/watch.js";

/** What a waiter gets: a lease that another section passed on, or the task of taking the lock for itself. */
export type Turn<Lease extends object> = { readonly kind: "lease"; readonly lease: Lease } | { readonly kind: "lead" };

interface Waiter<Lease extends object> {
  /** Comes to the front once it is this waiter's turn. */
  readonly who: object;
  /** Whether this waiter can go on with the lease as it is. */
  readonly fits: (lease: Lease) => boolean;
  readonly call: (turn: Turn<Lease>) => void;
}

/**
 * The waiters of one process for one name, first come, first served. At its front is one of them, who polls the table, or
 * the lease that was taken. The others wait behind it without a request, and get the lease when its section ends.
 */
export class LocalLine<Lease extends object> {
  /** Since when others have kept those who lead from the row; undefined where they have not. */
  keptOut: KeptOut | undefined;
  readonly #waiters = new Set<Waiter<Lease>>();
  #front: object | undefined;

  get front(): object | undefined {
    return this.#front;
  }

  /** Takes the front if nobody is there. */
  tryTurn(who: object): boolean {
    if (this.#front !== undefined) return false;
    this.#front = who;
    return true;
  }

  /** Waits for the front, and keeps the process alive meanwhile. @throws the reason of `enough`. */
  async turn(
    who: { readonly enough: AbortSignal; stay(): () => void },
    fits: (lease: Lease) => boolean,
  ): Promise<Turn<Lease>> {
    if (this.tryTurn(who)) return { kind: "lead" };
    const { enough } = who;
    return await new Promise<Turn<Lease>>((resolve, reject) => {
      const mayExit = who.stay();
      const giveUp = (): void => {
        mayExit();
        this.#waiters.delete(waiter);
        reject(enough.reason);
      };
      const call = (turn: Turn<Lease>): void => {
        mayExit();
        enough.removeEventListener("abort", giveUp);
        resolve(turn);
      };
      const waiter: Waiter<Lease> = { who, fits, call };
      enough.addEventListener("abort", giveUp, { once: true });
      this.#waiters.add(waiter);
    });
  }

  /** The leader has taken the lock: from here on its lease is at the front. */
  settle(leader: object, lease: Lease): void {
    if (this.#front !== leader) return;
    this.#front = lease;
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
    this.#front = next?.who;
    next?.call({ kind: "lead" });
  }

  get #first(): Waiter<Lease> | undefined {
    for (const waiter of this.#waiters) return waiter;
    return undefined;
  }

  #shift(): Waiter<Lease> | undefined {
    const first = this.#first;
    if (first !== undefined) this.#waiters.delete(first);
    return first;
  }
}
