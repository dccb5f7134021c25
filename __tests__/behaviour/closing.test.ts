import { describe, expect, jest, test } from "@jest/globals";
import { LockLostError } from "../../lib/errors.js";
import type { Lock } from "../../lib/lock.js";
import { TestTable } from "../../lib/testing/index.js";
import { useWarnings } from "../support/diagnostics.js";
import { turn, watch } from "../support/eventually.js";
import { createGate } from "../support/fault-proxy/gate.js";
import { ManualTime } from "../support/manual-time.js";
import { isRelease, isTake, MemoryHost } from "../support/memory-host.js";
import { useScene } from "../support/scene.js";

const CLOSED = { code: "LOCK_CLOSED" };
const REVOKED = { code: "LOCK_LOST", reason: "closed" };

function setUp() {
  const time = new ManualTime();
  const host = new MemoryHost(time);
  const other = new MemoryHost(time, { owner: "other", table: host.table });
  return { time, host, other };
}

/** What a promise was rejected with. */
const errorOf = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => undefined,
    (error) => error,
  );

describe("the drain", () => {
  test("trap 30: a section may end, is renewed until then, and the close ends with it", async () => {
    const { time, host, other } = setUp();
    const lock = await host.mutex("a", { ttlMs: 3_000 }).lock();
    const closing = host.session.close(60_000);
    const closed = watch(closing);
    await time.advance(20_000);
    expect([lock.held, lock.signal.aborted, closed.settled]).toEqual([true, false, false]);
    expect(await other.mutex("a").tryLock()).toBeNull();
    await lock.unlock();
    await closing;
    expect(time.elapsed).toBe(20_000);
    expect(host.row("a")).toBeUndefined();
    expect([time.timers, host.closed]).toEqual([0, 1]);
  });

  test("whatever a section asks of its lock works until the drain is over", async () => {
    const { time, host } = setUp();
    const lock = await host.mutex("a").lock();
    const closing = host.session.close();
    await time.advance(9_999);
    await lock.extend();
    await lock.replaceData({ progress: 1 });
    lock.assertHeld();
    expect(host.row("a")).toMatchObject({ data: { progress: 1 } });
    await lock.unlock();
    await closing;
  });

  test("of a table with nothing to wait for is over at once", async () => {
    const { time, host } = setUp();
    await (await host.mutex("a").lock()).unlock();
    await host.session.close();
    expect([time.elapsed, time.timers, host.closed]).toEqual([0, 0, 1]);
  });

  test("does not wait for a section that lost its lock before", async () => {
    const { time, host } = setUp();
    const lock = await host.mutex("a", { maxHoldMs: 1_000 }).lock();
    await time.advance(1_000);
    expect(lock.signal.reason).toMatchObject({ reason: "max-hold" });
    await host.session.close();
    expect(time.elapsed).toBe(1_000);
    await expect(lock.unlock()).rejects.toBe(lock.signal.reason);
  });
});

describe("a writer that waits for readers", () => {
  test.each<readonly [string, number | undefined]>([
    ["between two looks", undefined],
    ["while a look is under way", 300],
  ])("is no section: a close frees its row at once, and resolves: %s", async (_, lookMs) => {
    const { time, host, other } = setUp();
    await using _reader = await other.sharedMutex("a").shared.lock();
    const writing = errorOf(host.sharedMutex("a").exclusive.lock());
    await time.advance(1_000);
    if (lookMs !== undefined) {
      let isLooking = false;
      host.fate = (message) => {
        isLooking ||= message.kind === "query";
        return message.kind === "query" ? time.clock().sleep(lookMs) : "answered";
      };
      await time.advanceUntil(() => isLooking);
    }
    const closing = host.session.close(0);
    const closed = watch(closing);
    expect(await writing).toMatchObject(CLOSED);
    await time.advanceUntil(() => closed.settled, { withinMs: 1_000 });
    await closing;
    expect(other.writer("a")).toBeUndefined();
    expect([host.session.leases.size, host.closed]).toEqual([0, 1]);
  });
});

describe("what waits", () => {
  test("for a lock of another host, in a fair queue, behind a section or for a set ends at once", async () => {
    const { time, host, other } = setUp();
    const [own, theirs] = [await host.mutex("own").lock(), await other.mutex("theirs", { fair: true }).lock()];
    const waits = [
      host.mutex("own").lock(),
      host.mutex("own").run(() => undefined),
      host.mutex("theirs").lock(),
      host.mutex("theirs", { fair: true }).lock(),
      host.mutex("theirs", { fair: true }).lock(),
      host.lockAll(["theirs", "free"]),
    ].map(errorOf);
    await time.advance(1_000);
    expect(host.table.partition("theirs").size).toBeGreaterThan(2);
    const closing = host.session.close();
    for (const error of await Promise.all(waits)) expect(error).toMatchObject(CLOSED);
    await turn();
    // Their places are gone, and the counter stays.
    expect([...host.table.partition("theirs").keys()].sort()).toEqual(["lock", "tickets"]);
    // Nobody is left to pass the lease on to: it is released.
    expect(own.held).toBe(true);
    await own.unlock();
    await closing;
    expect(host.row("own")).toBeUndefined();
    expect(time.elapsed).toBe(1_000);
    await theirs.unlock();
  });

  test("a lease that is about to be passed on to such a call is released", async () => {
    const { time, host } = setUp();
    const mutex = host.mutex("a", { fencing: true });
    const lock = await mutex.lock();
    const next = errorOf(mutex.lock());
    const reissue = createGate();
    host.fate = (message) =>
      message.kind === "write" && message.write.kind === "reissue" ? reissue.released : "answered";
    const unlocking = lock.unlock();
    await turn();
    const closing = host.session.close();
    expect(await next).toMatchObject(CLOSED);
    reissue.release();
    await Promise.all([unlocking, closing]);
    expect(host.row("a")?.uuid).toBeUndefined();
    expect(time.elapsed).toBe(0);
  });
});

describe("what runs when the drain is over", () => {
  test("trap 30: is revoked, run() rejects with the reason closed, and its row stays until it ends", async () => {
    const { time, host, other } = setUp();
    const end = createGate();
    let lock: Lock | undefined;
    // It ignores its signal.
    const running = host.mutex("a").run(async (granted) => {
      lock = granted;
      await end.released;
      return "done";
    });
    const outcome = errorOf(running);
    await turn();
    const closing = errorOf(host.session.close(2_000));
    await time.advance(1_999);
    expect([lock?.held, lock?.signal.aborted]).toEqual([true, false]);
    await time.advance(1);
    expect([lock?.held, lock?.remainingMs, lock?.signal.aborted]).toEqual([false, 0, true]);
    expect(lock?.signal.reason).toMatchObject(REVOKED);
    await time.advance(1_000);
    expect(host.sent.filter(isRelease)).toEqual([]);
    expect(await other.mutex("a").tryLock()).toBeNull();
    end.release();
    const lost = await outcome;
    expect(lost).toBeInstanceOf(LockLostError);
    expect(lost).toBe(lock?.signal.reason);
    expect(host.row("a")).toBeUndefined();
    const failed = (await closing) as AggregateError;
    expect(failed).toBeInstanceOf(AggregateError);
    expect(failed.errors).toEqual([lost]);
    expect(failed.message).toMatch(/^Lock "a" was revoked: .* Unlock every lock, .* longer drainMs$/);
    expect(time.elapsed).toBe(3_000);
    expect([time.timers, host.closed]).toEqual([0, 1]);
  });

  test("trap 30: an error of the section is what run() rejects with, and its row is deleted all the same", async () => {
    const { time, host } = setUp();
    const failure = new Error("stopped");
    const running = errorOf(
      host.mutex("a").run(async ({ signal }) => {
        await new Promise((_, reject) => signal.addEventListener("abort", () => reject(failure)));
      }),
    );
    await turn();
    const closing = errorOf(host.session.close(0));
    expect(await running).toBe(failure);
    expect(await closing).toMatchObject({ errors: [REVOKED] });
    expect([time.elapsed, host.row("a")]).toEqual([0, undefined]);
  });

  test("trap 30: a section that does not end keeps its row until its lease is over, and the close does not wait", async () => {
    const { time, host, other } = setUp();
    const lock = await host.mutex("a", { ttlMs: 30_000 }).lock();
    const closing = errorOf(host.session.close(1_000));
    const entering = watch(other.mutex("a").lock());
    await time.advance(6_000);
    expect(await closing).toMatchObject({ errors: [REVOKED] });
    // Its last renewal was its take: 30 s after that, others may enter.
    await time.advance(23_900);
    expect([entering.settled, host.row("a")?.uuid]).toEqual([false, lock.uuid]);
    await time.advance(1_000);
    expect([entering.settled, host.row("a")?.owner]).toEqual([true, "other"]);
    await expect(lock.unlock()).rejects.toMatchObject(REVOKED);
    expect(host.row("a")?.owner).toBe("other");
  });

  test("trap 30: a section that ends after the close still deletes its row, and only then the client closes", async () => {
    const { time, host } = setUp();
    const lock = await host.mutex("a").lock();
    const closing = errorOf(host.session.close(0));
    await time.advance(5_000);
    await closing;
    expect(host.closed).toBe(0);
    await time.advance(1_000);
    const failure = errorOf(lock.unlock());
    expect(await failure).toBe(lock.signal.reason);
    expect([host.row("a"), host.closed]).toEqual([undefined, 1]);
  });

  test("trap 30: a set is revoked as a whole, and its rows go when it is given back", async () => {
    const { time, host } = setUp();
    const set = await host.lockAll(["a", "b"]);
    const closing = errorOf(host.session.close(1_000));
    await time.advance(1_000);
    expect([set.held, set.signal.aborted]).toEqual([false, true]);
    expect(set.signal.reason).toMatchObject(REVOKED);
    expect([host.row("a"), host.row("b")]).toEqual([expect.anything(), expect.anything()]);
    await expect(set.unlock()).rejects.toBe(set.signal.reason);
    expect([host.row("a"), host.row("b")]).toEqual([undefined, undefined]);
    expect(await closing).toMatchObject({ errors: [REVOKED, REVOKED] });
    expect(time.elapsed).toBe(1_000);
  });
});

describe("one bound for the whole", () => {
  test.each(["unlock at once", "unlock when they are revoked", "never end"])(
    "trap 34: 500 locks on a table that hangs, whose sections %s",
    async (ending) => {
      const { time, host } = setUp();
      const names = Array.from({ length: 500 }, (_, index) => `lock-${index}`);
      const locks = await Promise.all(names.map((name) => host.mutex(name, { releaseWithinMs: 4_000 }).lock()));
      host.fate = () => "lost";
      // Renewals hang as well, or stand in line for slots.
      await time.advance(16_000);
      const unlock = (lock: Lock): void => void lock.unlock().catch(() => undefined);
      const closing = errorOf(host.session.close(1_000));
      const closed = watch(closing);
      for (const lock of locks) {
        if (ending === "unlock at once") unlock(lock);
        if (ending === "unlock when they are revoked") lock.signal.addEventListener("abort", () => unlock(lock));
      }
      await time.passUntil(() => closed.settled);
      expect(time.elapsed).toBeLessThanOrEqual(16_000 + 1_000 + 4_000);
      const failed = (await closing) as AggregateError | undefined;
      expect(failed?.errors.length).toBe(ending === "unlock at once" ? undefined : 500);
      await time.passUntil(() => time.timers === 0);
    },
  );

  test("trap 34: a reissue, a place, a set and a claim that hang are no exception", async () => {
    const { time, host, other } = setUp();
    const options = { releaseWithinMs: 1_000 };
    const fenced = host.mutex("fenced", { ...options, fencing: true });
    const first = await fenced.lock();
    const set = await host.lockAll(["x", "y"], options);
    await other.mutex("fair", { fair: true }).lock();
    const waits = [fenced.lock(), host.mutex("fair", { ...options, fair: true }).lock()].map(errorOf);
    await time.advance(500);
    host.fate = () => "lost";
    waits.push(errorOf(host.mutex("new", options).lock()), errorOf(host.lockAll(["p", "q"], options)));
    const unlocking = [first.unlock(), errorOf(set.unlock())];
    await turn();
    const startedAt = time.elapsed;
    const closing = watch(host.session.close(0));
    for (const error of await Promise.all(waits)) expect(error).toMatchObject(CLOSED);
    await time.passUntil(() => closing.settled);
    expect(time.elapsed - startedAt).toBeLessThanOrEqual(1_000);
    // What is still in flight ends by itself, and then the client closes.
    await time.passUntil(() => host.closed === 1);
    await Promise.all(unlocking);
    expect(time.elapsed - startedAt).toBeLessThanOrEqual(4_000);
  });

  test("is as long as the largest releaseWithinMs of its locks says", async () => {
    const { time, host } = setUp();
    await (await host.mutex("patient", { releaseWithinMs: 7_000 }).lock()).unlock();
    await host.mutex("hasty", { releaseWithinMs: 1_000 }).lock();
    const closing = watch(errorOf(host.session.close(1_000)));
    await time.advance(7_999);
    expect(closing.settled).toBe(false);
    await time.advance(1);
    expect(closing.settled).toBe(true);
  });
});

describe("a lock that is being taken", () => {
  test("trap 34: a claim on the wire is given back when it is answered", async () => {
    const { time, host } = setUp();
    const reply = createGate();
    host.fate = (message) => (isTake(message) ? reply.released : "answered");
    const locking = errorOf(host.mutex("a", { ttlMs: 30_000 }).lock());
    await turn();
    const closing = host.session.close();
    expect(await locking).toMatchObject(CLOSED);
    await time.advance(2_000);
    reply.release();
    await closing;
    expect([host.row("a"), time.elapsed, time.timers]).toEqual([undefined, 2_000, 0]);
  });

  test("trap 34: a claim whose reply is lost is looked for, and its release tried, for as long as there is time", async () => {
    const { time, host } = setUp();
    host.fate = (message) => (isTake(message) ? "reply lost" : time.elapsed < 10_000 ? "lost" : "answered");
    const locking = errorOf(host.mutex("a", { ttlMs: 60_000 }).lock());
    await turn();
    const closing = host.session.close();
    const closed = watch(closing);
    expect(await locking).toMatchObject(CLOSED);
    await time.passUntil(() => closed.settled);
    await closing;
    // Looks that began before the table answered again had their attempts, of 3 s at most, to fail in.
    expect(time.elapsed).toBeLessThanOrEqual(14_500);
    expect(host.row("a")).toBeUndefined();
  });

  test("a claim that never arrives is not looked for after the close", async () => {
    const { time, host } = setUp();
    host.fate = (message) => (isTake(message) ? "lost" : "answered");
    const locking = errorOf(host.mutex("a", { ttlMs: 60_000, waitMs: 1_000, releaseWithinMs: 2_000 }).lock());
    await time.advance(3_500);
    await locking;
    const closing = watch(host.session.close(1_000));
    await time.passUntil(() => closing.settled);
    expect(time.elapsed).toBeLessThanOrEqual(6_500);
    expect([time.timers, host.closed]).toEqual([0, 1]);
  });
});

describe("close() more than once", () => {
  test("is one close, which a further call joins and, with less time, shortens", async () => {
    const { time, host } = setUp();
    const lock = await host.mutex("a").lock();
    const first = watch(errorOf(host.session.close(60_000)));
    await time.advance(1_000);
    // Without a time of its own it only joins.
    const second = watch(errorOf(host.session.close()));
    await time.advance(20_000);
    expect(lock.held).toBe(true);
    const third = watch(errorOf(host.session.close(5_000)));
    const fourth = watch(errorOf(host.session.close(50_000)));
    await time.advance(4_999);
    expect(lock.held).toBe(true);
    await time.advance(1);
    expect(lock.signal.reason).toMatchObject(REVOKED);
    await errorOf(lock.unlock());
    await turn();
    expect([first, second, third, fourth].map(({ settled }) => settled)).toEqual([true, true, true, true]);
    expect([time.elapsed, host.closed]).toEqual([26_000, 1]);
    await expect(host.session.close()).rejects.toMatchObject({ errors: [REVOKED] });
  });
});

describe("an unlock() that was forgotten", () => {
  const scene = useScene();
  const warnings = useWarnings();

  /** A table whose process runs by itself, as far as the library can tell, with a lock that nobody ends. */
  async function forgotten() {
    const time = new ManualTime();
    const locks = scene.host({ clock: { ...time.clock(), stay: () => () => undefined } });
    await locks.mutex(scene.name).lock();
    return { time, locks };
  }

  test("is told after 5 s of a close that was given no time, with the lock's name and what to do", async () => {
    const { time, locks } = await forgotten();
    const closed = errorOf(locks.close());
    await time.advance(4_999);
    expect(warnings).toEqual([]);
    await time.advance(1);
    expect(warnings).toEqual([
      `close() has waited for 5 s for lock ${JSON.stringify(scene.name)} to be unlocked, and revokes what is left after 10 s. ` +
        "Unlock every lock, by `await using lock = …`, `await lock.unlock()` or `mutex.run()`, before its section awaits close(); " +
        "end sections when lock.signal aborts, or set a longer drainMs",
    ]);
    await time.advance(60_000);
    expect(await closed).toMatchObject({ errors: [REVOKED] });
    expect(warnings).toHaveLength(1);
  });

  test.each([
    ["at once", { drainMs: 9_000 }],
    ["by a later call", undefined],
  ])("is not told of a close that was given a time %s", async (_when, first) => {
    const { time, locks } = await forgotten();
    const closed = errorOf(locks.close(first));
    await time.advance(1_000);
    locks.close({ drainMs: 8_000 }).catch(() => undefined);
    await time.advance(60_000);
    expect(await closed).toMatchObject({ errors: [REVOKED] });
    expect(warnings).toEqual([]);
  });

  test("a call after the close, and one that waits during it, are told to come before it, with the name of their lock", async () => {
    const locks = scene.host({});
    const told = {
      code: "LOCK_CLOSED",
      message:
        "This LockTable is closed: await calls before you close it, or make a new one. " +
        `Lock ${JSON.stringify(scene.name)} was not taken`,
    };
    const mutex = locks.mutex(scene.name);
    const lock = await mutex.lock();
    const waiting = expect(mutex.lock()).rejects.toMatchObject(told);
    const closed = locks.close();
    await waiting;
    await lock.unlock();
    await closed;
    await expect(mutex.lock()).rejects.toMatchObject(told);
    await expect(mutex.tryLock()).rejects.toMatchObject(told);
  });

  test("ends create() and check(), which a silent endpoint would keep for 10 s", async () => {
    const table = new TestTable({ time: "manual", startAt: new Date(1_000) });
    const host = table.host();
    table.silence(host);
    const closed = { code: "LOCK_CLOSED" };
    const ended = [host.create(), host.check()].map((request) => expect(request).rejects.toMatchObject(closed));
    await turn();
    await host.close();
    await Promise.all(ended);
    expect(table.clock.now).toEqual(new Date(1_000));
  });
});

test.each([undefined, true])(
  "a tick granted to a process that closes is not shown as run (untilSuccess: %s)",
  async (untilSuccess) => {
    const { time, host, other } = setUp();
    const [granted, ran] = [createGate(), jest.fn()];
    host.hold = (message) => (isTake(message) ? granted.released : undefined);
    const run = host.mutex("job").tryRun(ran, { once: 7, untilSuccess });
    await time.advance(1);
    expect(host.row("job")).toMatchObject({ tick: 7, ran: { tick: 7, owner: "host" } });
    const closing = host.session.close();
    granted.release();
    await expect(run).rejects.toMatchObject(CLOSED);
    await closing;
    const state = await other.mutex("job").inspect();
    expect(state).toMatchObject({ tick: 7, uuid: undefined });
    expect(state).not.toHaveProperty("lastRun");
    expect(ran).not.toHaveBeenCalled();
  },
);
