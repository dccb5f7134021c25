import { describe, expect, test } from "@jest/globals";
import { findLockLost, LockConfigError, LockTable, type SemaphoreOptions, systemClock } from "../../../lib/index.js";
import { listLocks } from "../../../lib/operations/inspect.js";
import { MemoryTable } from "../../../lib/testing/memory-table.js";
import { hear } from "../../support/diagnostics.js";
import { watch } from "../../support/eventually.js";
import { ManualTime } from "../../support/manual-time.js";
import { MemoryHost } from "../../support/memory-host.js";
import { useScene } from "../../support/scene.js";

const NAME = "api";

function twoHosts() {
  const time = new ManualTime();
  const one = new MemoryHost(time, { owner: "one" });
  return { time, one, other: new MemoryHost(time, { owner: "other", table: one.table }) };
}

describe("inspect", () => {
  test("shows who holds which permit, in the order of their numbers", async () => {
    const { one, other } = twoHosts();
    await using first = await one.semaphore(NAME, { permits: 3 }).lock({ data: { order: 1 } });
    await using second = await other.semaphore(NAME, { permits: 3 }).lock();
    const state = await other.semaphore(NAME, { permits: 3 }).inspect();
    const holders = [
      { name: NAME, kind: "semaphore", permit: first.permit, owner: "one", uuid: first.uuid, data: { order: 1 } },
      { name: NAME, kind: "semaphore", permit: second.permit, owner: "other", uuid: second.uuid },
    ].sort((one, other) => one.permit - other.permit);
    expect(state).toMatchObject({ permits: 3, holders, waiters: [] });
  });

  test("shows a dead holder until its permit is taken again", async () => {
    const { time, one, other } = twoHosts();
    await one.semaphore(NAME, { permits: 1, ttlMs: 1_000, autoRenew: false }).lock();
    await time.advance(5_000);
    const semaphore = other.semaphore(NAME, { permits: 1 });
    const { holders } = await semaphore.inspect();
    expect(holders).toMatchObject([{ owner: "one" }]);
    expect(holders[0]?.expires.getTime()).toBeLessThan(time.now);
    await using _permit = await semaphore.lock();
    expect((await semaphore.inspect()).holders).toMatchObject([{ owner: "other" }]);
  });
});

describe("forceUnlock", () => {
  test("ends the acquisition with this uuid; its permit stays taken to the end of its lease", async () => {
    const { time, one, other } = twoHosts();
    const held = await one.semaphore(NAME, { permits: 1, ttlMs: 1_000 }).lock();
    const semaphore = other.semaphore(NAME, { permits: 1 });
    expect(await semaphore.forceUnlock(held.uuid)).toBe(true);
    expect(await semaphore.tryLock()).toBeNull();
    await time.advance(1_001);
    expect(findLockLost(held.signal.reason)?.reason).toBe("forced");
    await using permit = await semaphore.tryLock();
    expect(permit?.permit).toBe(0);
    await expect(held.unlock()).rejects.toMatchObject({ reason: "forced" });
  });

  test("with now frees the permit at once", async () => {
    const { one, other } = twoHosts();
    const held = await one.semaphore(NAME, { permits: 1 }).lock();
    const semaphore = other.semaphore(NAME, { permits: 1 });
    expect(await semaphore.forceUnlock(held.uuid, { now: true })).toBe(true);
    await using permit = await semaphore.tryLock();
    expect(permit?.permit).toBe(0);
  });

  test("finds nobody under a uuid that holds no permit, and sends no write", async () => {
    const { one } = twoHosts();
    const semaphore = one.semaphore(NAME, { permits: 2 });
    const held = await semaphore.lock();
    await held.unlock();
    one.told();
    expect(await semaphore.forceUnlock(held.uuid)).toBe(false);
    expect(one.told()).toEqual(["consistent query semaphore#0000"]);
    await expect(semaphore.forceUnlock("")).rejects.toMatchObject({ code: "LOCK_CONFIG", option: "uuid" });
  });
});

describe("hosts that know of different numbers of permits", () => {
  test("each uses as many as it knows of, so that the larger number counts", async () => {
    const { one, other } = twoHosts();
    const [two, three] = [one.semaphore(NAME, { permits: 2 }), other.semaphore(NAME, { permits: 3 })];
    const held = [await two.lock(), await two.lock()];
    await using third = await three.lock();
    expect(third.permit).toBe(2);
    expect(await three.tryLock()).toBeNull();
    expect(await two.tryLock()).toBeNull();
    await held[0]?.unlock();
    await using again = await two.tryLock();
    expect(again?.permit).toBe(held[0]?.permit);
  });

  test("a waiter of the one with fewer waits for its own, and not for those beyond", async () => {
    const { time, one, other } = twoHosts();
    const three = other.semaphore(NAME, { permits: 3, ttlMs: 60_000 });
    const held = [await three.lock(), await three.lock(), await three.lock()];
    const waiting = one.semaphore(NAME, { permits: 1 }).lock();
    const watched = watch(waiting);
    await held.find(({ permit }) => permit === 2)?.unlock();
    await time.advance(5_000);
    expect(watched.settled).toBe(false);
    await held.find(({ permit }) => permit === 0)?.unlock();
    await time.advanceUntil(() => watched.settled);
    expect((await waiting).permit).toBe(0);
  });

  test.each([false, true])(
    "a waiter of the one with fewer looks no more often, and marks none of those beyond, where their holder has died: fair %s",
    async (fair) => {
      const time = new ManualTime();
      // A look takes one page.
      const table = new MemoryTable({ pageItems: 100 });
      const [one, other, dead] = ["one", "other", "dead"].map((owner) => new MemoryHost(time, { owner, table })) as [
        MemoryHost,
        MemoryHost,
        MemoryHost,
      ];
      const options = { fair, ttlMs: 600_000, poll: { minMs: 100, maxMs: 100 } };
      await using _held = await other.semaphore(NAME, { ...options, permits: 1 }).lock();
      const three = dead.semaphore(NAME, { ...options, permits: 3, ttlMs: 1_000 });
      await three.lock();
      const kept = await three.lock({ holdAtLeastMs: 1_000 });
      await kept.unlock();
      dead.fate = () => "lost";
      await time.advance(5_000);
      const waiting = one.semaphore(NAME, { ...options, permits: 1 }).lock({ waitMs: 25_000 });
      const failure = waiting.catch((error: unknown) => error);
      await time.advance(5_000);
      const before = one.sent.length;
      await time.advance(10_000);
      expect(one.sent.length - before).toBeLessThan(150);
      await time.advance(10_000);
      expect(await failure).toMatchObject({ code: "LOCK_TIMEOUT", holder: { owner: "other" } });
      const marks = one.told().filter((request) => request.startsWith("want"));
      expect(new Set(marks)).toEqual(new Set(["want semaphore#0000"]));
    },
  );

  test("the channel tells once a process and number", async () => {
    const told = hear("dynamutex:permits-differ");
    const { one, other } = twoHosts();
    const semaphore = one.semaphore(NAME, { permits: 2 });
    await using _held = await other.semaphore(NAME, { permits: 3 }).lock();
    for (let count = 0; count < 3; count += 1) {
      await using _first = await semaphore.lock();
      await using _second = await semaphore.tryLock();
    }
    expect(told).toEqual([{ name: NAME, permits: 2, others: 3, owner: "other" }]);
  });
});

test("list() shows the permits, with their kind, among the locks of other kinds", async () => {
  const { one } = twoHosts();
  await using _mutex = await one.mutex("a").lock();
  await using permit = await one.semaphore("b", { permits: 2 }).lock();
  await using _reader = await one.sharedMutex("c").shared.lock();
  await using _writer = await one.sharedMutex("d").exclusive.lock();
  const infos = [];
  for await (const info of listLocks(one.session, {})) infos.push(info);
  expect(infos.map(({ name, kind }) => ({ name, kind }))).toEqual([
    { name: "a", kind: "mutex" },
    { name: "b", kind: "semaphore" },
    { name: "c", kind: "shared" },
    { name: "d", kind: "exclusive" },
  ]);
  expect(infos[1]?.uuid).toBe(permit.uuid);
});

describe("options", () => {
  const locks = new LockTable({ tableName: "locks", clock: new ManualTime().clock() });
  const make = (options: unknown) => () => locks.semaphore(NAME, options as SemaphoreOptions);

  test.each([
    ["0", 0],
    ["a negative number", -1],
    ["half a permit", 1.5],
    ["1001", 1_001],
    ["a string", "4"],
    ["NaN", Number.NaN],
    ["undefined", undefined],
  ])("permits must not be %s", (_, permits) => {
    expect(make({ permits })).toThrow(expect.objectContaining({ code: "LOCK_CONFIG", option: "permits" }));
  });

  test.each([[undefined], [{}], [{ ttlMs: 1_000 }]])("permits must not be missing: %j", (options) => {
    expect(make(options)).toThrow(LockConfigError);
    expect(make(options)).toThrow(/^permits: /);
  });

  test("fencing is refused, and what to use instead is said", () => {
    expect(make({ permits: 2, fencing: true })).toThrow(/^fencing: is an option of a mutex.* use a guard/);
  });

  test.each([{ once: 1 }, { everyMs: 60_000 }])("%j is refused, which is an option of a mutex", async (options) => {
    const semaphore = new MemoryHost(new ManualTime()).semaphore(NAME, { permits: 2 });
    const [option] = Object.keys(options);
    await expect(semaphore.tryLock(options as object)).rejects.toMatchObject({ code: "LOCK_CONFIG", option });
    await expect(semaphore.tryRun(() => 1, options as object)).rejects.toThrow(/is an option of a mutex/);
    await expect(semaphore.lock(options as object)).rejects.toMatchObject({ code: "LOCK_CONFIG", option });
  });

  test("options of the table are those of its semaphores, unless they say otherwise", () => {
    expect(make({ permits: 2, ttlMs: 10 })).toThrow(expect.objectContaining({ option: "ttlMs" }));
    expect(make({ permits: 2, ttlMs: 10_000, safetyMarginMs: 10_000 })).toThrow(/safetyMarginMs/);
  });

  test("a table without a sort key serves none, and says so", () => {
    const plain = new LockTable({ tableName: "locks", keys: { sort: null }, clock: new ManualTime().clock() });
    expect(() => plain.semaphore(NAME, { permits: 2 })).toThrow(/sort key/);
    expect(() => plain.semaphore(NAME, { permits: 2 })).toThrow(LockConfigError);
  });

  test.each(["", "x".repeat(2_049)])("a name must fit its key", (name) => {
    expect(() => locks.semaphore(name, { permits: 2 })).toThrow(expect.objectContaining({ option: "name" }));
  });
});

describe("on DynamoDB", () => {
  const scene = useScene();

  test("check() finds hosts that know of another number of permits", async () => {
    const [one, other] = [scene.host({ owner: "one" }), scene.host({ owner: "other" })];
    one.semaphore(scene.name, { permits: 2 });
    expect((await one.check()).problems.filter(({ code }) => code === "permits")).toEqual([]);
    await using _held = await other.semaphore(scene.name, { permits: 5 }).lock();
    const problem = (await one.check()).problems.find(({ code }) => code === "permits");
    expect(problem?.severity).toBe("warning");
    expect(problem?.message).toMatch(/has 2 permits here and 5 for other/);
    expect((await other.check()).problems.filter(({ code }) => code === "permits")).toEqual([]);
  });

  test("an uncontended cycle is a put and a delete, 2 write units", async () => {
    const semaphore = scene.host({ clock: systemClock() }).semaphore(scene.name, { permits: 4 });
    const permit = await semaphore.lock();
    await permit.unlock();
    expect(scene.proxy.counts()).toEqual({ PutItem: 1, DeleteItem: 1 });
    expect(scene.proxy.units()).toEqual({ read: 0, write: 2 });
  });

  test("a guess that is refused costs a write unit and a consistent query of one unit", async () => {
    await using _held = await scene
      .host({ tag: "one", clock: systemClock() })
      .semaphore(scene.name, { permits: 1 })
      .lock();
    const other = scene.host({ tag: "other", clock: systemClock() }).semaphore(scene.name, { permits: 1 });
    expect(await other.tryLock()).toBeNull();
    expect(scene.proxy.select({ client: "other" }).map(({ operation }) => operation)).toEqual(["PutItem", "Query"]);
    expect(scene.proxy.units({ client: "other" })).toEqual({ read: 1, write: 1 });
  });
});
