import { describe, expect, test } from "@jest/globals";
import type { LockTable, Mutex } from "../../../lib/index.js";
import { hear } from "../../support/diagnostics.js";
import { duplicate, hang, resetAfter } from "../../support/fault-proxy.js";
import { ManualTime } from "../../support/manual-time.js";
import { rowOf, useScene } from "../../support/scene.js";
import { sleptThrough, timedOut } from "../../support/settled.js";

const scene = useScene();

const TTL_MS = 30_000;
const HOLD_MS = 10_000;
const HOUR_MS = 3_600_000;

/** Two hosts on one time that the test moves. */
function twoHosts(options: { readonly takeover?: "expired" | "unchanged" } = {}) {
  const time = new ManualTime();
  const host = (tag: string): LockTable => scene.host({ tag, clock: time.clock(), ttlMs: TTL_MS, ...options });
  return { time, mutex: host("a").mutex(scene.name), other: host("b").mutex(scene.name) };
}

/** Puts the row that a hold leaves behind. */
async function park(expires: number, ttlMs: number): Promise<void> {
  const { uuid: _, ...parked } = rowOf({ expires, ttlMs });
  await scene.put(parked);
}

/** Takes the lock and gives it back, after which nothing is left of it. */
async function expectFree(mutex: Mutex): Promise<void> {
  const lock = await mutex.tryLock();
  expect(lock?.held).toBe(true);
  await lock?.unlock();
  expect(await scene.row()).toBeUndefined();
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

  const failure = new Error("the job's own");
  const failing = () => {
    throw failure;
  };
  const OPTIONS = { holdAtLeastMs: HOLD_MS };
  test.each<[string, (mutex: Mutex) => Promise<unknown>]>([
    ["lock", async (mutex) => await (await mutex.lock(OPTIONS)).unlock()],
    ["tryLock", async (mutex) => await (await mutex.tryLock(OPTIONS))?.unlock()],
    ["run", (mutex) => mutex.run(() => "a fast job", OPTIONS)],
    ["tryRun", (mutex) => mutex.tryRun(() => "a fast job", OPTIONS)],
    ["run, whose job throws", (mutex) => expect(mutex.run(failing, OPTIONS)).rejects.toBe(failure)],
    ["tryRun, whose job throws", (mutex) => expect(mutex.tryRun(failing, OPTIONS)).rejects.toBe(failure)],
  ])("with %s, nobody has it before the time is over, and everybody may then", async (_, use) => {
    const { time, mutex, other } = twoHosts();
    await use(mutex);
    await time.advance(HOLD_MS - 1);
    expect(await other.tryLock()).toBeNull();
    const held = { ran: false, reason: "held", holder: { uuid: undefined } };
    expect(await mutex.tryRun(() => "again")).toMatchObject(held);
    await time.advance(1);
    expect(await mutex.tryLock()).toBeNull();
    await time.advance(1);
    await expectFree(other);
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
    await expectFree(early);
  });

  test.each(["expired", "unchanged"] as const)(
    "with takeover %s, a waiter has the lock when the hold is over: not before, and without a poll too late",
    async (takeover) => {
      const { time, mutex, other } = twoHosts({ takeover });
      await (await mutex.lock({ holdAtLeastMs: HOLD_MS })).unlock();
      const startedAt = time.now;
      const locking = other.lock();
      await sleptThrough(time, locking);
      expect(time.now - startedAt).toBe(HOLD_MS);
      await (await locking).unlock();
      expect(await scene.row()).toBeUndefined();
    },
  );

  test("a lease with a hold is not passed on: the next section of its process waits until it is over", async () => {
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

  test("one whose lease was lost is parked all the same, where its row is still its own", async () => {
    const { time, mutex, other } = twoHosts();
    const lock = await mutex.lock({ holdAtLeastMs: 2 * TTL_MS });
    // Until then its row shows the lease alone: a hold survives no crash.
    expect(await scene.row()).toMatchObject({ expires: time.now + TTL_MS });
    scene.proxy.partition("a", "reset");
    await time.advance(TTL_MS);
    scene.proxy.heal("a");
    await expect(lock.unlock()).rejects.toMatchObject({ code: "LOCK_LOST", reason: "expired" });
    expect(await scene.row()).not.toHaveProperty("uuid");
    await time.advance(TTL_MS);
    expect(await other.tryLock()).toBeNull();
    await time.advance(1);
    await expectFree(other);
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

describe("by those who watch it, a parked row", () => {
  test.each([
    ["unchanged", HOUR_MS],
    ["unchanged", -HOUR_MS],
    ["expired", HOUR_MS], // A clock is trusted as well, and who watches needs none.
  ] as const)(
    "trap 32: whose stamp is off is taken once it was watched for its ttl: takeover %s, %d ms",
    async (takeover, offMs) => {
      const { time, other } = twoHosts({ takeover });
      await park(time.now + offMs, 500);
      expect(await other.tryLock()).toBeNull();
      await time.advance(499);
      expect(await other.tryLock()).toBeNull();
      await time.advance(1);
      await expectFree(other);
    },
  );

  test("is not taken by a late copy of its holder's own claim, which took a parked row itself", async () => {
    const { time, mutex } = twoHosts({ takeover: "unchanged" });
    await park(time.now + 500 + HOLD_MS, 500);
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
