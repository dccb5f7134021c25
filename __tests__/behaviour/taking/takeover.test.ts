import { describe, expect, test } from "@jest/globals";
import type { Mutex } from "../../../lib/index.js";
import { watch } from "../../support/eventually.js";
import { ManualTime } from "../../support/manual-time.js";
import { type Attributes, type HostOptions, rowOf, useScene } from "../../support/scene.js";
import { sleptThrough } from "../../support/settled.js";

const scene = useScene();

const HOUR_MS = 3_600_000;

/** A process's mutex. It looks rarely: how often is not what these tests are about. */
function mutexOf(options: HostOptions): Mutex {
  return scene.host({ poll: { minMs: 1_500, maxMs: 1_500 }, ...options }).mutex(scene.name);
}

/** A dead holder's row: its lease lasts for 10 s from now, on a clock that is off by so much. */
function deadHolder(time: ManualTime, { aheadMs = 0, ...attributes }: Attributes & { aheadMs?: number } = {}) {
  return rowOf({ expires: time.now + aheadMs + 10_000, acquired: time.now, ttlMs: 10_000, ...attributes });
}

/** The lock of a dead holder. */
async function dead(attributes: Parameters<typeof deadHolder>[1] = {}) {
  const time = new ManualTime();
  const row = deadHolder(time, attributes);
  await scene.put(row);
  return { time, row, clock: time.clock() };
}

/** Waits for the lock, which comes after so long, and gives it back. */
async function expectTakenAfter(ms: number, time: ManualTime, mutex: Mutex): Promise<void> {
  const locking = mutex.lock();
  await sleptThrough(time, locking);
  expect(time.elapsed).toBe(ms);
  const lock = await locking;
  expect(await scene.row()).toMatchObject({ uuid: lock.uuid });
  await lock.unlock();
}

describe("rule 1: the lease is over on the table's clock", () => {
  // Rule 2 would need longer.
  const row = { ttlMs: 60_000 };

  test.each([
    [0, 0, 10_001],
    [1_000, 0, 11_001],
    [1_000, -1_000, 12_001],
    [1_000, 1_000, 10_001],
  ])(
    "a clock that may be off by %d ms and is ahead by %d ms takes the lock after %d ms",
    async (maxSkewMs, aheadMs, takenAfterMs) => {
      const { time } = await dead(row);
      await expectTakenAfter(takenAfterMs, time, mutexOf({ clock: time.clock({ maxSkewMs, aheadMs }) }));
    },
  );

  test.each([1_000, 120_000])(
    "trap 8: a watcher with a ttl of %d ms takes over neither earlier nor later",
    async (ttlMs) => {
      const { time, clock } = await dead(row);
      await expectTakenAfter(10_001, time, mutexOf({ clock, ttlMs }));
    },
  );
});

describe("rule 2: the lease has been seen unchanged for its whole length", () => {
  const takeover = "unchanged";

  test.each([
    [-HOUR_MS, takeover],
    [-20_000, takeover],
    [0, takeover],
    [HOUR_MS, takeover],
    // It is enough by itself where clocks are trusted, too.
    [HOUR_MS, "expired"],
  ] as const)(
    "of a dead holder whose clock is %d ms off, the lock is taken after its ttl, and not before (%s)",
    async (aheadMs, takeover) => {
      const { time, clock } = await dead({ aheadMs });
      await expectTakenAfter(10_000, time, mutexOf({ clock, takeover }));
    },
  );

  test.each([1_000, 120_000])("trap 8: the row's own ttl counts, not that of a watcher with %d ms", async (ttlMs) => {
    const { time, clock } = await dead();
    await expectTakenAfter(10_000, time, mutexOf({ clock, takeover, ttlMs }));
  });

  test("every change starts the watch again: a stamp, or another uuid with the same stamp", async () => {
    const { time, row, clock } = await dead();
    const locking = watch(mutexOf({ clock, takeover }).lock());
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
    const { time, clock } = await dead();
    let suspendedMs = 0;
    const mutex = mutexOf({ clock: { ...clock, atMost: () => time.elapsed + suspendedMs }, takeover });
    expect(await mutex.tryLock()).toBeNull();
    suspendedMs = HOUR_MS;
    expect(await mutex.tryLock()).toBeNull();
    await time.advance(9_999);
    expect(await mutex.tryLock()).toBeNull();
    await time.advance(1);
    await (await mutex.tryLock())?.unlock();
    expect(scene.proxy.count("DeleteItem")).toBe(1);
  });

  test("callers who only ever try once take over as well: what was seen outlives the call, in this process alone", async () => {
    const { time, clock } = await dead();
    const locks = scene.host({ clock, takeover });
    const attempt = () => locks.mutex(scene.name).tryLock();
    expect(await attempt()).toBeNull();
    await time.advance(9_999);
    expect(await attempt()).toBeNull();
    await time.advance(1);
    expect(await mutexOf({ clock, takeover, tag: "another" }).tryLock()).toBeNull();
    const lock = await attempt();
    expect(lock?.held).toBe(true);
    expect(scene.proxy.counts()).toEqual({ PutItem: 4 });
    await lock?.unlock();
  });

  test("the condition names the exact lease: a renewal between the look and the put keeps the holder, and starts the watch again", async () => {
    const { time, row, clock } = await dead();
    const mutex = mutexOf({ clock, takeover });
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

  test("of three who have seen the same lease to its end, one gets the lock", async () => {
    const { time, clock } = await dead();
    const mutexes = [1, 2, 3].map(() => mutexOf({ clock, takeover }));
    for (const mutex of mutexes) expect(await mutex.tryLock()).toBeNull();
    await time.advance(10_000);
    const locks = await Promise.all(mutexes.map((mutex) => mutex.tryLock()));
    expect(locks.filter((lock) => lock !== null)).toHaveLength(1);
  });
});

describe("trap 10: rows that remember something", () => {
  const REMEMBERED = { fence: 7, tick: 1_700_000_000_000 };

  test("renewing and losing leave in place what it remembers", async () => {
    const { time, row: held, clock } = await dead(REMEMBERED);
    const { uuid: _, ...freed } = held;
    await scene.put({ ...freed, expires: 0 });
    const lock = await mutexOf({ clock, autoRenew: false }).lock();
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
      const { time, row, clock } = await dead(REMEMBERED);
      const mutex = mutexOf({ clock, takeover });
      expect(await mutex.tryLock()).toBeNull();
      await time.advance(9_999);
      expect(await mutex.tryLock()).toBeNull();
      expect(await scene.row()).toMatchObject({ ...REMEMBERED, uuid: row.uuid });
    }
  });
});

describe("trap 25: an item that the library did not write", () => {
  const FOREIGN: readonly [string, (row: Attributes) => Attributes][] = [
    ["no format", ({ format: _, ...row }) => row],
    ["another format", (row) => ({ ...row, format: 2 })],
    ["a format of another type", (row) => ({ ...row, format: "1" })],
    ["an `expires` of another type", (row) => ({ ...row, expires: "1" })],
    ["a `ttlMs` of another type", (row) => ({ ...row, ttlMs: "1" })],
    ["no owner", ({ owner: _, ...row }) => row],
    ["a uuid of another type", (row) => ({ ...row, uuid: 7 })],
    ["nothing of ours", () => ({ customer: "elsewhere", expires: 1 })],
  ];

  test.each(FOREIGN)(
    "with %s: an error that shows it; it never counts as free and is never overwritten",
    async (_, make) => {
      const time = new ManualTime();
      await scene.put(make(deadHolder(time)));
      const before = await scene.row();
      // Whatever its `expires` may mean, it is over.
      await time.advance(HOUR_MS);
      for (const takeover of ["expired", "unchanged"] as const) {
        const mutex = mutexOf({ clock: time.clock(), takeover });
        for (const call of [() => mutex.lock(), () => mutex.tryLock(), () => mutex.tryRun(() => "no")]) {
          const refused = expect.objectContaining({
            code: "LOCK_STORE",
            transient: false,
            message: expect.stringMatching(/elsewhere|somebody-else/),
          });
          await expect(call()).rejects.toEqual(refused);
        }
      }
      expect(await scene.row()).toEqual(before);
    },
  );

  test("that appears while somebody waits ends the wait", async () => {
    const { time, clock } = await dead();
    const locking = mutexOf({ clock }).lock();
    await time.nextSleep();
    await scene.put({ customer: "Ada" });
    await sleptThrough(time, locking);
    await expect(locking).rejects.toMatchObject({ code: "LOCK_STORE", message: expect.stringContaining("Ada") });
    expect(await scene.row()).toEqual({ name: scene.name, sort: "lock", customer: "Ada" });
  });
});
