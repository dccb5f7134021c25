import { describe, expect, test } from "@jest/globals";
import type { Clock, LockTable } from "../lib/index.js";
import { hear, useWarnings } from "./support/diagnostics.js";
import { watch } from "./support/eventually.js";
import { ManualTime } from "./support/manual-time.js";
import { rowOf, useScene } from "./support/scene.js";

const scene = useScene();

const MINUTE_MS = 60_000;

/** Long enough that nothing is renewed and that nobody looks for others in the time of a test. */
const LONG = { ttlMs: 36_000_000, handOverMs: 36_000_000, poll: { minMs: 10_000, maxMs: 10_000 } };

const warnings = useWarnings();

/** The clock of a process that runs by itself, as far as the library can tell. */
function clockOf(time: ManualTime): Clock {
  return { ...time.clock(), stay: () => () => undefined };
}

function host(time: ManualTime): LockTable {
  return scene.host({ clock: clockOf(time), ...LONG });
}

/** Three callers of one lock, of which the first has ended after 40 s. */
async function secondOfThree(time: ManualTime, clock: Clock = clockOf(time)) {
  const mutex = scene.host({ clock, ...LONG }).mutex(scene.name);
  const first = await mutex.lock();
  const next = mutex.lock();
  const last = mutex.lock();
  await time.advance(40_000);
  await first.unlock();
  return { second: await next, last };
}

describe("a call that waits behind one section of its own process", () => {
  test("says so after a minute, once, and waits on", async () => {
    const asked = hear("dynamutex:asked");
    const stuck = hear("dynamutex:stuck");
    const time = new ManualTime();
    const mutex = host(time).mutex(scene.name);
    const lock = await mutex.lock();
    const since = new Date(time.now);
    await time.advance(5_000);
    const inner = mutex.lock();
    const waiting = watch(inner);
    await time.advance(MINUTE_MS - 1);
    expect([stuck, warnings]).toEqual([[], []]);
    await time.advance(1);
    const heldMs = 5_000 + MINUTE_MS;
    const [, call] = asked.map((message) => message.call);
    expect(stuck).toEqual([{ name: scene.name, call, uuid: lock.uuid, since, heldMs, waitedMs: MINUTE_MS }]);
    expect(warnings).toHaveLength(1);
    const [text] = warnings;
    expect(text).toContain(JSON.stringify(scene.name));
    expect(text).toContain(since.toISOString());
    expect(text).toContain("for ever");
    await time.advance(10 * MINUTE_MS);
    expect([stuck.length, warnings.length, waiting.settled]).toEqual([1, 1, false]);
    await lock.unlock();
    await (await inner).unlock();
    expect(time.timers).toBe(0);
  });

  test("counts from when that section began: one that ends within a minute is none", async () => {
    const stuck = hear("dynamutex:stuck");
    const time = new ManualTime();
    const { second, last } = await secondOfThree(time);
    await time.advance(MINUTE_MS - 1);
    expect(stuck).toEqual([]);
    await time.advance(1);
    expect(stuck).toMatchObject([{ uuid: second.uuid, heldMs: MINUTE_MS, waitedMs: 40_000 + MINUTE_MS }]);
    await second.unlock();
    await (await last).unlock();
  });

  test("says nothing while another host holds the lock", async () => {
    const stuck = hear("dynamutex:stuck");
    const time = new ManualTime();
    await scene.put(rowOf({ expires: time.now + 36_000_000, ttlMs: 36_000_000 }));
    const waiting = host(time).mutex(scene.name).lock();
    waiting.catch(() => undefined);
    await scene.play(time, () => time.elapsed > 3 * MINUTE_MS, 5_000);
    expect([stuck, warnings]).toEqual([[], []]);
  });

  test("does not count the time in which the host was suspended", async () => {
    const stuck = hear("dynamutex:stuck");
    const time = new ManualTime();
    let suspendedMs = 0;
    const clock = { ...clockOf(time), atMost: () => time.elapsed + suspendedMs };
    const { second, last } = await secondOfThree(time, clock);
    suspendedMs = 3_600_000;
    await time.advance(MINUTE_MS - 1);
    expect(stuck).toEqual([]);
    await second.unlock();
    await (await last).unlock();
    expect(stuck).toEqual([]);
  });
});

describe("the timer of that", () => {
  test("is not set by a lock that is free, or by a try, and dies with the wait", async () => {
    const time = new ManualTime();
    const mutex = host(time).mutex(scene.name);
    const lock = await mutex.lock();
    // The lease's renewal and its deadline.
    expect(time.timers).toBe(2);
    expect(await mutex.tryLock()).toBeNull();
    expect(time.timers).toBe(2);
    const controller = new AbortController();
    const waiting = mutex.lock({ signal: controller.signal });
    expect(time.timers).toBe(3);
    controller.abort(new Error("enough"));
    await expect(waiting).rejects.toThrow("enough");
    expect(time.timers).toBe(2);
    const late = mutex.lock({ waitMs: 1_000 });
    expect(time.timers).toBe(4);
    const refused = expect(late).rejects.toMatchObject({ code: "LOCK_TIMEOUT" });
    await time.advance(1_000);
    await refused;
    expect(time.timers).toBe(2);
    await lock.unlock();
    expect(time.timers).toBe(0);
  });
});
