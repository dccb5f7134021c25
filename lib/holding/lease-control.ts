import type { LockLostError, LossReason } from "../errors.js";
import type { MutexSettings } from "../options/mutex.js";
import type { RowLease } from "../taking/row-lease.js";

/** A lease as its renewals and its exit see it: until when it lasts, and how it ends. */
export interface LeaseControl {
  readonly settings: MutexSettings;
  /** The row as the last write has left it: each write replaces it. */
  row: RowLease;
  /** The loss, if any. */
  readonly lost: LockLostError | undefined;
  /** Whether a section relies on it, and it has not been lost. */
  readonly held: boolean;
  /** Since when the last of the sections that rely on it runs, on `atLeast`; undefined if none does. */
  readonly inUseSince: number | undefined;
  /** Until when it may be relied on without another renewal, on `atMost`. */
  readonly deadline: number;
  /** Until when the row is ours, less the margin that covers clocks which run at different rates. */
  readonly usableUntil: number;
  /** Whether a section may begin on it. */
  readonly stands: boolean;
  /** Whether it ended while no section relied on it: that is no loss, even if another process holds the row by now. */
  readonly hasRunOut: boolean;
  /** A renewal was applied, and may have found a mark. */
  renewed(): void;
  /** Ends the lease as lost, for good. @returns the loss that was found first. */
  markLost(reason: LossReason, cause?: unknown): LockLostError;
  /** Begins to leave the lease: from here on no section relies on it, and what happens to the row is no loss. */
  leave(): void;
  /** Lets a close no longer wait for the lease. */
  forget(): void;
}
