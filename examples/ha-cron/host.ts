/**
 * One host of a highly available cron: it has the same schedule as the others, and runs the job at those ticks at
 * which it gets the lock. `node host.js NAME`; its standard output is the log.
 */

import { setTimeout as sleep } from "node:timers/promises";
import { findLockLost, type Lock, LockTable } from "dynamutex";
import { type HostEvent, writeEvent } from "./events.js";
import { ticks } from "./schedule.js";
import { JOB_MS, JOB_NAME, STEP_MS, TABLE_NAME, TICK_MS, TTL_MS } from "./settings.js";

const name = process.argv[2] ?? "a";
const stop = new AbortController();
for (const signal of ["SIGTERM", "SIGINT"]) process.on(signal, () => stop.abort());
const log = (event: HostEvent): void => writeEvent(process.stdout.fd, name, event);

await using locks = new LockTable({ tableName: TABLE_NAME, owner: name, ttlMs: TTL_MS });
const mutex = locks.mutex(JOB_NAME);

log({ kind: "started" });
for await (const tick of ticks(TICK_MS, stop.signal)) {
  try {
    const turn = await mutex.tryRun((lock) => buildReport(tick, lock));
    if (!turn.ran) log({ kind: "left", tick, to: turn.holder?.owner ?? "another host" });
  } catch (error) {
    // What went wrong at one tick must not keep the host from the next.
    const lost = findLockLost(error);
    log(lost === undefined ? { kind: "failed", message: String(error) } : { kind: "lost", reason: lost.reason });
  }
}
log({ kind: "stopped" });

/** The job: many small steps, none of which may happen beside those of another host. */
async function buildReport(tick: number, lock: Lock): Promise<void> {
  log({ kind: "began", tick, remainingMs: lock.remainingMs });
  for (let doneMs = 0; doneMs < JOB_MS; doneMs += STEP_MS) {
    await sleep(STEP_MS, undefined, { signal: lock.signal });
    lock.assertHeld();
    log({ kind: "worked", remainingMs: lock.remainingMs });
  }
  log({ kind: "finished" });
}
