import { describe, expect, test } from "@jest/globals";
import type { Lock, MutexOptions } from "../../lib/index.js";
import { hear } from "../support/diagnostics.js";
import { eventually, watch } from "../support/eventually.js";
import { duplicate, resetAfter, resetBefore, status500 } from "../support/fault-proxy.js";
import { ManualTime } from "../support/manual-time.js";
import { rowOf, useScene } from "../support/scene.js";

const scene = useScene();

const TTL_MS = 30_000;
const POLL = { poll: { minMs: 250, maxMs: 250 } };

const renewals = { client: "holder", operation: "UpdateItem" };

async function held(time: ManualTime): Promise<Lock> {
  return await scene.host({ clock: time.clock(), tag: "holder" }).mutex(scene.name).lock();
}

function operator(time: ManualTime) {
  return scene.host({ clock: time.clock(), tag: "operator" }).mutex(scene.name);
}

describe("forceUnlock()", () => {
  test("takes the uuid off and leaves the rest, with one write", async () => {
    const forced = hear("dynamutex:forced");
    const time = new ManualTime();
    const lock = await held(time);
    const { uuid, ...rest } = (await scene.row()) as Record<string, unknown>;
    expect(await operator(time).forceUnlock(lock.uuid)).toBe(true);
    expect(uuid).toBe(lock.uuid);
    expect(await scene.row()).toEqual(rest);
    expect(scene.proxy.select({ client: "operator" }).map(({ operation }) => operation)).toEqual(["UpdateItem"]);
    expect(forced).toEqual([{ name: scene.name, uuid: lock.uuid, now: false }]);
    expect(await operator(time).inspect()).toMatchObject({ uuid: undefined, expires: lock.expires });
  });

  test.each([
    ["expired", 0],
    ["unchanged", 3_600_000], // trusts no clock, and its own is wrong
  ] as const)(
    "nobody enters before the old lease ends, though its holder is told at its next renewal; then somebody does: takeover %s",
    async (takeover, aheadMs) => {
      const time = new ManualTime();
      const lock = await held(time);
      const contender = scene.host({ clock: time.clock({ aheadMs }) }).mutex(scene.name, { takeover, ...POLL });
      const locking = contender.lock();
      const watched = watch(locking);
      await scene.quiet();
      await operator(time).forceUnlock(lock.uuid);
      await scene.play(time, () => !lock.held, 250);
      expect(time.elapsed).toBe(TTL_MS / 2);
      expect(lock.signal.reason).toMatchObject({ code: "LOCK_LOST", reason: "forced" });
      await expect(lock.unlock()).rejects.toBe(lock.signal.reason);
      await scene.play(time, () => watched.settled, 250);
      expect(time.elapsed).toBeGreaterThanOrEqual(TTL_MS);
      expect(time.elapsed).toBeLessThanOrEqual(TTL_MS + 1_000);
      await (await locking).unlock();
      expect(await scene.row()).toBeUndefined();
    },
  );

  test("with now, the lock is free at once, before the old holder learns of it", async () => {
    const forced = hear("dynamutex:forced");
    const time = new ManualTime();
    const lock = await held(time);
    expect(await operator(time).forceUnlock(lock.uuid, { now: true })).toBe(true);
    expect(await operator(time).inspect()).toBeNull();
    const next = await operator(time).tryLock();
    expect([lock.held, next?.held]).toEqual([true, true]);
    await expect(lock.extend()).rejects.toMatchObject({ reason: "stolen" });
    expect(next?.held).toBe(true);
    await next?.unlock();
    expect(forced).toEqual([{ name: scene.name, uuid: lock.uuid, now: true }]);
  });

  test("with now, what a row remembers stays", async () => {
    await scene.put(rowOf({ fence: 7, tick: 8 }));
    const mutex = scene.host().mutex(scene.name);
    expect(await mutex.forceUnlock("somebody-else", { now: true })).toBe(true);
    expect(await scene.row()).toMatchObject({ fence: 7, tick: 8, expires: 0 });
    await (await mutex.tryLock())?.unlock();
    expect(await scene.row()).toMatchObject({ fence: 7, tick: 8, expires: 0 });
  });

  test.each([false, true])("another's uuid, no uuid and no row are answered with false, with now: %s", async (now) => {
    const mutex = scene.host().mutex(scene.name);
    expect(await mutex.forceUnlock("gone", { now })).toBe(false);
    await scene.put(rowOf());
    const before = await scene.row();
    expect(await mutex.forceUnlock("gone", { now })).toBe(false);
    expect(await scene.row()).toEqual(before);
    expect(await mutex.forceUnlock("somebody-else")).toBe(true);
    expect(await mutex.forceUnlock("somebody-else", { now })).toBe(false);
  });
});

describe("forceUnlock() in the holder's own process", () => {
  /** One section has the lock, and the next waits for it. */
  async function contended(options: MutexOptions = {}) {
    const time = new ManualTime();
    const mutex = scene.host({ clock: time.clock() }).mutex(scene.name, { ...POLL, ...options });
    const lock = await mutex.lock();
    return { time, mutex, lock, waiting: mutex.lock() };
  }

  test("trap 37: with now, its section is told at once, and the next call gets the lock, at no request more", async () => {
    const { time, mutex, lock, waiting } = await contended();
    expect(await mutex.forceUnlock(lock.uuid, { now: true })).toBe(true);
    expect(lock.signal.aborted).toBe(true);
    expect(lock.signal.reason).toMatchObject({ code: "LOCK_LOST", reason: "forced" });
    const next = await waiting;
    expect([time.elapsed, lock.held, next.held]).toEqual([0, false, true]);
    expect(scene.proxy.counts()).toEqual({ PutItem: 2, UpdateItem: 1 });
    await expect(lock.unlock()).rejects.toBe(lock.signal.reason);
    expect(next.held).toBe(true);
    await next.unlock();
  });

  test("trap 37: without now, nobody enters before the lease ends, and its lease is not handed over", async () => {
    const { time, mutex, lock, waiting } = await contended();
    const watched = watch(waiting);
    expect(await mutex.forceUnlock(lock.uuid)).toBe(true);
    expect(lock.signal.reason).toMatchObject({ reason: "forced" });
    await expect(lock.unlock()).rejects.toBe(lock.signal.reason);
    await scene.play(time, () => watched.settled, 250);
    expect(time.elapsed).toBeGreaterThanOrEqual(TTL_MS);
    expect(time.elapsed).toBeLessThanOrEqual(TTL_MS + 1_000);
    const next = await waiting;
    expect([next.held, next.uuid === lock.uuid]).toEqual([true, false]);
    await next.unlock();
  });

  test("trap 37: between two sections, the lease is not handed over either", async () => {
    const { time, mutex, lock, waiting } = await contended({ handOverMs: 1 });
    await time.advance(10);
    // The look whether others wait has seen the row as it was.
    const hold = scene.proxy.hold("GetItem", { at: "reply" });
    const unlocking = lock.unlock();
    unlocking.catch(() => undefined);
    await hold.arrived;
    expect(await mutex.forceUnlock(lock.uuid, { now: true })).toBe(true);
    hold.release();
    await expect(unlocking).rejects.toMatchObject({ reason: "forced" });
    const next = await waiting;
    expect([next.held, next.uuid === lock.uuid]).toEqual([true, false]);
    await next.unlock();
  });
});

test.each([
  ["arrives later, and is refused", []],
  // The first copy gets there, its reply does not; the second one waits until the uuid is gone.
  ["was applied, its reply lost, and is sent again", [resetAfter()]],
])("forceUnlock() during a renewal that %s: its holder hears that the lock was forced", async (_case, faults) => {
  const time = new ManualTime();
  const lock = await held(time);
  for (const fault of faults) scene.proxy.on(renewals, fault);
  const hold = scene.proxy.hold(renewals);
  await time.advance(TTL_MS / 2);
  await time.sleepUntil(() => scene.proxy.count(renewals) === 1 + faults.length);
  await hold.arrived;
  expect(await operator(time).forceUnlock(lock.uuid)).toBe(true);
  const row = await scene.row();
  expect(row?.expires === lock.expires.getTime()).toBe(faults.length === 0);
  hold.release();
  await eventually(() => lock.signal.aborted);
  expect(lock.signal.reason).toMatchObject({ reason: "forced" });
  expect(await scene.row()).toEqual(row);
});

describe("a forceUnlock() on a bad network", () => {
  test.each([
    ["whose reply is lost", false, resetAfter()],
    ["that was applied and answered with 500", true, status500({ applied: true })],
    ["that is lost on its way", true, resetBefore()],
  ])("%s is recognised as done, with now: %s", async (_case, now, fault) => {
    const forced = hear("dynamutex:forced");
    await scene.put(rowOf());
    scene.proxy.on("UpdateItem", fault);
    expect(await scene.host().mutex(scene.name).forceUnlock("somebody-else", { now })).toBe(true);
    expect(scene.proxy.count("UpdateItem")).toBe(2);
    expect((await scene.row())?.uuid).toBeUndefined();
    expect(forced).toHaveLength(1);
  });

  test.each([false, true])(
    "of a uuid that does not hold: a lost reply does not make it so, with now: %s",
    async (now) => {
      await scene.put(rowOf());
      scene.proxy.on("UpdateItem", resetAfter());
      expect(await scene.host().mutex(scene.name).forceUnlock("gone", { now })).toBe(false);
      expect(await scene.row()).toMatchObject({ uuid: "somebody-else" });
    },
  );

  test.each([false, true])("a late copy does not touch the next holder, with now: %s", async (now) => {
    await scene.put(rowOf({ expires: Date.now() - 60_000 }));
    const late = duplicate();
    scene.proxy.on("UpdateItem", late);
    const mutex = scene.host().mutex(scene.name);
    await mutex.forceUnlock("somebody-else", { now });
    await using lock = await mutex.lock();
    const row = await scene.row();
    expect((await late.deliver()).status).toBe(400);
    expect(await scene.row()).toEqual(row);
    expect(lock.held).toBe(true);
  });
});
