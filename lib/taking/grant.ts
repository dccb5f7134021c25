import type { LockData } from "../lock-info.js";
import type { MutexSettings } from "../options/mutex.js";
import type { Sighting } from "../store.js";

/** Which lock, and how. */
export interface Target {
  readonly name: string;
  readonly settings: MutexSettings;
}

/** At most one acquisition for one tick, ever: a tick that the caller names, or the period that it is on the table's clock. */
export type Once =
  | { readonly kind: "tick"; readonly tick: number }
  | { readonly kind: "period"; readonly everyMs: number };

/** A lock that was taken: what its lease starts from. */
export interface Grant {
  readonly kind: "granted";
  readonly uuid: string;
  readonly expires: number;
  readonly acquired: number;
  /** When the first copy of the request was sent, on `atMost`. */
  readonly sentAt: number;
  /** Whether the stamp was made without knowing the table's time. */
  readonly guessed: boolean;
  readonly kept: boolean;
  /** The fencing token, on a fenced mutex. */
  readonly fence: bigint | undefined;
  /** Whether the row may carry a tick: then it must not get a purge date. */
  readonly ticked: boolean;
  /** The tick that this acquisition is for. */
  readonly tick: number | undefined;
  /** The row that might be replaced for having been seen unchanged. */
  readonly unchanged: Sighting | undefined;
  readonly data: LockData | undefined;
}
