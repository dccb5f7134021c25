import { describe, expect, test } from "@jest/globals";
import type { MutexOptions } from "../lib/index.js";
import { watch } from "./support/eventually.js";
import { duplicate, resetAfter } from "./support/fault-proxy.js";
import { ManualTime } from "./support/manual-time.js";
import { useScene } from "./support/scene.js";

// The first write of a process is stamped before it knows the table's time, by the clock of its host.
const scene = useScene();

const TTL_MS = 30_000;
const HOUR_MS = 3_600_000;

/** A time that the table's replies show, and a host whose own clock is ahead of it. */
function world() {
  const time = new ManualTime();
  scene.proxy.rewriteDate(time.dateHeader);
  const host = (aheadMs: number, tag = "host", options: MutexOptions = {}) =>
    scene.host({ clock: time.tableClock({ aheadMs }), tag }).mutex(scene.name, options);
  return { time, host };
}

describe("the first lock of a process, on the table's own time", () => {
  test.each([
    // A right clock costs nothing; one that is late is made good by a renewal, one that is early by a correction.
    [0, { PutItem: 1 }],
    [500, { PutItem: 1 }],
    [-500, { PutItem: 1 }],
    [-20_000, { PutItem: 1, UpdateItem: 1 }],
    [-HOUR_MS, { PutItem: 1, UpdateItem: 1 }],
    [HOUR_MS, { PutItem: 1, UpdateItem: 1 }],
  ])("with a host's clock that is %d ms ahead is good before it is handed out", async (aheadMs, requests) => {
    const { time, host } = world();
    const lock = await host(aheadMs).lock();
    expect(scene.proxy.counts()).toEqual(requests);
    const { expires, uuid } = (await scene.row()) as { expires: number; uuid: string };
    expect([expires, uuid]).toEqual([lock.expires.getTime(), lock.uuid]);
    // Never relied on beyond what is on the row, and that no later than a second's doubt makes it.
    expect(lock.remainingMs).toBeGreaterThanOrEqual(TTL_MS / 2 - 3_000);
    expect(time.now + lock.remainingMs + 3_000).toBeLessThanOrEqual(expires);
    expect(expires).toBeLessThanOrEqual(time.now + TTL_MS + 2_500);
    await lock.unlock();
    expect(await scene.row()).toBeUndefined();
  });

  test("from the second lock on, bounds are known and nothing has to be made good", async () => {
    const { host } = world();
    const mutex = host(-HOUR_MS);
    await (await mutex.lock()).unlock();
    scene.proxy.reset();
    await (await mutex.lock()).unlock();
    expect(scene.proxy.counts()).toEqual({ PutItem: 1, DeleteItem: 1 });
  });

  test("does not take what is held, whatever its own clock says", async () => {
    const { host } = world();
    const lock = await host(0).lock();
    expect(await host(HOUR_MS, "early").tryLock()).toBeNull();
    expect(await host(-HOUR_MS, "late").tryLock()).toBeNull();
    expect(await scene.row()).toMatchObject({ uuid: lock.uuid });
    await lock.unlock();
  });

  test("takes what is over by the table's time, by a second write", async () => {
    const { time, host } = world();
    await host(0, "dead").lock();
    scene.proxy.partition("dead");
    await time.advance(TTL_MS + 10_000);
    const lock = await host(-HOUR_MS, "late").tryLock();
    expect(lock?.held).toBe(true);
    await lock?.unlock();
  });
});

describe("trap 23: a stale stamp that the bounds cannot contradict, because a Date has whole seconds", () => {
  test.each([-1_000, -1_500, -1_999, -2_500])(
    "with a host's clock %d ms off, the lease is counted from the bounds: it is over before anybody can take it",
    async (aheadMs) => {
      const { time, host } = world();
      // Just before the table's second is over, when its Date is the most out of date.
      await time.advance(999);
      // The least margin: it is not what makes up for the stamp.
      const lock = await host(aheadMs, "holder", { safetyMarginMs: 60 }).lock();
      let lostAt = Number.POSITIVE_INFINITY;
      lock.signal.addEventListener("abort", () => {
        lostAt = time.elapsed;
      });
      const { expires } = (await scene.row()) as { expires: number };
      expect(time.now + lock.remainingMs).toBeLessThan(expires);
      expect(lock.remainingMs).toBeLessThan(TTL_MS);

      // A contender that knows the time as well as anybody can.
      const contender = host(0, "contender");
      for (let reply = 0; reply < 5; reply += 1) {
        expect(await contender.tryLock()).toBeNull();
        await time.advance(200);
      }
      scene.proxy.partition("holder");
      const locking = watch(contender.lock());
      await scene.play(time, () => locking.settled, 100);
      expect(lostAt).toBeLessThan(time.elapsed);
    },
  );
});

describe("trap 24: a correction is not undone by a late copy of what it corrected", () => {
  test("the first put, delivered again while the lock is held, is refused", async () => {
    const { host } = world();
    const copy = duplicate();
    scene.proxy.on("PutItem", copy);
    const lock = await host(HOUR_MS).lock();
    const before = await scene.row();
    const first = (await copy.taken).body.Item?.uuid?.S;
    expect(lock.uuid).not.toBe(first);
    expect((await copy.deliver()).status).toBe(400);
    expect(await scene.row()).toEqual(before);
    await lock.extend();
    await lock.unlock();
  });

  test("the correction, delivered again after a renewal, is refused", async () => {
    const { host } = world();
    const copy = duplicate();
    scene.proxy.on("UpdateItem", copy);
    const lock = await host(HOUR_MS).lock();
    await lock.extend();
    const before = await scene.row();
    expect((await copy.deliver()).status).toBe(400);
    expect(await scene.row()).toEqual(before);
    await lock.unlock();
  });

  test("a correction whose reply is lost is a correction", async () => {
    const { time, host } = world();
    scene.proxy.on("UpdateItem", resetAfter());
    const locking = host(HOUR_MS).lock();
    const watched = watch(locking);
    await time.sleepUntil(() => watched.settled);
    const lock = await locking;
    expect(await scene.row()).toMatchObject({ uuid: lock.uuid, expires: lock.expires.getTime() });
    expect(lock.expires.getTime()).toBeLessThanOrEqual(time.now + TTL_MS + 2_500);
    expect(scene.proxy.counts()).toEqual({ PutItem: 1, UpdateItem: 2 });
    await lock.unlock();
  });

  test("the first put, delivered again after the release: nobody waits for the hour that it is early", async () => {
    const { time, host } = world();
    const copy = duplicate();
    scene.proxy.on("PutItem", copy);
    const lock = await host(HOUR_MS).lock();
    await lock.unlock();
    expect((await copy.deliver()).status).toBe(200);
    const locking = watch(host(0, "next").lock());
    const since = time.elapsed;
    await time.sleepUntil(() => locking.settled);
    expect(time.elapsed - since).toBeLessThanOrEqual(TTL_MS);
  });
});
