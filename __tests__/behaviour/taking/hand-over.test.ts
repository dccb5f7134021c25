import { describe, expect, test } from "@jest/globals";
import { findLockLost, LockLostError } from "../../../lib/index.js";
import type { LockOptions } from "../../../lib/options/calls.js";
import type { MutexOptions } from "../../../lib/options/mutex.js";
import { eventually, turn, watch } from "../../support/eventually.js";
import { throttle } from "../../support/fault-proxy.js";
import { ManualTime } from "../../support/manual-time.js";
import { type HostOptions, rowOf, useScene } from "../../support/scene.js";

const scene = useScene();

/** Two sections of one process, on a time that the test moves: the second waits for the lease of the first. */
async function twoSections({ signal, ...options }: HostOptions & { readonly signal?: AbortSignal } = {}) {
  const { time, mutex, lock: first } = await scene.locked(options);
  return { time, mutex, first, waiting: mutex.lock(signal === undefined ? {} : { signal }) };
}

describe("the sections of one process", () => {
  test("pass one lease on, with no request between the first and the last", async () => {
    // On a time that stands: a lease that is passed on for `handOverMs` is looked at.
    const mutex = scene.host({ clock: new ManualTime().clock() }).mutex(scene.name);
    let inside = 0;
    let most = 0;
    await Promise.all(
      Array.from({ length: 32 }, () =>
        mutex.run(async (lock) => {
          inside += 1;
          most = Math.max(most, inside);
          await turn();
          lock.assertHeld();
          inside -= 1;
        }),
      ),
    );
    expect(most).toBe(1);
    expect(scene.proxy.counts()).toEqual({ PutItem: 1, DeleteItem: 1 });
  });

  test("have a lock each: what one unlocked is not held, and says so, while the next holds", async () => {
    const { first, waiting } = await twoSections();
    await first.unlock();
    const second = await waiting;
    expect([first.held, second.held]).toEqual([false, true]);
    expect([first.remainingMs, first.signal.aborted]).toEqual([0, false]);
    expect(() => first.assertHeld()).toThrow(expect.objectContaining({ code: "LOCK_RELEASED" }));
    await expect(first.extend()).rejects.toMatchObject({ code: "LOCK_RELEASED" });
    await first.unlock();
    expect(second.held).toBe(true);
    await second.unlock();
    expect(await scene.row()).toBeUndefined();
  });

  test("a loss reaches the section that holds at that moment, and no other", async () => {
    const { time, first, waiting } = await twoSections({ ttlMs: 1_000 });
    await first.unlock();
    const second = await waiting;
    await scene.put(rowOf());
    await time.advance(500);
    await eventually(() => second.signal.aborted);
    expect(findLockLost(second.signal.reason)?.reason).toBe("stolen");
    expect(first.signal.aborted).toBe(false);
    await first.unlock();
    await expect(second.unlock()).rejects.toThrow(LockLostError);
  });

  test("a lost lease is not handed over, and its waiters do not wait for the section that lost it", async () => {
    const { time, first, waiting } = await twoSections({ ttlMs: 1_000 });
    await scene.remove();
    await time.advance(500);
    await eventually(() => first.signal.aborted);
    const second = await waiting;
    expect(second.uuid).not.toBe(first.uuid);
    expect([first.held, second.held]).toEqual([false, true]);
    await expect(first.unlock()).rejects.toMatchObject({ reason: "deleted" });
    expect(second.held).toBe(true);
    await second.unlock();
  });

  test("an abort in the same turn as the hand-over loses no lock", async () => {
    const mutex = scene.host().mutex(scene.name);
    for (const abortFirst of [true, false]) {
      const first = await mutex.lock();
      const controller = new AbortController();
      const waiting = mutex.lock({ signal: controller.signal });
      const unlocking = abortFirst ? undefined : first.unlock();
      controller.abort(new Error("enough"));
      await (unlocking ?? first.unlock());
      const got = await waiting.catch(() => undefined);
      await got?.unlock();
      await eventually(() => scene.proxy.count("DeleteItem") === scene.proxy.count("PutItem"));
    }
    expect(await scene.row()).toBeUndefined();
    await using next = await mutex.lock({ waitMs: 0 });
    expect(next.held).toBe(true);
  });

  test("tryLock knows without a request that its own process holds", async () => {
    const locks = scene.host({ owner: "me" });
    const mutex = locks.mutex(scene.name);
    await using lock = await mutex.lock();
    expect(await mutex.tryLock()).toBeNull();
    const held = { ran: false, reason: "held", holder: { owner: "me", uuid: lock.uuid } };
    expect(await mutex.tryRun(() => undefined)).toMatchObject(held);
    await expect(mutex.lock({ waitMs: 0 })).rejects.toMatchObject({ holder: { owner: "me" } });
    expect(scene.proxy.counts()).toEqual({ GetItem: 1, PutItem: 1 });
  });

  test("who waits in line is told who holds, a section of its own process or the one that the front waits for", async () => {
    const time = new ManualTime();
    const locks = scene.host({ clock: time.clock(), owner: "me" });
    const mutex = locks.mutex(scene.name);
    const lock = await mutex.lock();
    const behind = mutex.lock({ waitMs: 1_000 });
    behind.catch(() => undefined);
    await time.advance(1_000);
    await expect(behind).rejects.toMatchObject({ code: "LOCK_TIMEOUT", holder: { owner: "me", uuid: lock.uuid } });
    await lock.unlock();

    await scene.put(rowOf({ expires: time.now + 60_000 }));
    const front = mutex.lock({ waitMs: 5_000 });
    front.catch(() => undefined);
    await time.nextSleep();
    const second = mutex.lock({ waitMs: 1_000 });
    second.catch(() => undefined);
    expect(await mutex.tryRun(() => 1)).toMatchObject({ ran: false, holder: { uuid: "somebody-else" } });
    await scene.play(time, () => time.elapsed >= 7_000, 250);
    for (const wait of [front, second]) {
      await expect(wait).rejects.toMatchObject({ code: "LOCK_TIMEOUT", holder: { uuid: "somebody-else" } });
    }
  });

  test("options that the lease does not have are honoured: the lock is taken afresh", async () => {
    const locks = scene.host();
    const mutex = locks.mutex(scene.name);
    const first = await mutex.lock();
    const withData = mutex.lock({ data: { job: "two" } });
    const withTtl = locks.mutex(scene.name, { ttlMs: 60_000 }).lock();
    await first.unlock();
    const second = await withData;
    expect(await scene.row()).toMatchObject({ uuid: second.uuid, data: { job: "two" } });
    await second.unlock();
    await using third = await withTtl;
    expect(await scene.row()).toMatchObject({ uuid: third.uuid, ttlMs: 60_000 });
    expect(new Set([first.uuid, second.uuid, third.uuid]).size).toBe(3);
  });

  test("a lease of which less than half is left is renewed before it is passed on", async () => {
    const { time, first, waiting } = await twoSections({ ttlMs: 10_000, autoRenew: false, handOverMs: 10_000 });
    await time.advance(6_000);
    await first.unlock();
    const second = await waiting;
    expect(scene.proxy.counts()).toEqual({ PutItem: 1, UpdateItem: 1 });
    expect(second.remainingMs).toBe(9_000);
    await second.unlock();
  });

  test.each([
    ["that takes the lock afresh", {}],
    ["of a fair mutex", { fair: true }],
  ])("a section %s may have waited for its own process longer than a table may be silent", async (_, options) => {
    const time = new ManualTime();
    const mutex = scene.host({ clock: time.clock(), ttlMs: 10_000, ...options }).mutex(scene.name);
    const trouble = scene.proxy.on({}, throttle(), { times: Number.POSITIVE_INFINITY });
    const sections = Promise.all([1, 2].map((job) => mutex.run((lock) => lock.held, { data: { job } })));
    await scene.play(time, () => time.elapsed >= 20_000, 250);
    trouble.remove();
    // From here on requests take time.
    const watched = watch(sections);
    await eventually(() => {
      void time.advance(1);
      return watched.settled;
    });
    expect(await sections).toEqual([true, true]);
  });

  test("an endpoint that never answers ends the waits of a whole line after 10 s, and not one after the other", async () => {
    const time = new ManualTime();
    scene.proxy.partition(undefined, "hang");
    const mutex = scene.host({ clock: time.clock() }).mutex(scene.name);
    const line = Promise.allSettled([mutex.lock(), mutex.lock({ data: {} }), mutex.lock()]);
    const ending = watch(line);
    // In small steps: requests that hang end in real time.
    await eventually(() => {
      if (time.elapsed < 10_000) void time.advance(10);
      return ending.settled;
    });
    expect(time.elapsed).toBe(10_000);
    expect(await line).toMatchObject(Array(3).fill({ status: "rejected", reason: { code: "LOCK_STORE" } }));
  });

  test("maxHoldMs counts for each section", async () => {
    const { time, first, waiting } = await twoSections({ ttlMs: 10_000, maxHoldMs: 3_000 });
    await time.advance(2_000);
    await first.unlock();
    const second = await waiting;
    await time.advance(2_000);
    expect([second.held, second.remainingMs]).toEqual([true, 1_000]);
    await time.advance(1_000);
    expect(second.held).toBe(false);
    await expect(second.unlock()).rejects.toMatchObject({ reason: "max-hold" });
  });
});

describe("the lock between processes", () => {
  test("a lease that another process has ended by force is not passed on for longer than handOverMs", async () => {
    const { time, first, waiting } = await twoSections({ handOverMs: 1 });
    await time.advance(1);
    expect(await scene.host().mutex(scene.name).forceUnlock(first.uuid, { now: true })).toBe(true);
    await expect(first.unlock()).rejects.toMatchObject({ reason: "forced" });
    await using second = await waiting;
    expect(second.uuid).not.toBe(first.uuid);
  });

  test("a process stands back for the other one also when the section that is next gives up meanwhile", async () => {
    const poll = { minMs: 50, maxMs: 400 };
    const giveUp = new AbortController();
    const own = { ttlMs: 10_000, handOverMs: 1, poll, signal: giveUp.signal };
    const { time, mutex, first, waiting: second } = await twoSections(own);
    const third = watch(mutex.lock());
    await scene.put({ ...(await scene.row()), wanted: time.now + 60_000 });
    await time.advance(10);
    await first.unlock();
    await time.advance(300);
    giveUp.abort(new Error("enough"));
    await expect(second).rejects.toThrow("enough");
    await time.advance(490);
    await scene.quiet();
    // One look for the mark, and one whether somebody came.
    expect(scene.proxy.counts()).toEqual({ PutItem: 1, GetItem: 2, DeleteItem: 1 });
    await scene.play(time, () => third.settled);
    expect(time.elapsed).toBeLessThan(900);
  });

  test.each<readonly [string, LockOptions, MutexOptions, MutexOptions]>([
    ["with data", { data: { job: 1 } }, {}, {}],
    ["with a hold", { holdAtLeastMs: 20 }, {}, {}],
    ["that are fenced", { data: { job: 1 } }, { fencing: true }, {}],
    ["with another ttl", {}, {}, { ttlMs: 20_000 }],
  ])("trap 27: a process with sections %s finds a mark in its release, and lets others in", async (...parts) => {
    const [, options, settings, others] = parts;
    const time = new ManualTime();
    const locks = scene.host({ clock: time.clock(), ttlMs: 10_000 });
    const first = await locks.mutex(scene.name, settings).lock(options);
    const second = watch(locks.mutex(scene.name, { ...settings, ...others }).lock(options));
    await scene.put({ ...(await scene.row()), wanted: time.now + 60_000 });
    await time.advance(10);
    await first.unlock();
    await scene.play(time, () => time.elapsed >= 760);
    expect(second.settled).toBe(false);
    // Nobody has come.
    await scene.play(time, () => second.settled);
    expect(time.elapsed).toBeLessThan(950);
  });

  test("a mark that arrives under the next holder counts for that one, and takes nothing from it", async () => {
    const holder = scene.host({ tag: "holder" }).mutex(scene.name);
    const other = scene.host({ tag: "other", handOverMs: 1, poll: { minMs: 1, maxMs: 1 } }).mutex(scene.name);
    const first = await holder.lock();
    const hold = scene.proxy.hold({ operation: "UpdateItem", client: "other" });
    const controller = new AbortController();
    const waiting = other.lock({ signal: controller.signal });
    await hold.arrived;
    await first.unlock();
    await using second = await holder.lock();
    hold.release();
    await hold.held[0]?.settled;
    expect(await scene.row()).toMatchObject({ uuid: second.uuid, wanted: expect.any(Number) });
    await second.extend();
    controller.abort();
    await expect(waiting).rejects.toThrow();
  });
});
