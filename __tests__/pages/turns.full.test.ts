import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { LockTable } from "dynamutex";
import { type PagePrograms, pagePrograms } from "../support/page-programs.js";
import { testClient } from "../support/table.js";

/** What the reader's programs leave open. Each says when it works, and the preload when it gets a lock. */
const GIVEN = {
  "tell.ts": `
import { subscribe } from "node:diagnostics_channel";
subscribe("dynamutex:acquired", (message) => {
  console.log("acquired", (message as { takeover?: string }).takeover ?? "a free lock");
});
`,
  "serve.ts": `
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
export async function serve(signal: AbortSignal): Promise<void> {
  const server = setInterval(() => undefined, 1_000); // a held lock does not keep the process
  await once(signal, "abort");
  clearInterval(server);
  console.log("ends");
}
export async function work(signal: AbortSignal): Promise<void> {
  await sleep(50, undefined, { signal });
}
`,
  "customers.ts": `
import { setTimeout as sleep } from "node:timers/promises";
export const customers = Array.from({ length: 200 }, (_, index) => index);
export async function charge(customer: number, signal: AbortSignal): Promise<void> {
  await sleep(50, undefined, { signal });
  console.log("charged " + customer);
}
`,
  "migrate.ts": `
import { once } from "node:events";
import { exclusively } from "./bridge.js";
const old = new AbortController();
const withOldLock = async <R>(name: string, fn: (signal?: AbortSignal) => Promise<R>): Promise<R> => {
  console.log("the old lock of " + name);
  return await fn(old.signal);
};
console.log(await exclusively("a", async () => "under both", withOldLock));
const cut = exclusively("a", async (signal) => {
  old.abort(new Error("the old lock was lost"));
  if (!signal.aborted) await once(signal, "abort");
  throw signal.reason;
}, withOldLock);
console.log(await cut.catch((error) => error.message));
process.exit();
`,
};

let programs: PagePrograms;
let locks: LockTable;

beforeAll(async () => {
  programs = await pagePrograms({
    pages: ["docs/guides/leader-election.md", "docs/guides/locks.md", "docs/guides/migration.md"],
    given: GIVEN,
  });
  locks = new LockTable({ tableName: programs.tableName, client: testClient() });
});

afterAll(async () => {
  await locks.close();
  await programs[Symbol.asyncDispose]();
});

const start = (file: string) => programs.start(file, { NODE_OPTIONS: "--import=./tell.js" });

test("docs/guides/leader-election.md: a leader that gets SIGTERM resigns, and the next one leads without waiting for a lease", async () => {
  await using first = start("leader.ts");
  await first.printed("acquired a free lock");
  await using second = start("leader.ts");
  first.kill("SIGTERM");
  expect(await first.exit).toEqual({ code: 0, signal: null });
  expect(first.lines).toEqual(["acquired a free lock", "ends"]);
  await second.printed("acquired a free lock");
  second.kill("SIGINT"); // Ctrl-C
  expect(await second.exit).toEqual({ code: 0, signal: null });
});

test("docs/guides/leader-election.md: leaders that step down lead in turns", async () => {
  await using first = start("terms.ts");
  await first.printed("acquired a free lock");
  await using second = start("terms.ts");
  await second.printed("acquired a free lock", 2);
  await first.printed("acquired a free lock", 2);
  expect([...first.lines, ...second.lines].filter((line) => line !== "acquired a free lock")).toEqual([]);
});

test("docs/guides/locks.md: a batch releases the lock between two items, and goes on", async () => {
  await using batch = start("charges.ts");
  await batch.printed("charged 0");
  await using lock = await locks.mutex("charges").lock();
  const charged = batch.lines.filter((line) => line.startsWith("charged"));
  expect(charged.length).toBeLessThan(200);
  await lock.unlock();
  expect(await batch.exit).toEqual({ code: 0, signal: null });
  expect(batch.lines.filter((line) => line.startsWith("charged"))).toEqual(
    Array.from({ length: 200 }, (_, index) => `charged ${index}`),
  );
  expect(batch.lines.filter((line) => line === "acquired a free lock").length).toBeGreaterThan(1);
});

test("docs/guides/migration.md: the bridge works under both locks, and ends when the old one is lost", async () => {
  await using bridge = programs.start("migrate.ts");
  await bridge.exit;
  expect(bridge.lines).toEqual(["the old lock of a", "under both", "the old lock of a", "the old lock was lost"]);
});
