import { describe, expect, test } from "@jest/globals";
import type { Clock, LockTable } from "../../../lib/index.js";
import { hear, useWarnings } from "../../support/diagnostics.js";
import { watch } from "../../support/eventually.js";
import { ManualTime } from "../../support/manual-time.js";
import { rowOf, useScene } from "../../support/scene.js";

const scene = useScene();

const STUCK_MS = 5_000;

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

/** Three callers of one lock, of which the first has ended after 4 s. */
async function secondOfThree(time: ManualTime, clock: Clock = clockOf(time)) {
  const mutex = scene.host({ clock, ...LONG }).mutex(scene.name);
  const first = await mutex.lock();
  const next = mutex.lock();
  const last = mutex.lock();
  await time.advance(4_000);
  await first.unlock();
  return { second: await next, last };
}

describe("a call that waits behind one section of its own process", () => {
  test("says so after 5 s, once, and waits on", async () => {
    const asked = hear("dynamutex:asked");
    const stuck = hear("dynamutex:stuck");
    const time = new ManualTime();
    const mutex = host(time).mutex(scene.name);
    const lock = await mutex.lock();
    const since = new Date(time.now);
    await time.advance(2_000);
    const inner = mutex.lock();
    const waiting = watch(inner);
    await time.advance(STUCK_MS - 1);
    expect([stuck, warnings]).toEqual([[], []]);
    await time.advance(1);
    const heldMs = 2_000 + STUCK_MS;
    const [, call] = asked.map((message) => message.call);
    expect(stuck).toEqual([{ name: scene.name, call, uuid: lock.uuid, since, heldMs, waitedMs: STUCK_MS }]);
    expect(warnings).toHaveLength(1);
    const [text] = warnings;
    expect(text).toContain(JSON.stringify(scene.name));
    expect(text).toContain(since.toISOString());
    expect(text).toContain("If that section awaits this call, neither ends: a mutex is not re-entrant");
    expect(text).toContain(
      "see that the section ends, and unlocks by `await using lock = …`, `await lock.unlock()` or",
    );
    await time.advance(10 * STUCK_MS);
    expect([stuck.length, warnings.length, waiting.settled]).toEqual([1, 1, false]);
    await lock.unlock();
    await (await inner).unlock();
    expect(time.timers).toBe(0);
  });

  test("counts from when that section began: one that ends within 5 s is none", async () => {
    const stuck = hear("dynamutex:stuck");
    const time = new ManualTime();
    const { second, last } = await secondOfThree(time);
    await time.advance(STUCK_MS - 1);
    expect(stuck).toEqual([]);
    await time.advance(1);
    expect(stuck).toMatchObject([{ uuid: second.uuid, heldMs: STUCK_MS, waitedMs: 4_000 + STUCK_MS }]);
    await second.unlock();
    await (await last).unlock();
  });

  test("says nothing while another host holds the lock", async () => {
    const stuck = hear("dynamutex:stuck");
    const time = new ManualTime();
    await scene.put(rowOf({ expires: time.now + 36_000_000, ttlMs: 36_000_000 }));
    const waiting = host(time).mutex(scene.name).lock();
    waiting.catch(() => undefined);
    await scene.play(time, () => time.elapsed > 6 * STUCK_MS, 5_000);
    expect([stuck, warnings]).toEqual([[], []]);
  });

  test("does not count the time in which the host was suspended", async () => {
    const stuck = hear("dynamutex:stuck");
    const time = new ManualTime();
    let suspendedMs = 0;
    const clock = { ...clockOf(time), atMost: () => time.elapsed + suspendedMs };
    const { second, last } = await secondOfThree(time, clock);
    suspendedMs = 3_600_000;
    await time.advance(STUCK_MS - 1);
    expect(stuck).toEqual([]);
    await second.unlock();
    await (await last).unlock();
    expect(stuck).toEqual([]);
  });
});

describe("whichever call took the lock, and whichever waits,", () => {
  const KINDS: readonly (readonly [string, (locks: LockTable) => Promise<unknown>])[] = [
    ["lock()", (locks) => locks.mutex(scene.name).lock()],
    ["run()", (locks) => new Promise((began) => void locks.mutex(scene.name).run(() => new Promise(began)))],
    ["lockAll()", (locks) => locks.lockAll([scene.name, `${scene.name}-other`])],
    ["resume()", async (locks) => locks.mutex(scene.name).resume(await handedOff(locks))],
    ["elect()", (locks) => new Promise((leads) => void locks.mutex(scene.name).elect(() => new Promise(leads)))],
    [
      "singleFlight()",
      (locks) => new Promise((runs) => void locks.mutex(scene.name).singleFlight(() => new Promise(runs))),
    ],
  ];
  const WAITS: typeof KINDS = [
    ["lock()", (locks) => locks.mutex(scene.name).lock({ waitMs: 6_000 })],
    ["a fair lock()", (locks) => locks.mutex(scene.name, { fair: true }).lock({ waitMs: 6_000 })],
    ["lockAll()", (locks) => locks.lockAll([scene.name], { waitMs: 6_000 })],
  ];

  async function handedOff(locks: LockTable): Promise<string> {
    return (await locks.mutex(scene.name).lock()).handOff({ validForMs: 60_000 });
  }

  const bounded = { waitMs: 6_000 };
  const semaphore = (locks: LockTable) => locks.semaphore(scene.name, { permits: 1 });
  const shared = (locks: LockTable) => locks.sharedMutex(scene.name);
  const [[, lock]] = KINDS as typeof KINDS & readonly [(typeof KINDS)[number]];
  const CASES = [
    ...KINDS.flatMap(([taken, take]) => WAITS.map(([waits, wait]) => [taken, waits, take, wait] as const)),
    ["lock()", "singleFlight()", lock, (locks: LockTable) => locks.mutex(scene.name).singleFlight(() => 1, bounded)],
    [
      ...["the only permit", "another"],
      ...[(locks: LockTable) => semaphore(locks).lock(), (locks: LockTable) => semaphore(locks).lock(bounded)],
    ],
    [
      ...["exclusive.lock()", "shared.lock()"],
      ...[
        (locks: LockTable) => shared(locks).exclusive.lock(),
        (locks: LockTable) => shared(locks).shared.lock(bounded),
      ],
    ],
    [
      ...["shared.lock()", "exclusive.lock()"],
      ...[
        (locks: LockTable) => shared(locks).shared.lock(),
        (locks: LockTable) => shared(locks).exclusive.lock(bounded),
      ],
    ],
  ] as const;

  test.each(CASES)("%s, then %s: it is told after 5 s, and in the timeout", async (_taken, waits, take, wait) => {
    const stuck = hear("dynamutex:stuck");
    const time = new ManualTime();
    const locks = host(time);
    void take(locks).catch(() => undefined);
    await scene.play(time, () => scene.proxy.requests.length > 0 && locks.toJSON().held > 0, 10);
    const waiting = wait(locks);
    const refused = expect(waiting).rejects.toThrow(
      new RegExp(
        `held by a section of this process${waits === "another" ? " with its only permit" : ""}, .*, until .*\\. ` +
          "If that section awaits this call, waiting longer does not help: (" +
          "a (shared )?mutex is not re-entrant, so use the lock that the section has|take all permits that a section needs .*)$",
      ),
    );
    const watched = watch(waiting.catch(() => undefined));
    await scene.play(time, () => watched.settled, 500);
    await refused;
    expect(stuck).toMatchObject([{ name: scene.name }]);
    const closed = locks.close({ drainMs: 0 }).catch(() => undefined);
    const ending = watch(closed);
    await scene.play(time, () => ending.settled, 500);
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
