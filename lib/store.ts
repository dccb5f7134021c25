import type { TransactWriteItem } from "@aws-sdk/client-dynamodb";
import type { DocumentGuard } from "./guard.js";
import type { LockData } from "./lock-info.js";

/** A lock's row, as it was at some moment. */
export interface Row {
  readonly name: string;
  /** Absent while the row is parked or kept but free. */
  readonly uuid: string | undefined;
  readonly expires: number;
  readonly ttlMs: number;
  readonly owner: string;
  readonly acquired: number;
  readonly data: LockData | undefined;
  /** Until when another host says it waits. */
  readonly wanted: number | undefined;
  readonly fence: bigint | undefined;
  readonly tick: number | undefined;
}

/** What a holder writes when it takes a lock. */
export interface Claim {
  readonly name: string;
  readonly uuid: string;
  /** Epoch ms on the table's clock. */
  readonly expires: number;
  readonly ttlMs: number;
  readonly owner: string;
  readonly acquired: number;
  readonly data: LockData | undefined;
  /**
   * Draws a fencing token: one more than the row's last, or than this seed where the row has none, which is the table's
   * time in ms. Only with terms that take a kept row.
   */
  readonly fenceSeed?: number | undefined;
  /** The tick that this acquisition is for: written with it, and remembered by the row ever after. */
  readonly tick?: number | undefined;
}

/** A lease as its holder stamped it. */
export interface Stamped {
  readonly uuid: string;
  readonly expires: number;
}

/** A row as a watcher saw it: the identity of one lease between two renewals, or of one parking. */
export interface Sighting {
  /** Absent where the row was parked, or freed by force. */
  readonly uuid: string | undefined;
  readonly expires: number;
}

/** How a row stays taken, without a holder, after its release. */
export interface Parking {
  /** Epoch ms on the table's clock. */
  readonly expires: number;
  /** What is left until then, for those who watch it with a stopwatch. */
  readonly ttlMs: number;
}

/** Which rows a take may replace, besides none at all. */
export interface Terms {
  /** A row whose `expires` is earlier than this is over. 1 where no clock is trusted: only a row that was kept free. */
  readonly earliest: number;
  /** The row of a holder that has been seen unchanged for its whole lease. */
  readonly unchanged?: Sighting | undefined;
  /**
   * Take a row that carries `fence` or `tick`, and leave both in place. Without it, such a row is refused, so that
   * a put can never wipe them out.
   */
  readonly kept: boolean;
  /**
   * Together with `kept`: take a row that carries `tick` as well, and leave it without a purge date. Without it, such
   * a row is refused, so that DynamoDB never purges what must be remembered.
   */
  readonly ticked?: boolean | undefined;
}

export type TakeOutcome =
  /** Taken, from the row that was there, if there was one; with the fencing token, if the claim draws one. */
  | { readonly kind: "granted"; readonly replaced: Row | undefined; readonly fence: bigint | undefined }
  /** The row that refused, which may carry our own uuid: then an earlier copy of this very claim was applied. */
  | { readonly kind: "held"; readonly row: Row };

/** One of several claims that are granted together or not at all. */
export interface Take {
  readonly claim: Claim;
  readonly terms: Terms;
}

export type TakeAllOutcome =
  | { readonly kind: "allGranted" }
  /** For each claim the row that refused it; undefined where none did. A row with the claim's own uuid is an earlier copy's. */
  | { readonly kind: "someHeld"; readonly rows: readonly (Row | undefined)[] };

export type WriteOutcome =
  | { readonly kind: "applied" }
  | {
      readonly kind: "refused";
      /** The row as it was when it refused; undefined where there was none. */
      readonly row: Row | undefined;
      /** Whether the store may have sent the request more than once, so that an earlier copy may have been applied. */
      readonly retried: boolean;
    };

/** A holder's row under a new identity, for the next section of the same process. */
export interface Reissue {
  readonly name: string;
  readonly from: string;
  readonly to: Stamped;
  /** Whether the next section needs a fencing token of its own. The row has one already. */
  readonly fenced: boolean;
  /** The row carries a `tick`: it gets no purge date. */
  readonly ticked?: boolean | undefined;
}

export type ReissueOutcome =
  /** With the new fencing token, if one was drawn. */
  { readonly kind: "applied"; readonly fence: bigint | undefined } | Extract<WriteOutcome, { kind: "refused" }>;

/** Where a page of rows ends: the store's own, opaque to everybody else. */
export type Cursor = Readonly<Record<string, unknown>>;

/** Some of a table's rows. There may be none although more are to come. */
export interface RowPage {
  readonly rows: readonly Row[];
  /** What the next page starts after; undefined where there is none. */
  readonly next: Cursor | undefined;
}

/** What ties a caller's own writes to a lease. They are applied only while the row is as this says. */
export interface Guard {
  readonly name: string;
  readonly uuid: string;
  /** The row's `expires` is later: a late copy of the write that brought the uuid cannot make the row pass again. */
  readonly after: number;
  /** The row has this token, where the lock is fenced. */
  readonly fence: bigint | undefined;
}

/** A caller's own writes, and the guard that goes with them. */
export interface GuardedWrites {
  readonly items: readonly TransactWriteItem[];
  readonly guard: Guard;
  /** The same in every copy, so that they are applied once. */
  readonly token: string;
}

export type TransactOutcome =
  | { readonly kind: "committed" }
  /** The guard was refused, by this row or by there being none, and nothing was written. */
  | { readonly kind: "unguarded"; readonly row: Row | undefined }
  /** The caller's own items were refused: the error is the caller's, as it came. */
  | { readonly kind: "refused"; readonly error: unknown };

/**
 * What the protocol asks of a table: single conditional writes and reads, one attempt each.
 *
 * Outcomes are data. Everything else is thrown as a {@link LockStoreError}; after a transient one a write may or may
 * not have been applied, now or later. `signal` ends the request; it does not undo it.
 */
export interface Store {
  /** Sends nothing. @throws {@link LockConfigError} naming what the table could not store. */
  admit(data: LockData | undefined): void;

  /**
   * Writes the claim where no row is in the way. Never admits the claim's own uuid: see docs/protocol.md. A claim for
   * a tick is refused by a row that remembers this tick or a later one; it is sent with `kept` and `ticked`.
   */
  take(claim: Claim, terms: Terms, signal: AbortSignal): Promise<TakeOutcome>;

  /**
   * Writes all of these claims, each of another name, or none of them. None of them draws a token or is for a tick. A
   * conflict with another write of the same moment is a transient error, unless another's row refuses anyhow.
   */
  takeAll(takes: readonly Take[], signal: AbortSignal): Promise<TakeAllOutcome>;

  read(name: string, options: { readonly consistent: boolean }, signal: AbortSignal): Promise<Row | undefined>;

  /** Sets `expires` (and what belongs to it) where the uuid matches and `expires` is earlier. */
  renew(
    renewal: {
      readonly name: string;
      readonly uuid: string;
      readonly expires: number;
      /** Replaces the caller's attributes, if given. */
      readonly data?: LockData | undefined;
      /** The row carries a `tick`: it gets no purge date. */
      readonly ticked?: boolean | undefined;
    },
    signal: AbortSignal,
  ): Promise<WriteOutcome>;

  /**
   * Replaces a stamp that proved wrong, where the row is exactly `from`. The only write that may move the `expires` of
   * a lease back.
   */
  restamp(
    name: string,
    from: Stamped,
    to: Stamped & { readonly ticked?: boolean | undefined },
    signal: AbortSignal,
  ): Promise<WriteOutcome>;

  /**
   * Replaces the uuid, and moves `expires` forward, where the old uuid matches and `expires` is earlier: nothing that
   * was written under the old one passes any more.
   */
  reissue(reissue: Reissue, signal: AbortSignal): Promise<ReissueOutcome>;

  /** Removes the row where the uuid matches; a kept row stays, free; a parked one stays, taken, with nobody behind it. */
  release(
    name: string,
    uuid: string,
    options: {
      readonly kept: boolean;
      readonly parked?: Parking | undefined;
      /** The row carries a `tick`: it gets no purge date. */
      readonly ticked?: boolean | undefined;
    },
    signal: AbortSignal,
  ): Promise<WriteOutcome>;

  /**
   * Says on a holder's row that another host waits for it, until `until`. A hint: where the uuid no longer holds,
   * nothing happens.
   */
  want(name: string, uuid: string, until: number, signal: AbortSignal): Promise<WriteOutcome>;

  /**
   * Takes the uuid off the row of a holder, and nobody's off any other row. `expires` stays, so that nobody enters before
   * the lease ends; with `now` it becomes 0, and the row is free. Neither the row nor what it remembers is removed.
   */
  force(name: string, uuid: string, options: { readonly now: boolean }, signal: AbortSignal): Promise<WriteOutcome>;

  /**
   * Some rows of locks whose names begin with `prefix`, eventually consistent and in no order: those that are kept but
   * free as well. Items that are not locks' rows are left out.
   */
  list(prefix: string, after: Cursor | undefined, signal: AbortSignal): Promise<RowPage>;

  /** The guard as an item for a transaction of the caller's own. Sends nothing. */
  guard(guard: Guard): TransactWriteItem;

  /** The same for a DocumentClient. */
  documentGuard(guard: Guard): DocumentGuard;

  /** Sends nothing. @throws {@link LockConfigError} for items that cannot go along with a guard of this lock. */
  admitItems(name: string, items: readonly TransactWriteItem[]): void;

  /** Applies a caller's writes, all or none, if the guard holds at that instant. */
  transact(writes: GuardedWrites, signal: AbortSignal): Promise<TransactOutcome>;

  /** Ends what the store opened itself. */
  close(): void;
}
