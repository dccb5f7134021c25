/**
 * A host with jobs for a plotter that several hosts share: they are plotted in the order in which they came, to whichever host.
 * `node host.js NAME`; each line that it reads is a job.
 */

import { createInterface } from "node:readline";
import { LockTable } from "dynamutex";

const name = process.argv[2] ?? "a";
await using locks = new LockTable({ tableName: process.env.TABLE_NAME ?? "locks", owner: name });
const plotter = locks.mutex("plotter", { fair: true });

async function plot(job: string): Promise<void> {
  await using _lock = await plotter.lock({ waitMs: 60_000 });
  console.log(`${name} plots ${job}`);
}

const jobs: Promise<void>[] = [];
for await (const job of createInterface({ input: process.stdin })) jobs.push(plot(job));
await Promise.all(jobs);
