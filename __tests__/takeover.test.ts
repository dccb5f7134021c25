import { describe, expect, test } from "@jest/globals";
import { LockStoreError, type Mutex } from "../lib/index.js";
import { eventually, watch } from "./support/eventually.js";
import { ManualTime } from "./support/manual-time.js";
import { type Attributes, type HostOptions, rowOf, useScene } from "./support/scene.js";

const scene = useScene();

const HOUR_MS = 3_600_000;

/** A dead holder's row: its lease lasts for 10 s from now, on a clock that is off by so much. */
function deadHolder(time: ManualTime, attributes: Attributes = {}, { aheadMs = 0 } = {}): Attributes {
  return rowOf({ expires: time.now + aheadMs + 10_000, acquired: time.now, ttlMs: 10_000, ...attributes });
}

/** Looks rarely: how often is not what these tests are about. */
function host(options: HostOptions) {
  return scene.host({ poll: { minMs: 1_500, maxMs: 1_500 }, ...options });
}

/** Waits for the lock, and tells when it came. */
async function takenAfter(time: ManualTime, mutex: Mutex) {
  const locking = mutex.lock();
  const watched = watch(locking);
  await time.sleepUntil(() => watched.settled);
  return { takenAt: time.elapsed, lock: await locking };
}

describe("rule 1: the lease is over on the table's clock", () => {
  test.each([
    [0, 0, 10_001],
    [1_000, 0, 11_001],
    [1_000, -1_000, 12_001],
    [1_000, 1_000, 10_001],
  ])(
    "a clock that may be off by %d ms and is ahead by %d ms takes the lock after %d ms",
    async (maxSkewMs, aheadMs, takenAt) => {
      const time = new ManualTime();
      // Rule 2 would need longer.
      await scene.put(deadHolder(time, { ttlMs: 60_000 }));
      const mutex = host({ clock: time.clock({ maxSkewMs, aheadMs }) }).mutex(scene.name);
      const taken = await takenAfter(time, mutex);
      expect(taken.takenAt).toBe(takenAt);
      expect(await scene.row()).toMatchObject({ uuid: taken.lock.uuid });
      await taken.lock.unlock();
    },
  );

  test("trap 8: a watcher with another ttl takes over neither earlier nor later", async () => {
    for (const ttlMs of [1_000, 120_000]) {
      const time = new ManualTime();
      await scene.put(deadHolder(time, { ttlMs: 60_000 }));
      const { takenAt, lock } = await takenAfter(time, host({ clock: time.clock(), ttlMs }).mutex(scene.name));
      expect(takenAt).toBe(10_001);
      await lock.unlock();
    }
  });
});

describe("rule 2: the lease has been seen unchanged for its whole length", () => {
  const UNCHANGED = { takeover: "unchanged" } as const;

  test.each([-HOUR_MS, -20_000, 0, HOUR_MS])(
    "of a dead holder whose clock is %d ms off, the lock is taken after its ttl, and not before",
    async (aheadMs) => {
      const time = new ManualTime();
      await scene.put(deadHolder(time, {}, { aheadMs }));
      const mutex = host({ clock: time.clock() }).mutex(scene.name, UNCHANGED);
      const { takenAt, lock } = await takenAfter(time, mutex);
      expect(takenAt).toBe(10_000);
      expect(await scene.row()).toMatchObject({ uuid: lock.uuid });
      await lock.unlock();
    },
  );

  test("it is enough by itself where clocks are trusted, too: a holder that stamped an hour ahead", async () => {
    const time = new ManualTime();
    await scene.put(deadHolder(time, {}, { aheadMs: HOUR_MS }));
    const { takenAt, lock } = await takenAfter(time, host({ clock: time.clock() }).mutex(scene.name));
    expect(takenAt).toBe(10_000);
    await lock.unlock();
  });

  test.each([-HOUR_MS, HOUR_MS])(
    "a live holder with its clock %d ms off keeps its lock for many leases; killed, it has lost it before another has it",
    async (aheadMs) => {
      const time = new ManualTime();
      const options = { ttlMs: 1_000, takeover: "unchanged", poll: { minMs: 50, maxMs: 400 } } as const;
      const holder = host({ clock: time.clock({ aheadMs }), tag: "holder" }).mutex(scene.name, options);
      const lock = await holder.lock();
      const locking = watch(host({ clock: time.clock() }).mutex(scene.name, options).lock());
      await scene.play(time, () => locking.settled || time.elapsed >= 5_000, 50);
      expect([lock.held, locking.settled]).toEqual([true, false]);

      let lostAt = Number.POSITIVE_INFINITY;
      lock.signal.addEventListener("abort", () => {
        lostAt = time.elapsed;
      });
      scene.proxy.partition("holder");
      const killedAt = time.elapsed;
      await scene.play(time, () => locking.settled, 50);
      expect(lostAt).toBeLessThan(time.elapsed);
      // A lease, the longest poll, and a step of this test for each.
      expect(time.elapsed - killedAt).toBeLessThanOrEqual(1_000 + 500 + 100);
    },
  );

  test("trap 8: the row's own ttl counts, not the watcher's", async () => {
    for (const ttlMs of [1_000, 120_000]) {
      const time = new ManualTime();
      await scene.put(deadHolder(time));
      const mutex = host({ clock: time.clock() }).mutex(scene.name, { ...UNCHANGED, ttlMs });
      const { takenAt, lock } = await takenAfter(time, mutex);
      expect(takenAt).toBe(10_000);
      await lock.unlock();
    }
  });

  test("every change starts the watch again: a stamp, or another uuid with the same stamp", async () => {
    const time = new ManualTime();
    const row = deadHolder(time);
    await scene.put(row);
    const locking = watch(host({ clock: time.clock() }).mutex(scene.name, UNCHANGED).lock());
    await time.sleepUntil(() => time.elapsed >= 6_000);
    await scene.put({ ...row, expires: (row.expires as number) + 1 });
    await time.sleepUntil(() => time.elapsed >= 12_000);
    expect(locking.settled).toBe(false);
    await scene.put({ ...row, expires: (row.expires as number) + 1, uuid: "the next" });
    const changedAt = time.elapsed;
    await time.sleepUntil(() => locking.settled);
    expect(time.elapsed).toBeGreaterThanOrEqual(changedAt + 10_000);
    // One poll later at most, which is when the change was seen.
    expect(time.elapsed).toBeLessThanOrEqual(changedAt + 10_000 + 1_875);
  });

  test("trap 22: a stopwatch that jumps ahead, as the one for leases does after a suspend, makes no watcher impatient", async () => {
    const time = new ManualTime();
    let suspendedMs = 0;
    const right = time.clock();
    await scene.put(deadHolder(time));
    const clock = { ...right, atMost: () => right.atMost() + suspendedMs };
    const mutex = host({ clock }).mutex(scene.name, UNCHANGED);
    expect(await mutex.tryLock()).toBeNull();
    suspendedMs = HOUR_MS;
    expect(await mutex.tryLock()).toBeNull();
    await time.advance(9_999);
    expect(await mutex.tryLock()).toBeNull();
    await time.advance(1);
    await (await mutex.tryLock())?.unlock();
    expect(scene.proxy.count("DeleteItem")).toBe(1);
  });

  test("callers who only ever try once take over as well: what was seen outlives the call", async () => {
    const time = new ManualTime();
    await scene.put(deadHolder(time));
    const locks = host({ clock: time.clock() });
    const attempt = () => locks.mutex(scene.name, UNCHANGED).tryLock();
    expect(await attempt()).toBeNull();
    await time.advance(9_999);
    expect(await attempt()).toBeNull();
    await time.advance(1);
    const lock = await attempt();
    expect(lock?.held).toBe(true);
    expect(scene.proxy.counts()).toEqual({ PutItem: 3 });
    await lock?.unlock();
  });

  test("another process has not seen it, and has to watch for itself", async () => {
    const time = new ManualTime();
    await scene.put(deadHolder(time));
    const clock = time.clock();
    expect(await host({ clock }).mutex(scene.name, UNCHANGED).tryLock()).toBeNull();
    await time.advance(10_000);
    expect(await host({ clock }).mutex(scene.name, UNCHANGED).tryLock()).toBeNull();
  });

  test("the condition names the exact lease: a renewal between the look and the put keeps the holder, and starts the watch again", async () => {
    const time = new ManualTime();
    const row = deadHolder(time);
    await scene.put(row);
    const mutex = host({ clock: time.clock() }).mutex(scene.name, UNCHANGED);
    expect(await mutex.tryLock()).toBeNull();
    await time.advance(10_000);
    const hold = scene.proxy.hold("PutItem");
    const trying = mutex.tryLock();
    const { body } = await hold.arrived;
    expect(body.ExpressionAttributeValues).toMatchObject({
      ":if_seenUuid": { S: row.uuid },
      ":if_seenExpires": { N: String(row.expires) },
    });
    const renewed = { ...row, expires: (row.expires as number) + 1 };
    await scene.put(renewed);
    hold.release();
    expect(await trying).toBeNull();
    expect(await scene.row()).toMatchObject(renewed);
    await time.advance(9_999);
    expect(await mutex.tryLock()).toBeNull();
    await time.advance(1);
    expect((await mutex.tryLock())?.held).toBe(true);
  });

  test("of two who have seen the same lease to its end, one gets the lock", async () => {
    const time = new ManualTime();
    await scene.put(deadHolder(time));
    const mutexes = [1, 2, 3].map(() => host({ clock: time.clock() }).mutex(scene.name, UNCHANGED));
    for (const mutex of mutexes) expect(await mutex.tryLock()).toBeNull();
    await time.advance(10_000);
    const locks = await Promise.all(mutexes.map((mutex) => mutex.tryLock()));
    expect(locks.filter((lock) => lock !== null)).toHaveLength(1);
  });
});

describe("trap 10: rows that remember something", () => {
  const KEPT = { fence: 7n, tick: 1_700_000_000_000 };

  /** As a release leaves it. */
  function freed(time: ManualTime): Attributes {
    const { uuid: _, ...row } = deadHolder(time, KEPT);
    return { ...row, expires: 0 };
  }

  const REMEMBERED = { fence: 7, tick: 1_700_000_000_000 };

  test("renewing and losing leave in place what it remembers", async () => {
    const time = new ManualTime();
    await scene.put(freed(time));
    const lock = await host({ clock: time.clock() }).mutex(scene.name, { autoRenew: false }).lock();
    await lock.extend();
    expect(await scene.row()).toMatchObject({ ...REMEMBERED, uuid: lock.uuid });
    await time.advance(60_000);
    await expect(lock.unlock()).rejects.toMatchObject({ reason: "expired" });
    const row = await scene.row();
    expect(row).toMatchObject({ ...REMEMBERED, expires: 0 });
    expect(row).not.toHaveProperty("uuid");
  });

  test("a live one is not taken, by neither rule", async () => {
    for (const takeover of ["expired", "unchanged"] as const) {
      const time = new ManualTime();
      const row = deadHolder(time, KEPT);
      await scene.put(row);
      const mutex = host({ clock: time.clock() }).mutex(scene.name, { takeover });
      expect(await mutex.tryLock()).toBeNull();
      await time.advance(9_999);
      expect(await mutex.tryLock()).toBeNull();
      expect(await scene.row()).toMatchObject({ ...REMEMBERED, uuid: row.uuid });
    }
  });
});

describe("trap 25: an item that the library did not write", () => {
  const FOREIGN: readonly [string, (time: ManualTime) => Attributes][] = [
    ["no format", (time) => without("format", deadHolder(time))],
    ["another format", (time) => deadHolder(time, { format: 2 })],
    ["a format of another type", (time) => deadHolder(time, { format: "1" })],
    ["an `expires` of another type", (time) => deadHolder(time, { expires: "1" })],
    ["a `ttlMs` of another type", (time) => deadHolder(time, { ttlMs: "1" })],
    ["no owner", (time) => without("owner", deadHolder(time))],
    ["a uuid of another type", (time) => deadHolder(time, { uuid: 7 })],
    ["nothing of ours", () => ({ customer: "Ada", expires: 1 })],
  ];

  test.each(FOREIGN)(
    "with %s: an error that shows it; it never counts as free and is never overwritten",
    async (_, make) => {
      const time = new ManualTime();
      await scene.put(make(time));
      const before = await scene.row();
      // Whatever its `expires` may mean, it is over.
      await time.advance(HOUR_MS);
      for (const takeover of ["expired", "unchanged"] as const) {
        const mutex = host({ clock: time.clock() }).mutex(scene.name, { takeover });
        for (const call of [() => mutex.lock(), () => mutex.tryLock(), () => mutex.tryRun(() => "no")]) {
          const refused = await call().catch((error: unknown) => error);
          expect(refused).toBeInstanceOf(LockStoreError);
          const { message, transient } = refused as LockStoreError;
          expect([
            transient,
            message.includes(before?.customer === "Ada" ? "Ada" : "elsewhere") || message.includes("somebody-else"),
          ]).toEqual([false, true]);
        }
      }
      expect(await scene.row()).toEqual(before);
    },
  );

  test("that appears while somebody waits ends the wait", async () => {
    const time = new ManualTime();
    await scene.put(deadHolder(time));
    const locking = host({ clock: time.clock() }).mutex(scene.name).lock();
    const watched = watch(locking);
    await time.nextSleep();
    await scene.put({ customer: "Ada" });
    await time.sleepUntil(() => watched.settled);
    await expect(locking).rejects.toMatchObject({ code: "LOCK_STORE", message: expect.stringContaining("Ada") });
    expect(await scene.row()).toEqual({ name: scene.name, sort: "lock", customer: "Ada" });
  });

  function without(attribute: string, { [attribute]: _, ...row }: Attributes): Attributes {
    return row;
  }
});

describe("who had the lock before", () => {
  test("a holder that was taken over gets LockLostError and leaves the new row alone", async () => {
    const time = new ManualTime();
    const first = await host({ clock: time.clock(), tag: "first" }).mutex(scene.name).lock();
    scene.proxy.partition("first");
    await time.passUntil(() => first.signal.aborted);
    const second = await takenAfter(time, host({ clock: time.clock() }).mutex(scene.name));
    const row = await scene.row();
    scene.proxy.heal("first");
    await expect(first.unlock()).rejects.toMatchObject({ reason: "expired" });
    expect(await scene.row()).toEqual(row);
    await eventually(() => second.lock.held);
    await second.lock.unlock();
  });
});
