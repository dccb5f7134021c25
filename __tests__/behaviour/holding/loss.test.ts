import { describe, expect, test } from "@jest/globals";
import { findLockLost, type Lock, LockError, LockLostError, LockStoreError, systemClock } from "../../../lib/index.js";
import { hear } from "../../support/diagnostics.js";
import { eventually, watch } from "../../support/eventually.js";
import { ManualTime } from "../../support/manual-time.js";
import { hosts, MemoryHost } from "../../support/memory-host.js";
import { type Attributes, type HostOptions, useScene } from "../../support/scene.js";
import { sleptThrough } from "../../support/settled.js";

const scene = useScene();

const TTL_MS = 30_000;
const LEASE_MS = 27_000;

/** A lock on a time that the test moves, and when its holder was told of its loss. */
async function hold({ time = new ManualTime(), ...options }: { time?: ManualTime } & HostOptions = {}) {
  const lock = await scene
    .host({ clock: time.clock(), tag: "holder", ...options })
    .mutex(scene.name)
    .lock();
  const told: { at?: number } = {};
  lock.signal.addEventListener("abort", () => {
    told.at = time.elapsed;
  });
  return { time, lock, told };
}

/** A clock whose time of day a test sets, and whose stopwatches go on. */
function clockThatIsSet(time: ManualTime) {
  let aheadMs = 0;
  const wall = () => ({ earliest: time.now + aheadMs, latest: time.now + aheadMs });
  const set = (byMs: number): void => {
    aheadMs = byMs;
  };
  return { clock: { ...time.clock(), wall }, set };
}

describe("how a lock is lost", () => {
  test.each<readonly [string, string, (row: Attributes) => Promise<void>]>([
    ["stolen", "another's row", (row) => scene.put({ ...row, uuid: "thief" })],
    ["deleted", "nothing", () => scene.remove()],
    ["forced", "the row without its uuid", ({ uuid: _, ...row }) => scene.put(row)],
  ])("%s: the next renewal finds %s, and leaves everything as it is", async (reason, _, act) => {
    const losses = hear("dynamutex:lost");
    const { time, lock, told } = await hold();
    await act((await scene.row()) ?? {});
    const found = await scene.row();
    expect(lock.held).toBe(true);
    await time.advance(TTL_MS / 2);
    await eventually(() => told.at !== undefined);
    expect(told.at).toBe(TTL_MS / 2);
    expect(losses).toMatchObject([{ name: scene.name, uuid: lock.uuid, reason, cause: undefined }]);
    await expectLost(lock, reason);
    expect(losses).toHaveLength(1);
    expect(await scene.row()).toEqual(found);
    expect(time.timers).toBe(0);
  });

  test("a row that became somebody's item of another kind ends the lock at its deadline, and is left as it is", async () => {
    const { time, lock, told } = await hold();
    await scene.put({ customer: "Ada" });
    await time.advance(TTL_MS / 2);
    await time.sleepUntil(() => told.at !== undefined);
    expect(told.at).toBe(LEASE_MS);
    // A release is tried again, whatever the failure.
    await sleptThrough(time, lock.unlock());
    await expectLost(lock, "expired");
    expect(await scene.row()).toEqual({ name: scene.name, sort: "lock", customer: "Ada" });
  });

  async function expectLost(lock: Lock, reason: string): Promise<void> {
    expect(lock.signal.reason).toBeInstanceOf(LockLostError);
    expect(lock.signal.reason).toMatchObject({ code: "LOCK_LOST", reason, lockName: lock.name, uuid: lock.uuid });
    expect([lock.held, lock.remainingMs, lock.signal.aborted]).toEqual([false, 0, true]);
    await expect(lock.unlock()).rejects.toBe(lock.signal.reason);
  }
});

describe("a table that cannot be reached", () => {
  const HOUR_MS = 3_600_000;
  // Clocks as wrong, one against the other, as they say they may be.
  test.each([
    ["expired", 0, 0],
    ["expired", -1_000, 1_000],
    ["expired", 1_000, -1_000],
    ["unchanged", 0, 0],
    ["unchanged", -HOUR_MS, HOUR_MS],
    ["unchanged", HOUR_MS, -HOUR_MS],
  ] as const)(
    "ends a lease that was renewed at its deadline, not before, and before anybody else can take it (%s, holder %d ms off, contender %d ms)",
    async (takeover, holderAheadMs, contenderAheadMs) => {
      const time = new ManualTime();
      const clock = time.clock({ aheadMs: holderAheadMs, maxSkewMs: 1_000 });
      // The least margin: it is not what keeps the two apart.
      const { lock, told } = await hold({ time, clock, safetyMarginMs: 60 });
      const contender = scene
        .host({ clock: time.clock({ aheadMs: contenderAheadMs, maxSkewMs: 1_000 }), tag: "contender" })
        .mutex(scene.name, { takeover, poll: { minMs: 10, maxMs: 10 } });
      const locking = watch(contender.lock());
      // Its last renewal is sent after half of its first lease.
      await scene.play(time, () => time.elapsed > TTL_MS / 2, 500);
      const end = TTL_MS / 2 + TTL_MS;
      scene.proxy.partition("holder", "hang");
      await scene.play(time, () => locking.settled, 500);
      expect(told.at).toBe(end - 60);
      expect(lock.signal.reason).toMatchObject({ reason: "expired" });
      expect(time.elapsed).toBeGreaterThanOrEqual(end);
      // No later than the lease's end on the most doubtful clock, and one step of this test.
      expect(time.elapsed).toBeLessThanOrEqual(end + 4_000 + 1_000);
    },
  );

  test("a section that ends while the table is still out of reach hears of the loss, and soon", async () => {
    const failures = hear("dynamutex:release-failed");
    const { time, lock, told } = await hold();
    scene.proxy.partition("holder", "hang");
    await time.passUntil(() => told.at !== undefined);
    const endedAt = time.elapsed;
    const unlocking = lock.unlock();
    const watched = watch(unlocking);
    await time.passUntil(() => watched.settled);
    await expect(unlocking).rejects.toBe(lock.signal.reason);
    expect(time.elapsed - endedAt).toBeLessThanOrEqual(6_000);
    expect(failures.map(({ uuid }) => uuid)).toEqual([lock.uuid]);
  });

  test("a reply that comes after the deadline does not bring the lease back", async () => {
    const { time, lock, told } = await hold();
    await time.advance(14_999);
    const held = scene.proxy.hold("UpdateItem", { at: "reply", times: 20 });
    await time.passUntil(() => told.at !== undefined);
    held.release();
    await scene.quiet();
    expect(lock.held).toBe(false);
    await expect(lock.unlock()).rejects.toMatchObject({ reason: "expired" });
  });
});

describe("trap 11: the lease is counted from the request, not from the reply", () => {
  // A watcher needs no clock.
  test.each([0, -3_600_000])(
    "of the put, while whose reply is on its way the clock is set by %d ms",
    async (setByMs) => {
      const time = new ManualTime();
      const held = scene.proxy.hold("PutItem", { at: "reply" });
      const { clock, set } = clockThatIsSet(time);
      const holding = hold({ time, clock });
      await held.arrived;
      await time.advance(2_500);
      set(setByMs);
      held.release();
      const { lock } = await holding;
      expect(lock.remainingMs).toBe(LEASE_MS - 2_500);
      await lock.unlock();
    },
  );

  test("of a renewal", async () => {
    const { time, lock, told } = await hold();
    const before = lock.expires.getTime();
    const held = scene.proxy.hold("UpdateItem", { at: "reply" });
    await time.advance(TTL_MS / 2);
    await held.arrived;
    await time.advance(2_500);
    held.release();
    await eventually(() => lock.expires.getTime() > before);
    expect(lock.remainingMs).toBe(LEASE_MS - 2_500);
    scene.proxy.partition("holder");
    await time.passUntil(() => told.at !== undefined);
    expect(told.at).toBe(TTL_MS / 2 + LEASE_MS);
  });

  test("a lock whose deadline has passed when its reply arrives is never handed out", async () => {
    const time = new ManualTime();
    const acquired: string[] = [];
    const mutex = scene
      .host({ clock: time.clock() })
      .mutex(scene.name, { ttlMs: 1_000, safetyMarginMs: 800, renewEveryMs: 100 });
    const held = scene.proxy.hold("PutItem", { at: "reply" });
    const locking = mutex.lock();
    const watched = watch(locking);
    locking.then(({ uuid }) => acquired.push(uuid)).catch(() => undefined);
    const late = (await held.arrived).body.Item?.uuid?.S;
    // The attempt may take 250 ms; the lease less its margin is over after 200.
    await time.advance(201);
    held.release();
    await scene.play(time, () => watched.settled, 10);
    const lock = await locking;
    expect(lock.held).toBe(true);
    expect(lock.remainingMs).toBeGreaterThan(0);
    expect(lock.remainingMs).toBeLessThanOrEqual(200);
    // By the same row, renewed, or by another; but never on the first put's time.
    if (lock.uuid === late) expect(scene.proxy.count("UpdateItem")).toBeGreaterThan(0);
    await lock.unlock();
    await scene.quiet();
    expect(await scene.row()).toBeUndefined();
  });
});

describe("trap 16: an event loop that was blocked beyond the deadline", () => {
  const TTL = { ttlMs: 300 };

  /** Nothing else runs in this process meanwhile: no timer, no reply. */
  function block(ms: number): void {
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
  }

  const FIRST_LINES: readonly [string, (lock: Lock, signal: AbortSignal) => unknown, unknown][] = [
    ["lock.held", (lock) => lock.held, false],
    ["lock.signal.aborted", (lock) => lock.signal.aborted, true],
    ["signal.aborted", (_, signal) => signal.aborted, true],
    ["signal.reason.reason", (_, signal) => signal.reason?.reason, "expired"],
    ["lock.remainingMs", (lock) => lock.remainingMs, 0],
    ["signal.throwIfAborted()", (_, signal) => thrownBy(() => signal.throwIfAborted()), "LOCK_LOST"],
    ["lock.assertHeld()", (lock) => thrownBy(() => lock.assertHeld()), "LOCK_LOST"],
  ];

  test.each(FIRST_LINES)("the first line after it sees the loss: %s", async (_, line, expected) => {
    const lock = await scene.host({ clock: systemClock() }).mutex(scene.name, TTL).lock();
    const { signal } = lock;
    const events: unknown[] = [];
    signal.addEventListener("abort", (event) => events.push(event));
    expect([lock.held, signal.aborted, signal.reason]).toEqual([true, false, undefined]);
    block(300);
    expect(line(lock, signal)).toBe(expected);
    expect([lock.held, signal.aborted]).toEqual([false, true]);
    expect(signal).toBe(lock.signal);
    await expect(lock.unlock()).rejects.toBe(signal.reason);
    expect(events).toHaveLength(1);
  });

  test("assertHeld() calls no lock released whose deadline comes while it looks", async () => {
    const { one } = hosts();
    const lock = await one.mutex("name", TTL).lock();
    const { clock } = one.session;
    const atMost = clock.atMost.bind(clock);
    let looks = 0;
    clock.atMost = () => {
      looks += 1;
      return atMost() + (looks > 1 ? TTL.ttlMs : 0);
    };
    // It is held at the first look, and lost from the second on: it was never released.
    expect([thrownBy(() => lock.assertHeld()), thrownBy(() => lock.assertHeld())]).toEqual([undefined, "LOCK_LOST"]);
  });

  test("its timer tells those who only listen, as soon as the loop turns", async () => {
    const lock = await scene.host({ clock: systemClock() }).mutex(scene.name, TTL).lock();
    const aborted = new Promise((resolve) => lock.signal.addEventListener("abort", resolve, { once: true }));
    block(300);
    await aborted;
    await expect(lock.unlock()).rejects.toMatchObject({ reason: "expired" });
  });

  test("a host that was suspended sees it at once, too: by the stopwatch that goes on meanwhile", async () => {
    const time = new ManualTime();
    let suspendedMs = 0;
    const right = time.clock();
    const { lock } = await hold({ time, clock: { ...right, atMost: () => right.atMost() + suspendedMs } });
    suspendedMs = LEASE_MS - 1;
    expect(lock.held).toBe(true);
    suspendedMs = LEASE_MS;
    expect([lock.held, lock.signal.aborted]).toEqual([false, true]);
  });

  test.each([true, false])(
    "a host that was suspended tells its section within a second, autoRenew: %s",
    async (autoRenew) => {
      const time = new ManualTime();
      let suspendedMs = 0;
      const right = time.clock();
      const { told } = await hold({ time, clock: { ...right, atMost: () => right.atMost() + suspendedMs }, autoRenew });
      await time.advance(100);
      suspendedMs = LEASE_MS;
      await time.advance(1_000);
      expect(told.at).toBeLessThanOrEqual(1_100);
    },
  );

  test("a suspend that a lease outlives does not cost it: its renewal leaves within a second", async () => {
    const time = new ManualTime();
    let suspendedMs = 0;
    const right = time.clock();
    const { lock } = await hold({ time, clock: { ...right, atMost: () => right.atMost() + suspendedMs } });
    await time.advance(100);
    suspendedMs = LEASE_MS - 2_000;
    const before = lock.expires.getTime();
    await time.advance(1_000);
    await eventually(() => lock.expires.getTime() > before);
    expect(lock.held).toBe(true);
  });

  test("a clock that is set forward ends a lease early, never late", async () => {
    const time = new ManualTime();
    const { clock, set } = clockThatIsSet(time);
    const { lock, told } = await hold({ time, clock });
    set(10_000);
    const before = lock.expires.getTime();
    await time.advance(TTL_MS / 2);
    await eventually(() => lock.expires.getTime() > before);
    expect(lock.remainingMs).toBe(LEASE_MS);
    scene.proxy.partition("holder");
    await time.passUntil(() => told.at !== undefined);
    expect(told.at).toBe(TTL_MS / 2 + LEASE_MS);
  });

  function thrownBy(act: () => void): unknown {
    try {
      act();
      return undefined;
    } catch (error) {
      return (error as LockError).code;
    }
  }
});

describe("what the holder is told", () => {
  test("it is the same error object wherever it is met, at no further request", async () => {
    const { lock } = await hold();
    await scene.remove();
    const refusal = await lock.extend().catch((error: unknown) => error);
    const { reason } = lock.signal;
    scene.proxy.reset();
    expect(refusal).toBe(reason);
    expect(reason).toBeInstanceOf(LockLostError);
    expect(() => lock.assertHeld()).toThrow(reason);
    expect(() => lock.signal.throwIfAborted()).toThrow(reason);
    await expect(lock.unlock()).rejects.toBe(reason);
    await expect(lock.unlock()).rejects.toBe(reason);
    await expect(lock[Symbol.asyncDispose]()).rejects.toBe(reason);
    await expect(lock.extend()).rejects.toBe(reason);
    expect(scene.proxy.requests).toEqual([]);
  });

  test.each([["5"], [Number.NaN], [-1], [null]])(
    "assertHeld(%j) is refused, and the lock is held",
    async (minRemainingMs) => {
      const { lock } = await hold();
      const refused = { code: "LOCK_CONFIG", option: "minRemainingMs", value: minRemainingMs };
      expect(() => lock.assertHeld(minRemainingMs as number)).toThrow(expect.objectContaining(refused));
      expect(lock.held).toBe(true);
      await lock.unlock();
    },
  );

  test("assertHeld asks for as much time as the caller needs", async () => {
    const { time, lock } = await hold();
    lock.assertHeld();
    lock.assertHeld(LEASE_MS);
    expect(() => lock.assertHeld(LEASE_MS + 1)).toThrow(LockLostError);
    await time.advance(7_000);
    lock.assertHeld(20_000);
    expect(() => lock.assertHeld(20_001)).toThrow(expect.objectContaining({ reason: "expired", uuid: lock.uuid }));
    // It is held all the same, so nothing else is said.
    expect(() => lock.assertHeld(20_001)).toThrow(/20000 ms of its lease are left, and 20001 were asked for/);
    // Too little for this caller is no loss of the lock.
    expect([lock.held, lock.signal.aborted]).toEqual([true, false]);
    await lock.unlock();
  });
});

describe("await using", () => {
  /** Runs a body under a lock whose row somebody deletes. */
  async function lose(body: (lock: Lock) => void): Promise<unknown> {
    try {
      await using lock = await scene.host().mutex(scene.name).lock();
      await scene.remove();
      body(lock);
    } catch (error) {
      return error;
    }
    return undefined;
  }

  test("a body that ended well on a lock that was lost does not look like success", async () => {
    const error = await lose(() => undefined);
    expect(error).toBeInstanceOf(LockLostError);
    expect(error).toMatchObject({ reason: "deleted" });
    expect(findLockLost(error)).toBe(error);
  });

  test("a body that throws, on a lock that was lost: findLockLost finds the loss, and the body's error is there", async () => {
    const failure = new Error("the body failed");
    const error = (await lose(() => {
      throw failure;
    })) as Error & { error: unknown; suppressed: unknown };
    expect(error.name).toBe("SuppressedError");
    expect(error.suppressed).toBe(failure);
    expect(findLockLost(error)).toBe(error.error);
    expect(findLockLost(error)).toMatchObject({ reason: "deleted", lockName: scene.name });
  });
});

describe("findLockLost", () => {
  const lost = new LockLostError("name", "uuid", "stolen");
  const circle: { cause?: unknown } = new Error("round and round");
  circle.cause = circle;

  test.each([
    ["itself", lost, lost],
    ["a cause", new Error("outer", { cause: new Error("inner", { cause: lost }) }), lost],
    ["one of several", new AggregateError([new Error("one"), new Error("two", { cause: lost })]), lost],
    ["suppressed by another", { error: new Error("later"), suppressed: lost }, lost],
    ["two levels of suppression", { error: { error: lost, suppressed: 1 }, suppressed: new Error("first") }, lost],
    ["a circle of causes", circle, undefined],
    ["another error of ours", new LockError("LOCK_CLOSED", "closed"), undefined],
    ["nothing", undefined, undefined],
    ["no error at all", "text", undefined],
  ])("%s", (_, error, expected) => {
    expect(findLockLost(error)).toBe(expected);
  });
});

test("a listener of the signal that unlocks ends the section once, though the unlock itself has found the loss", async () => {
  const time = new ManualTime();
  const lock = await new MemoryHost(time).mutex("job", { ttlMs: 10_000, autoRenew: false }).lock();
  const ends: Promise<void>[] = [];
  lock.signal.addEventListener("abort", () => ends.push(lock.unlock()));
  time.skip(10_000); // no timer has run
  ends.push(lock.unlock());
  expect(ends.length).toBe(2);
  expect(ends[0]).toBe(ends[1]);
  await expect(ends[0]).rejects.toMatchObject({ code: "LOCK_LOST" });
});

test("a loss whose renewals were refused says why the last one was", async () => {
  const time = new ManualTime();
  const host = new MemoryHost(time);
  const lock = await host.mutex("memory").lock();
  const refused = new LockStoreError("not allowed to dynamodb:UpdateItem", { transient: false });
  host.fate = ({ kind }) => (kind === "write" ? Promise.reject(refused) : "answered");
  await time.advance(TTL_MS);
  expect(lock.signal.reason).toMatchObject({ reason: "expired" });
  expect(String(lock.signal.reason)).toContain("The last one failed: not allowed to dynamodb:UpdateItem");
});
