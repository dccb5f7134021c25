/**
 * Three hosts, one plotter, and jobs that come to the hosts in no particular turn. `node main.js` shows the queue as the table
 * has it, and who plots when, and checks that it is the order of arrival.
 */

import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { LockTable, type Mutex } from "dynamutex";
import { Program } from "../support/program.js";
import { runExample } from "../support/run-example.js";

/** The host that each job comes to. */
const ARRIVALS = ["b", "a", "c", "a", "c", "b"];

await runExample(async () => {
  await using locks = new LockTable({ tableName: process.env.TABLE_NAME ?? "locks", owner: "main" });
  await locks.create();
  const folder = mkdtempSync(join(tmpdir(), "dynamutex-example-"));
  try {
    const plotted = await plottedBy(locks.mutex("plotter", { fair: true }), join(folder, "output"));
    console.log(plotted.join("\n"));
    const expected = ARRIVALS.map((host, index) => `${host} plots job ${index + 1}`);
    const inOrder = plotted.join() === expected.join();
    console.log(`\nIn the order of arrival: ${inOrder ? "yes" : "no"}`);
    return inOrder;
  } finally {
    rmSync(folder, { recursive: true });
  }
});

/** @returns what the hosts print, in the order in which they do: all of them write to one file. */
async function plottedBy(plotter: Mutex, path: string): Promise<readonly string[]> {
  const output = openSync(path, "a");
  const start = (name: string) => new Program(new URL("./host.js", import.meta.url), [name], { output });
  await using a = start("a");
  await using b = start("b");
  await using c = start("c");
  closeSync(output);
  const hosts = new Map(Object.entries({ a, b, c }));
  {
    // Nobody's turn comes before all jobs are there.
    await using _busy = await plotter.lock();
    for (const [index, name] of ARRIVALS.entries()) {
      hosts.get(name)?.write(`job ${index + 1}`);
      console.log(`job ${index + 1} comes to ${name}; in the queue: ${await queueOf(plotter, index + 1)}`);
    }
  }
  for (const host of hosts.values()) host.end();
  await Promise.all([...hosts.values()].map((host) => host.exited));
  return readFileSync(path, "utf8").trim().split("\n");
}

/** @returns who waits, once they are so many. */
async function queueOf(mutex: Mutex, places: number): Promise<string> {
  for (;;) {
    const { waiters = [] } = (await mutex.inspect()) ?? {};
    if (waiters.length >= places) return waiters.map(({ owner }) => owner).join(" ");
    await sleep(20);
  }
}
