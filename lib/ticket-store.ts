import type { Row, Store } from "./store.js";

/** Which waiter's row. No two rows of a queue ever have the same ticket and uuid. */
export interface Place {
  readonly name: string;
  readonly ticket: bigint;
  readonly uuid: string;
}

/** A waiter's row: a place in the queue, with a lease of its own. */
export interface Waiter extends Place {
  /** Epoch ms on the table's clock. */
  readonly expires: number;
  readonly ttlMs: number;
  readonly owner: string;
  /** Since when it waits. */
  readonly acquired: number;
}

/** Which of a queue's rows to read: from the front on, or from the end back. */
export type PageRequest =
  /** From the lock's own row on, or from the ticket after this one. */
  | { readonly from: "front"; readonly after?: bigint | undefined; readonly limit: number }
  /** From the last ticket back, or from the one before this one. */
  | { readonly from: "end"; readonly before?: bigint | undefined; readonly limit: number };

export interface Page {
  /** The lock's own row, if it was in the range and is there. */
  readonly row: Row | undefined;
  /** In the order of reading. There may be none although more are to come. */
  readonly waiters: readonly Waiter[];
  /** What the next page starts after or before; undefined where there is none. */
  readonly next: bigint | undefined;
}

export type TicketOutcome =
  | { readonly kind: "applied" }
  | {
      readonly kind: "refused";
      /** The row that refused, where it is told; undefined where there was none. */
      readonly waiter: Waiter | undefined;
    };

/**
 * The part of the port that the fair queue needs: a counter and the waiters' rows, beside the lock's own row. One
 * attempt each; what is thrown is as in `Store`.
 */
export interface TicketStore {
  /**
   * A ticket that nobody else gets: one more than the last, or than `seed` where there is no counter yet. A copy of the
   * request costs a ticket that nobody hears of.
   */
  draw(name: string, seed: number, signal: AbortSignal): Promise<bigint>;

  /** Writes a waiter's row where there is none. Refused by its own row, if an earlier copy has been applied. */
  enqueue(waiter: Waiter, signal: AbortSignal): Promise<TicketOutcome>;

  /** Sets `expires` where the uuid matches and `expires` is earlier. */
  renew(place: Place, expires: number, signal: AbortSignal): Promise<TicketOutcome>;

  /** Removes the row where the uuid matches. Does not tell which row refused. */
  leave(place: Place, signal: AbortSignal): Promise<TicketOutcome>;

  /** Removes the row of a waiter that is gone, where it is exactly as it was seen. Does not tell which row refused. */
  sweep(seen: Place & { readonly expires: number }, signal: AbortSignal): Promise<TicketOutcome>;

  page(
    name: string,
    request: PageRequest,
    options: { readonly consistent: boolean },
    signal: AbortSignal,
  ): Promise<Page>;
}

/** The whole port: the locks' own rows, and those who wait for them. */
export interface TableStore extends Store {
  /** Absent where a lock can have no rows but its own. */
  readonly tickets?: TicketStore | undefined;
}
