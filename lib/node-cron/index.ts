/**
 * Scheduled tasks of node-cron that run on one host each time, by locks on DynamoDB. node-cron, 4.4 or newer, is no dependency of
 * the package: what is here has the shape of its `RunCoordinator`.
 *
 * @packageDocumentation
 */

import * as z from "zod/mini";
import { LockConfigError } from "../errors.js";
import type { Lock, LockTable } from "../index.js";
import { durationOrForever, notInSeconds, optionsCheck, partOfName } from "../options/check.js";
import type { OptionsCheck } from "../options/options-check.js";

/** node-cron's `RunCoordinator`: give it to `setRunCoordinator()`, or to a task as `runCoordinator`. */
export interface RunCoordinator {
  /**
   * Whether this host is to run a fire.
   *
   * @param key the task's name and the fire's date, as node-cron makes it: `send-invoices:2026-11-01T06:00:00.000Z`.
   * @param ttlMs node-cron's `distributedLease`. It is not used: the lock renews itself while it is held.
   * @throws `LockConfigError` for a key of another form. @throws `LockStoreError` if the table does not answer: node-cron then
   * skips the fire, with the reason `coordinator-error`.
   */
  shouldRun(key: string, ttlMs: number): Promise<boolean>;
  /** The run of a fire is over: its lock is released, if it was kept and not lost. */
  onComplete(key: string): Promise<void>;
}

/** What {@link runCoordinator} takes. */
export interface RunCoordinatorOptions {
  /**
   * Keeps a task's lock while it runs, for so long at most, in ms: a fire that comes meanwhile is skipped on all hosts. Node-cron
   * does not tell of the end of every run: not after a `stop()`, nor for a background task whose child dies. The lock is then
   * free after `maxHoldMs` and up to the table's `ttlMs`. Default: the lock is released before the run begins, and fires may overlap.
   */
  readonly maxHoldMs?: number | undefined;
  /** What the name of a task's lock begins with; the task's name follows. Default `node-cron/`. */
  readonly prefix?: string | undefined;
}

const check: OptionsCheck<RunCoordinatorOptions> = optionsCheck(["runCoordinator()"], () => ({
  maxHoldMs: z.optional(durationOrForever(1_000).check(notInSeconds())),
  prefix: z.optional(partOfName()),
}));

/**
 * Lets each fire of a `distributed` task run on one host. A fire's date is a tick, which the row of the lock remembers: it is
 * granted at most once, ever, and none is that is not later than the last. A run that fails is not repeated.
 *
 * Hosts must give a task the same name and schedule, and different tasks different names. Their clocks must be right to less than the time between
 * two fires: the date is that of the host. A host whose clock is ahead blocks the others until their dates have come.
 *
 * @throws `LockConfigError` if an option cannot work.
 *
 * @example
 * // import { runCoordinator } from "dynamutex/node-cron";
 * const coordinator = runCoordinator(locks);
 * // For all tasks: setRunCoordinator(coordinator). Or for one:
 * const options = { name: "send-invoices", distributed: true, runCoordinator: coordinator };
 * // schedule("0 6 * * *", sendInvoices, options);
 */
export function runCoordinator(locks: Pick<LockTable, "mutex">, options: RunCoordinatorOptions = {}): RunCoordinator {
  if (typeof locks?.mutex !== "function") throw new LockConfigError("locks", locks, "must be a LockTable");
  const { maxHoldMs, prefix = "node-cron/" } = check(options);
  const mutexOf = (task: string) => locks.mutex(`${prefix}${task}`, { maxHoldMs });
  // What cannot work is refused now, and not by the first fire.
  try {
    mutexOf("t");
  } catch (error) {
    if (!(error instanceof LockConfigError) || error.option !== "name") throw error;
    const remedy = "must leave room for a task's name in the 2048 bytes of DynamoDB's key, with the table's keyPrefix";
    throw new LockConfigError("prefix", prefix, remedy);
  }
  const kept = new Map<string, Lock>();
  const onComplete = async (key: string): Promise<void> => {
    const lock = kept.get(key);
    kept.delete(key);
    await lock?.unlock();
  };
  return {
    async shouldRun(key) {
      const { task, date } = fireOf(key);
      const lock = await mutexOf(task).tryLock({ once: date });
      if (lock === null) return false;
      kept.set(key, lock);
      // The tick is granted, so its run must not wait for the release, nor be told of a loss.
      const leave = (): void => void onComplete(key).catch(() => undefined);
      if (maxHoldMs === undefined) leave();
      else lock.signal.addEventListener("abort", leave, { once: true });
      return true;
    },
    onComplete,
  };
}

const KEY = /^(?<task>.+):(?<date>(?:\d{4}|[+-]\d{6})-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z)$/s;

function fireOf(key: string): { readonly task: string; readonly date: Date } {
  const { task = "", date = "" } = (typeof key === "string" ? KEY.exec(key)?.groups : undefined) ?? {};
  if (task !== "") return { task, date: new Date(date) };
  throw new LockConfigError("key", key, "must be what node-cron makes of a task's name and the date of a fire");
}
