import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { type Lockable, LockTable } from "../../lib/index.js";
import { TestTable } from "../../lib/testing/index.js";
import { testClient } from "../support/table.js";

/** Two hosts of one table. */
interface Hosts {
  readonly one: LockTable;
  readonly other: LockTable;
}

const client = testClient();

/** What a user swaps for one another. */
const TABLES: readonly (readonly [string, () => Hosts])[] = [
  [
    "DynamoDB",
    () => {
      const options = { tableName: `test-${randomUUID()}`, client };
      return { one: new LockTable({ ...options, owner: "one" }), other: new LockTable({ ...options, owner: "other" }) };
    },
  ],
  [
    "dynamutex/testing",
    () => {
      const table = new TestTable({ tableName: `test-${randomUUID()}` });
      return { one: table.host({ owner: "one" }), other: table.host({ owner: "other" }) };
    },
  ],
];

/** A hint of somebody else's, such as a fair waiter's place, is there. */
async function untilWaiting(count: number, waiters: () => Promise<readonly unknown[]>): Promise<void> {
  while ((await waiters()).length < count) await new Promise((resolve) => setTimeout(resolve, 10));
}

describe.each(TABLES)("on %s", (_, hosts) => {
  let one: LockTable;
  let other: LockTable;

  beforeAll(async () => {
    ({ one, other } = hosts());
    await one.create();
  });

  afterAll(async () => {
    await Promise.all([one.close(), other.close()]);
  });

  test("a flight is shared with other hosts, and its rows are nobody's lock", async () => {
    const value = { text: "a", list: [1, 2n ** 60n, null, true], bytes: new Uint8Array([1]), set: new Set(["x"]) };
    expect(await one.mutex("flight").singleFlight(() => value)).toBe(value);
    expect(await other.mutex("flight").singleFlight(() => "own", { freshMs: 600_000 })).toEqual(value);
    // A section in between keeps the result, and so does an unlock by force.
    const lock = await other.mutex("flight").lock();
    expect(await one.mutex("flight").forceUnlock(lock.uuid, { now: true })).toBe(true);
    await lock.unlock().catch(() => undefined);
    expect(await one.mutex("flight").singleFlight(() => "own", { freshMs: 600_000 })).toEqual(value);
    expect(await one.mutex("flight").inspect()).toBeNull();
    const kept = [];
    for await (const { name } of one.list({ prefix: "flight" })) expect(name).toBe("held by nobody");
    for await (const { name } of one.list({ prefix: "flight", includeFree: true })) kept.push(name);
    expect(kept).toEqual(["flight"]);
    expect(await other.mutex("flight").singleFlight(() => "next")).toBe("next");
  });

  test("a mutex excludes other hosts, names its holder, and is free after its section", async () => {
    const lock = await one.mutex("mutex").lock({ data: { job: "report" } });
    expect(await other.mutex("mutex").tryLock()).toBeNull();
    const missed = await other.mutex("mutex").tryRun(() => "never");
    const row = { owner: "one", uuid: lock.uuid, kind: "mutex", data: { job: "report" } };
    expect(missed).toMatchObject({ ran: false, reason: "held", holder: row });
    await expect(other.mutex("mutex").lock({ waitMs: 50 })).rejects.toMatchObject({ code: "LOCK_TIMEOUT" });
    const waiting = other.mutex("mutex").run(({ owner }) => owner);
    await lock.unlock();
    expect(await waiting).toBe("other");
    expect(await one.mutex("mutex").inspect()).toBeNull();
  });

  test("data that DynamoDB can store comes back as it was, and other data is refused", async () => {
    const data = { text: "a", big: 2n ** 70n, half: 0.5, list: [1, null], map: { on: true }, set: new Set(["a", "b"]) };
    await using lock = await one.mutex("data").lock({ data });
    expect((await other.mutex("data").inspect())?.data).toEqual(data);
    await lock.replaceData({ bytes: new Uint8Array([1, 2]) });
    expect((await other.mutex("data").inspect())?.data?.bytes).toEqual(new Uint8Array([1, 2]));
    await expect(lock.replaceData({ at: new Date(0) })).rejects.toMatchObject({ option: "data.at" });
  });

  test("fencing tokens grow from section to section", async () => {
    const tokens: bigint[] = [];
    for (const locks of [one, other, one]) {
      await locks.mutex("fenced", { fencing: true }).run(({ fencingToken }) => tokens.push(fencingToken));
    }
    const inOrder = [...new Set(tokens)].sort((before, after) => (before < after ? -1 : 1));
    expect(tokens).toEqual(inOrder);
  });

  test("a tick is granted once among all hosts", async () => {
    const ran = [];
    for (const locks of [one, other, one]) ran.push(await locks.mutex("cron").tryRun(({ tick }) => tick, { once: 7 }));
    expect(ran.map((result) => (result.ran ? result.value : result.reason))).toEqual([7, "done", "done"]);
    expect(await other.mutex("cron").tryRun(({ tick }) => tick, { once: 8 })).toMatchObject({ value: 8 });
  });

  test("a semaphore has so many permits, each with its number", async () => {
    const [mine, theirs] = [one, other].map((locks) => locks.semaphore("api", { permits: 2 }));
    const permits = [await mine?.lock(), await theirs?.lock()];
    expect(permits.map((permit) => permit?.permit).sort()).toEqual([0, 1]);
    expect(await mine?.tryLock()).toBeNull();
    expect((await theirs?.inspect())?.holders.map(({ owner }) => owner).sort()).toEqual(["one", "other"]);
    await permits[0]?.unlock();
    expect(await theirs?.tryRun(() => "ran")).toMatchObject({ value: "ran" });
    await permits[1]?.unlock();
  });

  test("a shared mutex lets many in on its shared side, or one on its exclusive side", async () => {
    const [mine, theirs] = [one.sharedMutex("catalogue"), other.sharedMutex("catalogue")];
    const readers = [await mine.shared.lock(), await theirs.shared.lock()];
    expect(await theirs.exclusive.tryLock()).toBeNull();
    for (const reader of readers) await reader.unlock();
    const writer = await theirs.exclusive.lock();
    expect(await mine.shared.tryLock()).toBeNull();
    expect((await mine.inspect()).exclusive).toMatchObject({ owner: "other", kind: "exclusive" });
    await writer.unlock();
  });

  test("a fair mutex is granted in the order of asking", async () => {
    const [mine, theirs] = [one.mutex("fair", { fair: true }), other.mutex("fair", { fair: true })];
    const order: string[] = [];
    const waiters = async () => (await one.mutex("fair", { fair: true }).inspect())?.waiters ?? [];
    const lock = await mine.lock();
    const first = theirs.run(() => order.push("other"));
    await untilWaiting(1, waiters);
    const second = mine.run(() => order.push("one"));
    await lock.unlock();
    await Promise.all([first, second]);
    expect(order).toEqual(["other", "one"]);
  });

  test("lockAll() takes all of them or none", async () => {
    const held = await other.mutex("b").lock();
    await expect(one.lockAll(["a", "b"], { waitMs: 50 })).rejects.toMatchObject({ code: "LOCK_TIMEOUT" });
    expect(await other.mutex("a").inspect()).toBeNull();
    await held.unlock();
    await using set = await one.lockAll(["a", "b"]);
    expect([set.held, await other.mutex("a").tryLock(), await other.mutex("b").tryLock()]).toEqual([true, null, null]);
  });

  test("a lock that was handed off is resumed once", async () => {
    const token = await (await one.mutex("order").lock()).handOff({ validForMs: 60_000 });
    expect(await one.mutex("order").tryLock()).toBeNull();
    const resumed = await other.mutex("order").resume(token);
    await expect(one.mutex("order").resume(token)).rejects.toMatchObject({ code: "LOCK_LOST" });
    await resumed.unlock();
    expect(await one.mutex("order").inspect()).toBeNull();
  });

  test("a guard has both of its forms, and writes go through while the lock is held", async () => {
    const { tableName } = one;
    const lock = await one.mutex("guarded").lock();
    const plain = await lock.guard();
    const condition = { TableName: tableName, ReturnValuesOnConditionCheckFailure: "ALL_OLD" };
    expect(plain.ConditionCheck).toMatchObject({ ...condition, Key: { name: { S: "guarded" }, sort: { S: "lock" } } });
    const document = await lock.guard({ document: true });
    expect(document.ConditionCheck).toMatchObject({ ...condition, Key: { name: "guarded", sort: "lock" } });
    const Put = { TableName: tableName, Item: { name: { S: "own" }, sort: { S: "item" } } };
    await lock.transactWrite([{ Put }]);
    const onTheRow = { Put: { TableName: tableName, Item: { name: { S: "guarded" }, sort: { S: "lock" } } } };
    await expect(lock.transactWrite([onTheRow])).rejects.toMatchObject({ option: "items.0" });
    expect(await other.mutex("guarded").forceUnlock(lock.uuid, { now: true })).toBe(true);
    await expect(lock.transactWrite([{ Put }])).rejects.toMatchObject({ code: "LOCK_LOST", reason: "forced" });
    expect(lock.signal.aborted).toBe(true);
    expect(await other.mutex("guarded").tryRun(() => "free")).toMatchObject({ value: "free" });
  });

  test("list() shows what is held, by the kind of its lock", async () => {
    await using mutex = await one.mutex("listed-mutex").lock();
    await using permit = await one.semaphore("listed-api", { permits: 2 }).lock();
    await using reader = await other.sharedMutex("listed-data").shared.lock();
    const listed = [];
    for await (const { name, kind, owner } of other.list({ prefix: "listed-" }))
      listed.push(`${name} ${kind} ${owner}`);
    expect(listed.sort()).toEqual(["listed-api semaphore one", "listed-data shared other", "listed-mutex mutex one"]);
    expect([mutex.held, permit.held, reader.held]).toEqual([true, true, true]);
  });

  test("check() finds a usable table, on which everything is allowed", async () => {
    const { permissions, ...report } = await other.check();
    expect(report).toEqual({
      tableName: other.tableName,
      usable: true,
      problems: [],
      table: {
        status: "ACTIVE",
        partition: "name",
        sort: "sort",
        billing: "on-demand",
        replicas: [],
        consistency: undefined,
      },
      ttl: { status: "ENABLED", attribute: "purge" },
      batches: { usable: true, advice: undefined },
    });
    expect(Object.entries(permissions).sort()).toEqual(
      "ConditionCheckItem DeleteItem DescribeTable DescribeTimeToLive GetItem PutItem Query Scan UpdateItem"
        .split(" ")
        .map((action) => [action, "allowed"]),
    );
  });

  test("what cannot work is refused in the same words", async () => {
    const { exclusive } = one.sharedMutex("catalogue");
    const lockables: readonly Lockable[] = [one.mutex("m"), one.semaphore("s", { permits: 1 }), exclusive];
    for (const lockable of lockables) {
      await expect(lockable.lock({ waitMs: -1 })).rejects.toMatchObject({ code: "LOCK_CONFIG", option: "waitMs" });
    }
    expect(() => one.mutex("")).toThrow("name: must be a non-empty string");
    expect(() => one.semaphore("s", { permits: 0 })).toThrow(/^permits: /);
    await expect(one.lockAll(["a", "a"])).rejects.toMatchObject({ code: "LOCK_CONFIG" });
  });

  test("close() ends those who wait, and revokes those who do not end in time", async () => {
    const closing = hosts();
    await closing.one.create();
    const lock = await closing.one.mutex("shutdown").lock();
    const waiting = closing.one.mutex("shutdown").lock();
    const closed = closing.one.close({ drainMs: 0 });
    await expect(waiting).rejects.toMatchObject({ code: "LOCK_CLOSED" });
    await expect(lock.unlock()).rejects.toMatchObject({ code: "LOCK_LOST", reason: "closed" });
    await expect(closed).rejects.toMatchObject({ name: "AggregateError" });
    await expect(closing.one.mutex("shutdown").lock()).rejects.toMatchObject({ code: "LOCK_CLOSED" });
    await closing.other.close();
  });
});
