import { describe, expect, test } from "@jest/globals";
import type { TryLockOptions } from "../../../lib/index.js";
import { eventually } from "../../support/eventually.js";
import { resetAfter } from "../../support/fault-proxy.js";
import { ManualTime } from "../../support/manual-time.js";
import { type Attributes, rowOf, useScene } from "../../support/scene.js";
import { afterSleeps } from "../../support/settled.js";

const scene = useScene();

const TTL_MS = 30_000;

function twoHosts() {
  const time = new ManualTime();
  const mutexOfHost = () => scene.host({ clock: time.clock(), ttlMs: TTL_MS }).mutex(scene.name);
  return { time, mutex: mutexOfHost(), other: mutexOfHost() };
}

const job = () => "done";
const RAN = { ran: true, value: "done" };
const DONE = { ran: false, reason: "done" };
const HELD = { ran: false, reason: "held" };

/** The row remembers this tick, and nothing ever purges it. */
async function expectKept(tick: number, attributes: Attributes): Promise<void> {
  const row = await scene.row();
  expect(row).toMatchObject({ tick, ...attributes });
  expect(row).not.toHaveProperty("purge");
}

describe("a job that runs once for each tick", () => {
  test("is refused at the same tick and at an earlier one, on every host, and runs at a later one", async () => {
    const { mutex, other } = twoHosts();
    expect(await mutex.tryRun(job, { once: 100 })).toEqual(RAN);
    for (const host of [mutex, other]) {
      for (const once of [100, 99, -100]) {
        expect(await host.tryRun(job, { once })).toMatchObject({ ...DONE, holder: { tick: 100, uuid: undefined } });
        expect(await host.tryLock({ once })).toBeNull();
      }
    }
    expect(await other.tryRun(job, { once: 101 })).toEqual(RAN);
    expect(await mutex.tryRun(job, { once: 101 })).toMatchObject({ ...DONE, holder: { tick: 101 } });
  });

  test("a date is its milliseconds, and a tick may be anything from -(2^53 - 1) to 2^53 - 1", async () => {
    const { mutex } = twoHosts();
    const ticks = [Number.MIN_SAFE_INTEGER, -1, -0, 1, new Date(1_000), new Date("2026-11-20T12:00Z"), 2 ** 53 - 1];
    for (const once of ticks) {
      const lock = await mutex.tryLock({ once });
      expect(lock?.tick).toBe(Number(once) + 0);
      await lock?.unlock();
      expect(await mutex.tryRun(job, { once })).toMatchObject(DONE);
    }
    expect(await mutex.tryRun(job, { once: 0 })).toMatchObject({ ...DONE, holder: { tick: 2 ** 53 - 1 } });
  });

  test("while it runs, its own tick is done and a later one is held", async () => {
    const { mutex, other } = twoHosts();
    await using lock = await mutex.tryLock({ once: 7 });
    expect(await other.tryRun(job, { once: 7 })).toMatchObject({ ...DONE, holder: { uuid: lock?.uuid } });
    expect(await other.tryRun(job, { once: 8 })).toMatchObject({ ...HELD, holder: { uuid: lock?.uuid } });
    expect(await other.tryRun(job)).toMatchObject(HELD);
    expect(await mutex.tryRun(job, { once: 8 })).toMatchObject({ ...HELD, holder: { tick: 7 } });
  });

  test("a tick whose holder died is not run again, and the next one is, when the lease is over", async () => {
    const { time, other } = twoHosts();
    await scene.put(rowOf({ expires: time.now + TTL_MS, ttlMs: TTL_MS, tick: 7 }));
    expect(await other.tryRun(job, { once: 8 })).toMatchObject(HELD);
    await time.advance(TTL_MS + 1);
    expect(await other.tryRun(job, { once: 7 })).toMatchObject(DONE);
    expect(await other.tryRun(job, { once: 8 })).toEqual(RAN);
  });

  test("a row with a tick is kept at its release, and nothing ever purges it", async () => {
    const { time, mutex } = twoHosts();
    await using lock = await mutex.tryLock({ once: 7 });
    await expectKept(7, { uuid: lock?.uuid });
    await lock?.extend();
    await time.advance(TTL_MS / 2);
    await eventually(() => scene.proxy.count("UpdateItem") === 3);
    await expectKept(7, { uuid: lock?.uuid });
    await lock?.unlock();
    await expectKept(7, { expires: 0 });
    expect(await scene.row()).not.toHaveProperty("uuid");
  });

  test("plain use of the same name, kept or held for a while, leaves the tick in place and gives it no purge date", async () => {
    const { time, mutex, other } = twoHosts();
    await mutex.tryRun(job, { once: 7 });
    const lock = await other.lock();
    await expectKept(7, { uuid: lock.uuid });
    await lock.extend();
    await expectKept(7, { uuid: lock.uuid });
    await lock.unlock();
    await expectKept(7, { expires: 0 });
    await (await mutex.lock({ holdAtLeastMs: 5_000 })).unlock();
    await expectKept(7, { expires: time.now + 5_000 });
    await time.advance(5_001);
    expect(await other.tryRun(job, { once: 7 })).toMatchObject(DONE);
    expect(await other.tryRun(job, { once: 8 })).toEqual(RAN);
  });

  test("a process that saw the row before it had a tick learns of it", async () => {
    const { mutex, other } = twoHosts();
    const { uuid: _, ...free } = rowOf({ expires: 0, fence: 41 });
    await scene.put(free);
    await (await mutex.lock()).unlock();
    await scene.put({ ...free, tick: 9 });
    const lock = await mutex.lock();
    expect(await scene.row()).toMatchObject({ uuid: lock.uuid, fence: 41, tick: 9 });
    expect(await other.tryLock()).toBeNull();
    await scene.put({ ...free, tick: 9 });
    await (await other.lock()).unlock();
    expect(await scene.row()).toMatchObject({ fence: 41, tick: 9 });
    await expect(lock.unlock()).rejects.toMatchObject({ code: "LOCK_LOST" });
  });

  test("both at once: held for a while, and done for the tick", async () => {
    const { time, mutex, other } = twoHosts();
    expect(await mutex.tryRun(job, { once: 7, holdAtLeastMs: 5_000 })).toEqual(RAN);
    expect(await other.tryRun(job, { once: 7 })).toMatchObject(DONE);
    expect(await other.tryRun(job, { once: 8 })).toMatchObject({ ...HELD, holder: { uuid: undefined } });
    await time.advance(5_001);
    expect(await other.tryRun(job, { once: 8 })).toEqual(RAN);
  });
});

test("a tick costs one write to take it and one to release it; one that is refused costs one", async () => {
  const { mutex, other } = twoHosts();
  await mutex.tryRun(job, { once: 7 });
  expect(scene.proxy.counts()).toEqual({ UpdateItem: 2 });
  expect(scene.proxy.units()).toEqual({ read: 0, write: 2 });
  await other.tryRun(job, { once: 7 });
  expect(scene.proxy.counts()).toEqual({ UpdateItem: 3 });
  expect(scene.proxy.units()).toEqual({ read: 0, write: 3 });
});

test("trap 1: a tick whose reply is lost is granted, by the row's own uuid", async () => {
  const { time, mutex } = twoHosts();
  const lost = scene.proxy.on("UpdateItem", resetAfter());
  const running = mutex.tryRun((lock) => lock.tick, { once: 7 });
  await lost.done;
  expect(await afterSleeps(time, running)).toEqual({ ran: true, value: 7 });
  expect(await mutex.tryRun(job, { once: 7 })).toMatchObject(DONE);
});

describe("a tick that cannot work", () => {
  test.each([
    [{ once: 0.5 }, "once"],
    [{ once: Number.NaN }, "once"],
    [{ once: Number.POSITIVE_INFINITY }, "once"],
    [{ once: 2 ** 53 }, "once"],
    [{ once: new Date(Number.NaN) }, "once"],
    [{ once: "2026-11-20" }, "once"],
    [{ once: null }, "once"],
    [{ once: 7n }, "once"],
    [{ everyMs: 999 }, "everyMs"],
    [{ everyMs: 0 }, "everyMs"],
    [{ everyMs: -60_000 }, "everyMs"],
    [{ everyMs: 1_000.5 }, "everyMs"],
    [{ everyMs: Number.POSITIVE_INFINITY }, "everyMs"],
    [{ everyMs: "60000" }, "everyMs"],
    [{ once: 1, everyMs: 60_000 }, "everyMs"],
  ])("%p is refused before anything is sent", async (options, option) => {
    const { mutex } = twoHosts();
    const refused = { code: "LOCK_CONFIG", option };
    await expect(mutex.tryLock(options as TryLockOptions)).rejects.toMatchObject(refused);
    await expect(mutex.tryRun(job, options as TryLockOptions)).rejects.toMatchObject(refused);
    expect(scene.proxy.counts()).toEqual({});
  });

  test.each(["once", "everyMs"])(
    "%s is refused where a call would wait: it says that it is no option",
    async (option) => {
      const { mutex } = twoHosts();
      const options = { [option]: 60_000 } as object;
      await expect(mutex.lock(options)).rejects.toMatchObject({ code: "LOCK_CONFIG", option });
      await expect(mutex.run(job, options)).rejects.toMatchObject({ code: "LOCK_CONFIG", option });
      expect(scene.proxy.counts()).toEqual({});
    },
  );
});
