import type { LossReason } from "../errors.js";
import type { LockData } from "../lock-info.js";
import type { MutexSettings } from "../options/mutex.js";
import type { Address } from "../protocol/addresses.js";
import type { Memory, Row } from "../protocol/row.js";

/** Which row to take, and how its lease is kept. */
export interface Target {
  readonly at: Address;
  readonly settings: MutexSettings;
  /** How many permits the semaphore has, where the row is one of them. */
  readonly permits?: number | undefined;
}

/** The rule by which a row was taken from a holder that did not release it. */
export type TakeoverRule = "expired" | "unchanged";

/** What is known of a row that a write of this process has acquired, or may have acquired. */
export interface Taken {
  readonly uuid: string;
  readonly expires: number;
  /** When the first copy of that write left, on `atMost`. */
  readonly sentAt: number;
  /** Since when the lock is taken, on the table's clock, for people. */
  readonly acquired: number;
  readonly data?: LockData | undefined;
  readonly tick?: number | undefined;
  /** With `untilSuccess`: the number of this run of the tick. */
  readonly attempt?: number | undefined;
  readonly remembers: Memory;
  readonly fence?: bigint | undefined;
  readonly takeover?: TakeoverRule | undefined;
  /** The `expires` by which the write has named a row without a holder, if it has. */
  readonly namedHold?: number | undefined;
}

/** The outcome of a renewal, a reissue or a transfer. After `unanswered` it may have been applied, or may be later. */
export type Stamping =
  | { readonly kind: "stamped" }
  | { readonly kind: "refused"; readonly reason: LossReason }
  | { readonly kind: "unanswered"; readonly cause: unknown };

/** The outcome of a release. After `unanswered` the row stays until its lease ends by itself. */
export type Release =
  | { readonly kind: "released" }
  /** Certainly refused: by this row, or because there is none. */
  | { readonly kind: "refused"; readonly row: Row | undefined }
  | { readonly kind: "unanswered" };

/** How long a write of a holder is tried. */
export interface Trying {
  /** On `atMost`. */
  readonly until: () => number;
  /** Ends the retries: an attempt in flight is still awaited. */
  readonly endSignal?: AbortSignal | undefined;
  readonly onFailure?: ((cause: unknown) => void) | undefined;
}
