/**
 * One host of a schedule that several have, with node-cron. `node host.js NAME`
 *
 * The tick is the date for which node-cron calls the task, by the host's own clock: the row remembers it, and whoever
 * comes later with the same one, or with an earlier one, is told that it is done. So the hosts' clocks have to be right:
 * one that is ahead would bar the others. `everyMs` does without them, as in the example for croner.
 */

import { setTimeout as sleep } from "node:timers/promises";
import { LockTable } from "dynamutex";
import { schedule } from "node-cron";

const host = process.argv[2] ?? "a";
const locks = new LockTable({ tableName: process.env.TABLE_NAME ?? "locks", owner: host, ttlMs: 4_000 });
const mutex = locks.mutex("send-invoices");

const task = schedule("* * * * * *", async ({ date }) => {
  try {
    const turn = await mutex.tryRun((lock) => sendInvoices(date, lock.signal), { once: date });
    if (!turn.ran) console.log(`${host} left it to ${turn.holder?.owner ?? "its own last run"}: ${turn.reason}`);
  } catch (error) {
    console.error(host, error);
  }
});

async function sendInvoices(tick: Date, signal: AbortSignal): Promise<void> {
  console.log(`${host} runs ${tick.toISOString()}`);
  await sleep(50, undefined, { signal });
}

// A run that is under way ends as it would; then there is nothing left to do.
for (const signal of ["SIGTERM", "SIGINT"]) process.on(signal, () => task.destroy());
