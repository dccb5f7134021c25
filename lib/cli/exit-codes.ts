import { constants } from "node:os";

/** What the command ends with, where the command under the lock has not ended by itself. `env` and `timeout` use the same. */
export const EXIT = {
  done: 0,
  /** The answer is no: free, not usable, not unlocked. */
  no: 1,
  /** EX_TEMPFAIL: somebody else has the lock, or the tick was granted before. */
  busy: 75,
  lost: 124,
  /** Of this command itself: wrong arguments, a table that cannot be used. */
  failed: 125,
  cannotExecute: 126,
  notFound: 127,
} as const;

/** How a shell shows the end of a process by a signal. */
export const exitCodeOf = (signal: NodeJS.Signals): number => 128 + constants.signals[signal];
