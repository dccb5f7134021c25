import type { LockTable } from "../index.js";
import { confirm } from "./confirm.js";
import { showDuration } from "./durations.js";
import { EXIT } from "./exit-codes.js";
import { Failure } from "./failure.js";
import { findLocks } from "./find-locks.js";
import type { LockView } from "./lock-view.js";
import { openTable, type TableArguments } from "./open-table.js";
import { complain, print, printable } from "./output.js";

export interface UnlockOptions extends TableArguments {
  readonly uuid?: string;
  readonly force?: boolean;
  readonly now?: boolean;
  readonly yes?: boolean;
}

/** Ends an acquisition by force. @returns 0 if it held the lock until now, 1 if it did not. */
export async function unlock(name: string, options: UnlockOptions): Promise<number> {
  const { uuid, force, now = false, yes } = options;
  if ((uuid === undefined) === (force !== true)) {
    throw new Failure("give either --uuid U, as `dynamutex inspect` shows it, or --force for whoever holds it");
  }
  const table = openTable(options);
  await using _ = table.locks;
  const { locks } = await findLocks(table, name);
  const holders = locks.filter((lock) => lock.uuid !== undefined);
  const holder = uuid === undefined ? theOne(name, holders) : holders.find((lock) => lock.uuid === uuid);
  if (holder?.uuid === undefined) {
    const problem = locks.find((lock) => lock.problem !== undefined)?.problem;
    if (problem !== undefined) throw new Failure(problem);
    complain(uuid === undefined ? `nobody holds ${name}` : `${uuid} does not hold ${name}`);
    return EXIT.no;
  }
  if (!yes) await confirm(questionOf(holder, now));
  if (!(await lockableOf(table.locks, holder).forceUnlock(holder.uuid, { now }))) {
    complain(`${holder.uuid} did not hold ${name} any more`);
    return EXIT.no;
  }
  print(`unlocked ${printable(name)}: ${now ? "free now" : `free in ${showDuration(holder.ttlMs)} at the latest`}\n`);
  return EXIT.done;
}

/** @throws {@link Failure} if there are several. */
function theOne(name: string, holders: readonly LockView[]): LockView | undefined {
  if (holders.length <= 1) return holders[0];
  const each = holders.map(({ uuid, owner }) => `${uuid} (${owner})`).join(", ");
  throw new Failure(`${name} has ${holders.length} holders: choose one with --uuid: ${each}`);
}

function questionOf({ name, owner, expires, state }: LockView, now: boolean): string {
  const whose = `End the lock ${printable(name)} of ${printable(owner)}`;
  return now
    ? `${whose} now? If it still runs, another may run beside it.`
    : `${whose}? It stays taken until its lease ends: that is at ${expires.toISOString()} now, and it may be ${state === "handed-off" ? "resumed" : "renewed"}.`;
}

function lockableOf(locks: LockTable, { name, kind }: LockView): Pick<ReturnType<LockTable["mutex"]>, "forceUnlock"> {
  if (kind === "mutex") return locks.mutex(name);
  return kind === "semaphore" ? locks.semaphore(name, { permits: 1 }) : locks.sharedMutex(name);
}
