import { beforeEach, describe, expect, test } from "@jest/globals";
import type { LockTable } from "../../lib/index.js";
import { type RunCoordinatorOptions, runCoordinator } from "../../lib/node-cron/index.js";
import { TestTable } from "../../lib/testing/index.js";
import { watch } from "../support/eventually.js";

const LEASE_MS = 30_000;
const HOLD = { maxHoldMs: 60_000 };

let table: TestTable;
let hosts: readonly LockTable[];
beforeEach(() => {
  table = new TestTable({ time: "manual" });
  hosts = [table.host({ owner: "a" }), table.host({ owner: "b" }), table.host({ owner: "c" })];
});

const keyAt = (second: number, task = "invoices"): string =>
  `${task}:2026-11-01T06:00:${String(second).padStart(2, "0")}.000Z`;

const coordinators = (options?: RunCoordinatorOptions) => hosts.map((host) => runCoordinator(host, options));

/** What each host is told of one fire. All ask in the same turn. */
const ask = async (all: ReturnType<typeof coordinators>, key: string): Promise<boolean[]> =>
  await Promise.all(all.map((coordinator) => coordinator.shouldRun(key, LEASE_MS)));

const yes = (answers: readonly boolean[]): number => answers.filter((answer) => answer).length;

describe("a fire", () => {
  test("runs on one of three hosts, and each later one does", async () => {
    const all = coordinators();
    for (const second of [0, 1, 2]) {
      expect(yes(await ask(all, keyAt(second)))).toBe(1);
      await table.clock.advance(1_000);
    }
  });

  test("runs on nobody who asks for it later, whether or not its run is known to be over", async () => {
    const [first, second] = coordinators();
    expect(await first?.shouldRun(keyAt(0), LEASE_MS)).toBe(true);
    await table.clock.advance(100);
    expect(await second?.shouldRun(keyAt(0), LEASE_MS)).toBe(false);
    await first?.onComplete(keyAt(0));
    expect(await second?.shouldRun(keyAt(0), LEASE_MS)).toBe(false);
  });

  test("leaves nothing locked: the next one runs although nobody told of the end of the last", async () => {
    const [first, second] = coordinators();
    expect(await first?.shouldRun(keyAt(0), LEASE_MS)).toBe(true);
    await table.clock.advance(100);
    expect((await hosts[1]?.mutex("node-cron/invoices").inspect())?.uuid).toBeUndefined();
    expect(await second?.shouldRun(keyAt(1), LEASE_MS)).toBe(true);
  });

  test("of one task has nothing to do with those of another, also where a name has colons", async () => {
    const [first] = coordinators();
    expect(await first?.shouldRun(keyAt(0, "a"), LEASE_MS)).toBe(true);
    expect(await first?.shouldRun(keyAt(0, "a:b"), LEASE_MS)).toBe(true);
    expect(await first?.shouldRun(keyAt(0, "a:b"), LEASE_MS)).toBe(false);
  });

  test("rejects where the table does not answer, so that node-cron skips it", async () => {
    const [first] = coordinators();
    table.fail(Object.assign(new Error("no"), { name: "AccessDeniedException" }));
    await expect(first?.shouldRun(keyAt(0), LEASE_MS)).rejects.toMatchObject({ code: "LOCK_STORE" });
  });
});

describe("with maxHoldMs, a fire", () => {
  test("is skipped on all hosts while the run of an earlier one is on, and not after it", async () => {
    const all = coordinators(HOLD);
    const answers = await ask(all, keyAt(0));
    expect(yes(answers)).toBe(1);
    const runner = all[answers.indexOf(true)];
    await table.clock.advance(40_000);
    expect(await ask(all, keyAt(40))).toEqual([false, false, false]);
    await runner?.onComplete(keyAt(0));
    expect(yes(await ask(all, keyAt(41)))).toBe(1);
  });

  test("runs again after maxHoldMs where nobody tells of the end, and the late end releases nothing", async () => {
    const [first, second] = coordinators(HOLD);
    expect(await first?.shouldRun(keyAt(0), LEASE_MS)).toBe(true);
    await table.clock.advance(61_000);
    expect(await second?.shouldRun(keyAt(1), LEASE_MS)).toBe(true);
    await first?.onComplete(keyAt(0));
    expect((await hosts[0]?.mutex("node-cron/invoices").inspect())?.owner).toBe("b");
    expect(await first?.shouldRun(keyAt(2), LEASE_MS)).toBe(false);
  });

  test("keeps no close from ending: its lock counts as a section", async () => {
    const [first] = coordinators(HOLD);
    expect(await first?.shouldRun(keyAt(0), LEASE_MS)).toBe(true);
    const closing = watch(hosts[0]?.close({ drainMs: 1_000 }) ?? Promise.resolve());
    await table.clock.advance(15_000);
    expect(closing.settled).toBe(true);
  });
});

test.each([
  ["locks", () => runCoordinator({} as never)],
  ["options", () => runCoordinator(hosts[0] as LockTable, null as never)],
  ["prefix", () => runCoordinator(hosts[0] as LockTable, { prefix: 1 as never })],
  ["prefix", () => runCoordinator(hosts[0] as LockTable, { prefix: "p".repeat(2_048) })],
  ["prefix", () => runCoordinator(hosts[0] as LockTable, { prefix: `${undefined}/` })],
  ["maxHoldMs", () => runCoordinator(hosts[0] as LockTable, { maxHoldMs: 0 })],
  ["maxHoldMs", () => runCoordinator(hosts[0] as LockTable, { maxHoldMs: 3_600 })],
  ["maxhold", () => runCoordinator(hosts[0] as LockTable, { maxhold: 1 } as never)],
])("runCoordinator() refuses what cannot work, and names it: %s", (option, make) => {
  expect(make).toThrow(expect.objectContaining({ code: "LOCK_CONFIG", option }));
});

test.each(["", "invoices", ":2026-11-01T06:00:00.000Z", "invoices:6 o'clock", Symbol("key"), undefined, 7])(
  "a key that node-cron did not make is refused: %p",
  async (key) => {
    const refused = runCoordinator(hosts[0] as LockTable).shouldRun(key as string, LEASE_MS);
    await expect(refused).rejects.toMatchObject({ code: "LOCK_CONFIG", option: "key" });
  },
);
