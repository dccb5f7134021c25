/** What a waiter gets: a lease that another section passed on, or the task of taking the lock for itself. */
export type Turn<Lease extends object> =
  | { readonly kind: "lease"; readonly lease: Lease }
  | ({ readonly kind: "lead" } & LeftBehind);

/** What whoever was at the front leaves to the next one. */
export interface LeftBehind {
  /** Until when another host is to have its turn first, on `atLeast`; undefined where none waits. */
  readonly standBackUntil: number | undefined;
  /** Since when the table has not answered those who led; undefined where it has. */
  readonly silentSince: number | undefined;
}

interface Waiter<Lease extends object> {
  /** Takes the place at the front once it is this waiter's. */
  readonly occupant: object;
  /** Whether this waiter can go on with the lease as it is. */
  readonly fits: (lease: Lease) => boolean;
  readonly call: (turn: Turn<Lease>) => void;
}

/**
 * The waiters of one process for one name, first come, first served. At its front is one occupant: whoever polls the
 * table, or the lease that was taken. The others wait behind it without a request, and get the lease when its section
 * ends.
 */
export class LocalQueue<Lease extends object> {
  readonly #waiters: Waiter<Lease>[] = [];
  #occupant: object | undefined;

  get occupant(): object | undefined {
    return this.#occupant;
  }

  /** Takes the front if nobody is there. */
  tryTurn(occupant: object): boolean {
    if (this.#occupant !== undefined) return false;
    this.#occupant = occupant;
    return true;
  }

  /** Waits for the front, and keeps the process alive meanwhile. @throws the reason of the occupant's `enough`. */
  async turn(
    occupant: { readonly enough: AbortSignal; stay(): () => void },
    fits: (lease: Lease) => boolean,
  ): Promise<Turn<Lease>> {
    if (this.tryTurn(occupant)) return { kind: "lead", standBackUntil: undefined, silentSince: undefined };
    const { enough } = occupant;
    return await new Promise<Turn<Lease>>((resolve, reject) => {
      const mayGo = occupant.stay();
      const leave = (): void => {
        mayGo();
        this.#waiters.splice(this.#waiters.indexOf(waiter), 1);
        reject(enough.reason);
      };
      const call = (turn: Turn<Lease>): void => {
        mayGo();
        enough.removeEventListener("abort", leave);
        resolve(turn);
      };
      const waiter: Waiter<Lease> = { occupant, fits, call };
      enough.addEventListener("abort", leave, { once: true });
      this.#waiters.push(waiter);
    });
  }

  /** Whoever led has taken the lock: from here on its lease is at the front. */
  settle(leader: object, lease: Lease): void {
    if (this.#occupant === leader) this.#occupant = lease;
  }

  /** Whether the next waiter could go on with this lease. */
  canPass(lease: Lease): boolean {
    return this.#occupant === lease && (this.#waiters[0]?.fits(lease) ?? false);
  }

  /** Passes the lease, which stays at the front, to the next waiter. */
  pass(lease: Lease): boolean {
    if (!this.canPass(lease)) return false;
    this.#waiters.shift()?.call({ kind: "lease", lease });
    return true;
  }

  /** The occupant has nothing to pass on: the next waiter leads. Does nothing for anybody else. */
  vacate(occupant: object, { standBackUntil, silentSince }: Partial<LeftBehind> = {}): void {
    if (this.#occupant !== occupant) return;
    const next = this.#waiters.shift();
    this.#occupant = next?.occupant;
    next?.call({ kind: "lead", standBackUntil, silentSince });
  }
}
