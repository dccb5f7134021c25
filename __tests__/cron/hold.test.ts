import { describe, expect, test } from "@jest/globals";
import type { LockTable } from "../../lib/index.js";
import { hear } from "../support/diagnostics.js";
import { duplicate, hang, resetAfter } from "../support/fault-proxy.js";
import { ManualTime } from "../support/manual-time.js";
import { rowOf, useScene } from "../support/scene.js";
import { sleptThrough, timedOut } from "../support/settled.js";

const scene = useScene();

const TTL_MS = 30_000;
const HOLD_MS = 10_000;

/** Two hosts whose clocks are an hour apart and know it, on one time that the test moves. */
function twoHosts(options: { readonly takeover?: "expired" | "unchanged" } = {}) {
  const time = new ManualTime();
  const host = (tag: string): LockTable => scene.host({ tag, clock: time.clock(), ttlMs: TTL_MS, ...options });
  return { time, mutex: host("a").mutex(scene.name), other: host("b").mutex(scene.name) };
}

describe("a lock that is held for a while at least", () => {
  test("is parked at its release, for the rest of the time, and costs as much as any other", async () => {
    const { time, mutex } = twoHosts();
    const lock = await mutex.lock({ holdAtLeastMs: HOLD_MS });
    const startedAt = time.now;
    await time.advance(1_000);
    await lock.unlock();
    expect(scene.proxy.counts()).toEqual({ PutItem: 1, UpdateItem: 1 });
    const row = await scene.row();
    expect(row).toMatchObject({ expires: startedAt + HOLD_MS, ttlMs: HOLD_MS - 1_000 });
    expect(row).not.toHaveProperty("uuid");
    expect([lock.held, lock.signal.aborted]).toEqual([false, false]);
  });

  test.each(["lock", "tryLock", "run", "tryRun"] as const)(
    "with %s, nobody has it before the time is over, and everybody may then",
    async (call) => {
      const { time, mutex, other } = twoHosts();
      const options = { holdAtLeastMs: HOLD_MS };
      if (call === "lock" || call === "tryLock") await (await mutex[call](options))?.unlock();
      else await mutex[call](() => "a fast job", options);
      await time.advance(HOLD_MS - 1);
      expect(await other.tryLock()).toBeNull();
      expect(await mutex.tryRun(() => "again")).toMatchObject({
        ran: false,
        because: "held",
        row: { uuid: undefined },
      });
      await time.advance(1);
      expect(await mutex.tryLock()).toBeNull();
      await time.advance(1);
      const next = await other.tryLock();
      expect(next?.held).toBe(true);
      await next?.unlock();
      expect(await scene.row()).toBeUndefined();
    },
  );

  test.each(["run", "tryRun"] as const)("also after the job threw, with %s", async (call) => {
    const { time, mutex, other } = twoHosts();
    const failure = new Error("the job's own");
    const job = () => {
      throw failure;
    };
    await expect(mutex[call](job, { holdAtLeastMs: HOLD_MS })).rejects.toBe(failure);
    await time.advance(HOLD_MS);
    expect(await other.tryLock()).toBeNull();
    await time.advance(1);
    await (await other.tryLock())?.unlock();
    expect(await scene.row()).toBeUndefined();
  });

  test("a job longer than its hold is released normally", async () => {
    const { time, mutex } = twoHosts();
    const lock = await mutex.lock({ holdAtLeastMs: HOLD_MS });
    await time.advance(HOLD_MS);
    await lock.unlock();
    expect(await scene.row()).toBeUndefined();
    expect(scene.proxy.counts()).toEqual({ PutItem: 1, DeleteItem: 1 });
  });

  test("what the clock is in doubt about makes the hold longer, never shorter", async () => {
    const time = new ManualTime();
    const late = scene.host({ clock: time.clock({ aheadMs: -700, maxSkewMs: 1_000 }) }).mutex(scene.name);
    const early = scene.host({ clock: time.clock({ aheadMs: 900, maxSkewMs: 1_000 }) }).mutex(scene.name);
    await (await late.lock({ holdAtLeastMs: HOLD_MS })).unlock();
    await time.advance(HOLD_MS);
    expect(await early.tryLock()).toBeNull();
    await time.advance(2_001);
    await (await early.tryLock())?.unlock();
    expect(await scene.row()).toBeUndefined();
  });

  test("a waiter has the lock when the hold is over, without a poll too late", async () => {
    const { time, mutex, other } = twoHosts();
    await (await mutex.lock({ holdAtLeastMs: HOLD_MS })).unlock();
    const startedAt = time.now;
    const locking = other.lock();
    await sleptThrough(time, locking);
    expect(time.now - startedAt).toBe(HOLD_MS);
    await (await locking).unlock();
  });

  test("the lease of one that dies ends like any other: a hold survives no crash", async () => {
    const { time, other } = twoHosts();
    await scene.put(rowOf({ expires: time.now + TTL_MS, ttlMs: TTL_MS }));
    await time.advance(TTL_MS + 1);
    await (await other.tryLock())?.unlock();
    expect(await scene.row()).toBeUndefined();
  });

  test("one whose lease was lost is parked all the same, where its row is still its own", async () => {
    const { time, mutex, other } = twoHosts();
    const lock = await mutex.lock({ holdAtLeastMs: 2 * TTL_MS });
    scene.proxy.partition("a", "reset");
    await time.advance(TTL_MS);
    scene.proxy.heal("a");
    await expect(lock.unlock()).rejects.toMatchObject({ code: "LOCK_LOST", reason: "expired" });
    expect(await scene.row()).not.toHaveProperty("uuid");
    await time.advance(TTL_MS);
    expect(await other.tryLock()).toBeNull();
    await time.advance(1);
    await (await other.tryLock())?.unlock();
  });

  test.each([-1, 0.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 31, "1000", null])(
    "%p is refused before anything is sent",
    async (holdAtLeastMs) => {
      const { mutex } = twoHosts();
      const options = { holdAtLeastMs: holdAtLeastMs as number };
      const refused = { code: "LOCK_CONFIG", option: "holdAtLeastMs", value: holdAtLeastMs };
      await expect(mutex.lock(options)).rejects.toMatchObject(refused);
      await expect(mutex.tryLock(options)).rejects.toMatchObject(refused);
      await expect(mutex.run(() => 1, options)).rejects.toMatchObject(refused);
      await expect(mutex.tryRun(() => 1, options)).rejects.toMatchObject(refused);
      expect(scene.proxy.counts()).toEqual({});
    },
  );
});

describe("in one process", () => {
  test("a lease with a hold is not passed on: the next section waits until it is over", async () => {
    const { time, mutex } = twoHosts();
    const first = await mutex.lock({ holdAtLeastMs: HOLD_MS });
    const startedAt = time.now;
    const second = mutex.lock();
    await first.unlock();
    await sleptThrough(time, second);
    expect(time.now - startedAt).toBe(HOLD_MS);
    expect((await second).uuid).not.toBe(first.uuid);
    await (await second).unlock();
  });
});

describe("without a clock to trust", () => {
  test("a parked row is taken once it was watched for what was left of the hold, and not before", async () => {
    const { time, mutex, other } = twoHosts({ takeover: "unchanged" });
    await (await mutex.lock({ holdAtLeastMs: HOLD_MS })).unlock();
    const startedAt = time.now;
    const locking = other.lock();
    await sleptThrough(time, locking);
    expect(time.now - startedAt).toBe(HOLD_MS);
    await (await locking).unlock();
    expect(await scene.row()).toBeUndefined();
  });

  test("a parked row whose `expires` is far off, or long over, is taken by the same rule", async () => {
    const { time, other } = twoHosts({ takeover: "unchanged" });
    for (const expires of [time.now + 3_600_000, time.now - 3_600_000]) {
      const { uuid: _, ...parked } = rowOf({ expires, ttlMs: 500 });
      await scene.put(parked);
      expect(await other.tryLock()).toBeNull();
      await time.advance(499);
      expect(await other.tryLock()).toBeNull();
      await time.advance(1);
      await (await other.tryLock())?.unlock();
      expect(await scene.row()).toBeUndefined();
    }
  });

  test("trap 32: where a clock is trusted as well, a stamp that lies too late keeps no parked row from those who watch", async () => {
    const { time, other } = twoHosts();
    const { uuid: _, ...parked } = rowOf({ expires: time.now + 3_600_000, ttlMs: 500 });
    await scene.put(parked);
    expect(await other.tryLock()).toBeNull();
    await time.advance(499);
    expect(await other.tryLock()).toBeNull();
    await time.advance(1);
    await (await other.tryLock())?.unlock();
    expect(await scene.row()).toBeUndefined();
  });

  test("a late copy of a claim that took a parked row does not take the row that its own holder parked", async () => {
    const { time, mutex } = twoHosts({ takeover: "unchanged" });
    const { uuid: _, ...parked } = rowOf({ expires: time.now + 500 + HOLD_MS, ttlMs: 500 });
    await scene.put(parked);
    expect(await mutex.tryLock()).toBeNull();
    await time.advance(500);
    const copy = duplicate();
    scene.proxy.on("PutItem", copy);
    await (await mutex.tryLock({ holdAtLeastMs: HOLD_MS }))?.unlock();
    const before = await scene.row();
    expect((await copy.deliver()).status).toBe(400);
    expect(await scene.row()).toEqual(before);
  });
});

describe("on a network that fails", () => {
  test("trap 2: a parking whose reply is lost is a parking", async () => {
    const released = hear("dynamutex:released");
    const { time, mutex } = twoHosts();
    const lock = await mutex.lock({ holdAtLeastMs: HOLD_MS });
    const lost = scene.proxy.on("UpdateItem", resetAfter());
    const unlocking = lock.unlock();
    await lost.done;
    await sleptThrough(time, unlocking);
    expect(await scene.row()).toMatchObject({ expires: lock.acquired.getTime() + HOLD_MS });
    expect(scene.proxy.counts()).toEqual({ PutItem: 1, UpdateItem: 2 });
    expect(released).toHaveLength(1);
  });

  test("late copies of the put and of a renewal leave the parked row as it is", async () => {
    const { mutex } = twoHosts();
    const put = duplicate();
    const renewal = duplicate();
    scene.proxy.on("PutItem", put);
    scene.proxy.on("UpdateItem", renewal);
    const lock = await mutex.lock({ holdAtLeastMs: HOLD_MS });
    await lock.extend();
    await lock.unlock();
    const before = await scene.row();
    for (const copy of [put, renewal]) {
      expect((await copy.deliver()).status).toBe(400);
      expect(await scene.row()).toEqual(before);
    }
  });

  test("a parking that the network prevents is given up and told, and the lease ends by itself", async () => {
    const failed = hear("dynamutex:release-failed");
    const { time, mutex } = twoHosts();
    const lock = await mutex.lock({ holdAtLeastMs: HOLD_MS });
    scene.proxy.on("UpdateItem", hang(), { times: 100 });
    await timedOut(time, lock.unlock());
    expect(failed).toHaveLength(1);
    expect(await scene.row()).toMatchObject({ uuid: lock.uuid, expires: lock.expires.getTime() });
  });
});
