import type { LockData } from "./lock-info.js";
import type { MutexSettings } from "./options.js";

/** Which lock, and how. */
export interface Target {
  readonly name: string;
  readonly settings: MutexSettings;
}

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
  readonly data: LockData | undefined;
}
