import { LockConfigError } from "../errors.js";
import { type LockOptions, lockShape } from "./calls.js";
import { optionsCheck } from "./check.js";
import { type MutexOptions, type MutexSettings, mutexSettings, mutexShape } from "./mutex.js";
import type { OptionsCheck } from "./options-check.js";
import { checkName } from "./table.js";

/** Options of one `lockAll()`. Default: those of the table's mutexes. */
export interface LockAllOptions extends LockOptions, Omit<MutexOptions, "fencing" | "fair" | "handOverMs"> {}

/** DynamoDB's limit for the writes of one transaction. */
const MAX_NAMES = 100;

const checkLockAll: OptionsCheck<LockAllOptions> = optionsCheck(
  ["lockAll()"],
  () => {
    const { fair, handOverMs, ...ofMutexes } = mutexShape();
    return { ...ofMutexes, ...lockShape() };
  },
  {
    fencing: "must not be given to lockAll(): a transaction returns no tokens; take locks with tokens one by one",
    fair: "must not be given to lockAll(): a set stands in no queue, it takes its locks when all of them are free",
    handOverMs: "must not be given to lockAll(): a set passes no lock on",
  },
);

/** @throws {@link LockConfigError} naming the option that cannot work. */
export function lockAllOptions(
  options: LockAllOptions,
  defaults: MutexOptions,
): { readonly settings: MutexSettings; readonly lock: LockOptions } {
  const { signal, waitMs, data, holdAtLeastMs, ...mutex } = checkLockAll(options);
  return { settings: mutexSettings(mutex, defaults), lock: { signal, waitMs, data, holdAtLeastMs } };
}

/** @throws {@link LockConfigError} if a set has no names, too many, an invalid one, or one twice. */
export function checkNames(names: readonly string[], keyPrefix: string): void {
  if (!Array.isArray(names) || names.length === 0) {
    throw new LockConfigError("names", names, "must be an array of at least one name");
  }
  if (names.length > MAX_NAMES) {
    const remedy = `must be at most ${MAX_NAMES}, which is what one transaction of DynamoDB may write`;
    throw new LockConfigError("names", `${names.length} names`, remedy);
  }
  for (const name of names) checkName(name, keyPrefix);
  const repeated = names.find((name, index) => names.indexOf(name) < index);
  if (repeated !== undefined) throw new LockConfigError("names", repeated, "must not contain a name twice");
}
