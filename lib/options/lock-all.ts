import { LockConfigError } from "../errors.js";
import { type LockOptions, lockShape } from "./calls.js";
import { optionsCheck } from "./check.js";
import { type MutexOptions, type MutexSettings, mutexSettings, mutexShape } from "./mutex.js";
import type { OptionsCheck } from "./options-check.js";

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
    fair: "must not be given to lockAll(), which does not queue: it takes its locks in one transaction when all of them are free",
    handOverMs:
      "must not be given to lockAll(): its locks are released, and never kept for the next caller of this process",
  },
);

/** One of the locks of a set, and how it is kept. */
export interface SetMember {
  readonly name: string;
  readonly settings: MutexSettings;
}

/** The options of a set, completed. @throws {@link LockConfigError} naming the option that cannot work. */
export function lockAllOptions(
  options: LockAllOptions,
  defaults: MutexOptions,
): {
  readonly lock: LockOptions;
  /** How a lock of the set is kept: by these options, then by those of its mutex, if it was given as one, or of the table. */
  readonly settingsOf: (mutex?: MutexSettings) => MutexSettings;
} {
  const { signal, waitMs, data, holdAtLeastMs, ...own } = checkLockAll(options);
  const ofNames = mutexSettings(own, defaults);
  const settingsOf = (mutex?: MutexSettings) => (mutex === undefined ? ofNames : mutexSettings(own, mutex));
  return { lock: { signal, waitMs: waitMs ?? ofNames.waitMs, data, holdAtLeastMs }, settingsOf };
}

/** @throws {@link LockConfigError} if a set has no locks, or too many. */
export function checkCount(locks: readonly unknown[]): void {
  if (!Array.isArray(locks) || locks.length === 0) {
    throw new LockConfigError("locks", locks, "must be an array of at least one name or mutex");
  }
  if (locks.length > MAX_NAMES) {
    const remedy = `must be at most ${MAX_NAMES}, which is what one transaction of DynamoDB may write`;
    throw new LockConfigError("locks", `${locks.length} locks`, remedy);
  }
}

/** @throws {@link LockConfigError} if a set has a lock twice, or one with tokens. */
export function checkMembers(members: readonly SetMember[]): void {
  const names = new Set<string>();
  for (const [index, { name, settings }] of members.entries()) {
    if (settings.fencing) {
      const remedy = "must not be a mutex with fencing: a transaction returns no tokens; take this lock by itself";
      throw new LockConfigError(`locks.${index}`, name, remedy);
    }
    if (names.has(name)) throw new LockConfigError(`locks.${index}`, name, "must not be there twice");
    names.add(name);
  }
}
