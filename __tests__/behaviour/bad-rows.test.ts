import { DeleteItemCommand, PutItemCommand } from "@aws-sdk/client-dynamodb";
import { marshall } from "@aws-sdk/util-dynamodb";
import { describe, expect, test } from "@jest/globals";
import type { LockInfo, LockTable, MutexOptions } from "../../lib/index.js";
import { Call } from "../../lib/taking/call.js";
import { watch } from "../support/eventually.js";
import { ManualTime } from "../support/manual-time.js";
import { MemoryHost } from "../support/memory-host.js";
import { type Attributes, rowOf, useScene } from "../support/scene.js";
import { testClient } from "../support/table.js";

const scene = useScene();
const client = testClient();

/** Later than any Date. */
const NEVER = 9e15;

const BAD: readonly (readonly [string, Attributes])[] = [
  ["an `expires` that no Date holds", { expires: NEVER }],
  ["an `acquired` that no Date holds", { acquired: NEVER }],
  ["an `expires` before 1970", { expires: -1 }],
  ["a `wanted` of another type", { wanted: "soon" }],
  ["a `tick` of another type", { tick: [7] }],
  ["`permits` of another type", { permits: "4" }],
  ["`data` that are no map", { data: "mine" }],
  ["a `fence` that is no whole number", { fence: 1.5 }],
];

const DELETE_COMMAND = /aws dynamodb delete-item --table-name (\S+) --key '(\{.*?\}\})'/;

/** Does what the message says that an operator may do. */
async function removeAsTold(message: string): Promise<void> {
  const [, TableName, key = ""] = DELETE_COMMAND.exec(message) ?? [];
  await client.send(new DeleteItemCommand({ TableName, Key: JSON.parse(key) }));
}

async function all(locks: LockTable): Promise<LockInfo[]> {
  const listed: LockInfo[] = [];
  for await (const lock of locks.list({ prefix: scene.name })) listed.push(lock);
  return listed.sort((one, other) => (one.name < other.name ? -1 : 1));
}

describe.each(BAD)("a row with %s", (_case, attributes) => {
  test("trap 47: who waits for the lock is told at once, and how to remove it; then the lock is free", async () => {
    const time = new ManualTime();
    // Over by now, whatever it is: it is not overwritten either.
    await scene.put(rowOf({ expires: 1, ...attributes }));
    const before = await scene.row();
    const mutex = scene.host({ clock: time.clock() }).mutex(scene.name);
    const failure = await mutex.lock({ waitMs: 5_000 }).catch((error: unknown) => error);
    expect(failure).toMatchObject({ code: "LOCK_STORE", transient: false });
    expect(await scene.row()).toEqual(before);
    await removeAsTold(String(failure));
    await (await mutex.lock()).unlock();
  });

  test("trap 47: it is shown as bad, beside the others", async () => {
    const good = `${scene.name}-good`;
    await scene.put(rowOf(attributes));
    await scene.put(rowOf(), good);
    const locks = scene.host();
    const problem = expect.stringMatching(DELETE_COMMAND);
    const shown = { uuid: undefined, owner: "elsewhere#1", expires: new Date(0), problem };
    const listed = await all(locks);
    expect(listed).toMatchObject([
      { name: scene.name, kind: "mutex", ...shown },
      { name: good, uuid: "somebody-else" },
    ]);
    expect(listed[1]).not.toHaveProperty("problem");
    expect(await locks.mutex(scene.name, { fair: true }).inspect()).toMatchObject({ ...shown, waiters: [] });
  });
});

describe("bad rows of other kinds", () => {
  const PLACE = `queue#${"7".padStart(38, "0")}`;

  async function put(sort: string, attributes: Attributes): Promise<void> {
    const Item = marshall({ name: scene.name, sort, ...rowOf(attributes) });
    await client.send(new PutItemCommand({ TableName: scene.tableName, Item }));
  }

  test("trap 47: a permit is shown among the others, and check() says so", async () => {
    const locks = scene.host();
    const semaphore = locks.semaphore(scene.name, { permits: 4 });
    await put("semaphore#0000", { expires: NEVER });
    await put("semaphore#0001", { uuid: "theirs", permits: 4 });
    const { holders } = await semaphore.inspect();
    expect(holders).toMatchObject([
      { permit: 0, kind: "semaphore", uuid: undefined, problem: expect.stringContaining("its expires must be") },
      { permit: 1, uuid: "theirs" },
    ]);
    const { usable, problems } = await locks.check();
    expect(usable).toBe(true);
    expect(problems.filter(({ code }) => code === "row")).toEqual([
      { code: "row", severity: "warning", message: holders[0]?.problem },
    ]);
    // One row is in nobody's way who wants to remove another.
    expect(await semaphore.forceUnlock("theirs", { now: true })).toBe(true);
  });

  test("trap 47: a place is shown in its queue, and both sides of a shared mutex are", async () => {
    const locks = scene.host();
    await scene.put(rowOf());
    await put(PLACE, { acquired: NEVER });
    await put("writer", { expires: NEVER });
    await put("reader#00000000-0000-4000-8000-000000000000", { tick: "7" });
    const problem = expect.stringMatching(DELETE_COMMAND);
    const mutex = await locks.mutex(scene.name, { fair: true }).inspect();
    expect(mutex).toMatchObject({ uuid: "somebody-else", waiters: [{ ticket: 7n, sections: 0, problem }] });
    const { exclusive, shared } = await locks.sharedMutex(scene.name).inspect();
    expect([exclusive, ...shared]).toMatchObject([
      { kind: "exclusive", problem },
      { kind: "shared", problem },
    ]);
  });
});

test("trap 47: an attribute that is called like a property of all objects is one like any other", async () => {
  const { uuid: _, ...free } = rowOf({ expires: 0, fence: 7 });
  const key = marshall({ name: scene.name, sort: "lock", ...free });
  const Item = Object.fromEntries([...Object.entries(key), ["__proto__", { N: "5" }], ["constructor", { S: "x" }]]);
  await client.send(new PutItemCommand({ TableName: scene.tableName, Item }));
  const mutex = scene.host().mutex(scene.name);
  const lock = await mutex.lock();
  expect(await mutex.inspect()).toMatchObject({ uuid: lock.uuid });
  await lock.unlock();
});

test.each<[string, MutexOptions, boolean, "behind" | "ahead of"]>([
  ["a fenced take", { fencing: true }, false, "behind"],
  ["a fenced take", { fencing: true }, false, "ahead of"],
  ["a take for a tick", {}, true, "behind"],
  ["a fenced take for a tick", { fencing: true }, true, "behind"],
  ["a fenced take for a tick", { fencing: true }, true, "ahead of"],
])(
  "trap 47: %s puts a row back whose token is no whole number, and nobody gets the lock: %p, %p, %p the time",
  async (_, options, isTick, where) => {
    const at = (tick: number) => (isTick ? { once: tick } : {});
    const time = new ManualTime();
    const mutex = scene.host({ clock: time.clock() }).mutex(scene.name, options);
    // This process then knows the time and what the row remembers, so it takes the row without reading it.
    await (await mutex.tryLock(at(1)))?.unlock();
    if (where === "behind") await time.advance(10_000);
    await scene.put({ ...(await scene.row()), fence: where === "behind" ? 1.5 : time.now + 1_000.5 });
    const before = await scene.row();
    scene.proxy.reset();
    const problem = /its fence must be a whole number.*aws dynamodb delete-item/s;
    const refused = { code: "LOCK_STORE", message: expect.stringMatching(problem) };
    await expect(mutex.tryLock(at(2))).rejects.toMatchObject(refused);
    expect(await scene.row()).toEqual(before);
    expect(scene.proxy.counts()).toEqual({ UpdateItem: 1, PutItem: 1 });
    await expect(scene.host().mutex(scene.name, options).tryLock(at(2))).rejects.toThrow(problem);
  },
);

test("a row with fractions is one of ours: watched, marked and taken over", async () => {
  const time = new ManualTime();
  await scene.put(rowOf({ expires: time.now + 60_000.5, ttlMs: 9_999.5, wanted: time.now + 0.25 }));
  const mutex = scene.host({ clock: time.clock() }).mutex(scene.name);
  const locking = mutex.lock();
  const watched = watch(locking);
  await time.sleepUntil(() => watched.settled);
  expect(time.elapsed).toBeLessThan(60_000);
  await (await locking).unlock();
});

test("trap 47: a call whose timer meets something that throws is settled with that", async () => {
  const time = new ManualTime();
  const call = new Call(new MemoryHost(time).session, "x", { isPatient: true, waitMs: 1_000 });
  call.holderNow = () => {
    throw new RangeError("Invalid time value");
  };
  const waiting = call.begin(() => undefined);
  const failed = expect(waiting).rejects.toThrow("Invalid time value");
  await time.advance(1_000);
  await failed;
  expect(time.timers).toBe(0);
});
