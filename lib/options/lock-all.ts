import { LockConfigError } from "../errors.js";
import { type LockOptions, lockOptions } from "./calls.js";
import { type MutexOptions, type MutexSettings, mutexSettings } from "./mutex.js";
import { checkName } from "./table.js";

/** How `lockAll()` takes its locks, and what it may add. What is left out is as for a mutex of the table. */
export interface LockAllOptions
  extends LockOptions,
    Pick<
      MutexOptions,
      "ttlMs" | "renewEveryMs" | "safetyMarginMs" | "autoRenew" | "maxHoldMs" | "poll" | "releaseWithinMs" | "takeover"
    > {}

/** The most that one transaction may write. */
const MOST_NAMES = 100;

/** What a set cannot have, and why. */
const REFUSED: Readonly<Record<string, string>> = {
  fencing: "must not be given to lockAll(): a transaction returns no tokens; take locks with tokens one by one",
  fair: "must not be given to lockAll(): a set stands in no queue, it takes its locks when all of them are free",
  handOverMs: "must not be given to lockAll(): a set passes no lock on",
};

/** @throws {@link LockConfigError} naming what cannot work. */
export function lockAllOptions(
  options: LockAllOptions,
  defaults: MutexOptions,
): { readonly settings: MutexSettings; readonly lock: LockOptions } {
  if (typeof options !== "object" || options === null || Array.isArray(options)) {
    throw new LockConfigError("options", options, "must be an object, or left out");
  }
  for (const [option, remedy] of Object.entries(REFUSED)) {
    const value = (options as Readonly<Record<string, unknown>>)[option];
    if (value !== undefined) throw new LockConfigError(option, value, remedy);
  }
  const { signal, waitMs, data, holdAtLeastMs, ...mutex } = options;
  return {
    settings: mutexSettings(mutex, defaults),
    lock: lockOptions({ signal, waitMs, data, holdAtLeastMs }),
  };
}

/** The names of a set. @throws {@link LockConfigError} if there are none, too many, or the same one twice. */
export function checkNames(names: readonly string[], keyPrefix: string): void {
  if (!Array.isArray(names) || names.length === 0) {
    throw new LockConfigError("names", names, "must be an array of at least one name");
  }
  if (names.length > MOST_NAMES) {
    throw new LockConfigError(
      "names",
      `${names.length} names`,
      `must be at most ${MOST_NAMES}, which is what one transaction of DynamoDB may write`,
    );
  }
  for (const name of names) checkName(name, keyPrefix);
  const twice = names.find((name, index) => names.indexOf(name) < index);
  if (twice !== undefined) throw new LockConfigError("names", twice, "must not contain a name twice");
}
