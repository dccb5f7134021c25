import { constants } from "node:os";
import type { LockConfigError } from "../index.js";

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

export const NO_SEPARATOR = "there is no command: put -- before the command that is run: dynamutex run NAME -- COMMAND";

/** A failure that one line explains: what is wrong, and what to do. */
export class Failure extends Error {
  override readonly name = "Failure";
  readonly exitCode: number;

  constructor(message: string, exitCode: number = EXIT.failed, options?: ErrorOptions) {
    super(message, options);
    this.exitCode = exitCode;
  }
}

/** What the library's options are called here, where that is more than another spelling, as `--key-prefix` is of `keyPrefix`. */
const FLAGS: Readonly<Record<string, string>> = { name: "NAME", tableName: "--table", holdAtLeastMs: "--at-least" };

function flagOf(option: string): string {
  const words = option.replace(/Ms$/, "").replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
  return FLAGS[option] ?? `--${words}`;
}

/** One line that says what went wrong and what to do. */
export function complaintOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { option } = error as Partial<LockConfigError>;
  if (option === undefined) return error.message || error.name;
  // The message of an option that cannot work begins with its name, as a path: `keys.sort`.
  return flagOf(option.replace(/\..*/, "")) + error.message.slice(option.length);
}
