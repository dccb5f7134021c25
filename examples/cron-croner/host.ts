/**
 * One host of a schedule that several have, with croner. `node host.js NAME`
 *
 * The run of a period is the table's to give, by its own clock: a host whose clock is wrong asks at the wrong moment,
 * and neither repeats a run nor keeps the others from theirs. The hold lies between two runs, should a host ask at the
 * end of one period and another at the beginning of the next.
 */

import { setTimeout as sleep } from "node:timers/promises";
import { Cron } from "croner";
import { LockTable } from "dynamutex";

const PERIOD_MS = 2_000;

const host = process.argv[2] ?? "a";
const locks = new LockTable({ tableName: process.env.TABLE_NAME ?? "locks", owner: host, ttlMs: 4_000 });
const mutex = locks.mutex("send-invoices");

const schedule = new Cron("*/2 * * * * *", { catch: (error) => console.error(host, error) }, async () => {
  const turn = await mutex.tryRun((lock) => sendInvoices(lock.tick, lock.signal), {
    everyMs: PERIOD_MS,
    holdAtLeastMs: PERIOD_MS / 2,
  });
  if (!turn.ran) console.log(`${host} left it to ${turn.holder?.owner ?? "its own last run"}: ${turn.reason}`);
});

async function sendInvoices(period: number | undefined, signal: AbortSignal): Promise<void> {
  console.log(`${host} runs ${new Date(period ?? 0).toISOString()}`);
  await sleep(50, undefined, { signal });
}

// A run that is under way ends as it would; then there is nothing left to do.
for (const signal of ["SIGTERM", "SIGINT"]) process.on(signal, () => schedule.stop());
