import { getEventListeners } from "node:events";
import { describe, expect, test } from "@jest/globals";
import { type LockOptions, LockStoreError, LockTimeoutError, type Mutex, systemClock } from "../../../lib/index.js";
import { hear } from "../../support/diagnostics.js";
import { eventually, turn, watch } from "../../support/eventually.js";
import { createGate, error, resetBefore, status500, throttle } from "../../support/fault-proxy.js";
import { ManualTime } from "../../support/manual-time.js";
import { hosts, isTake } from "../../support/memory-host.js";
import { type Attributes, type HostOptions, rowOf, useScene } from "../../support/scene.js";
import { sleptThrough, timedOut } from "../../support/settled.js";

const scene = useScene();

const FOREVER = { times: Number.POSITIVE_INFINITY };

/** Somebody else's row on this time, which lasts for `ms` from now. */
function heldFor(time: ManualTime, ms: number, attributes: Attributes = {}): Attributes {
  return rowOf({ expires: time.now + ms, acquired: time.now, ttlMs: ms, ...attributes });
}

/** A lock that somebody else holds for `ms` from now, and this process's mutex of it. */
async function held(ms: number, options: HostOptions = {}) {
  const time = new ManualTime();
  const row = heldFor(time, ms);
  await scene.put(row);
  return { time, row, mutex: scene.host({ clock: time.clock(), ...options }).mutex(scene.name) };
}

/** A wait that has found the lock held and now sleeps for the first time. */
async function startWaiting(mutex: Mutex, time: ManualTime, options: Parameters<Mutex["lock"]>[0] = {}) {
  const sleeping = time.nextSleep();
  const locking = mutex.lock(options);
  locking.catch(() => undefined);
  await sleeping;
  return { locking };
}

/** One look more: the answer to it has come when the next sleep begins. */
async function pollOnce(time: ManualTime): Promise<number> {
  const next = time.nextSleep();
  await time.advance(time.sleeps.at(-1) as number);
  return await next;
}

describe("what waiting costs", () => {
  test("a waiter reads, eventually consistent, and writes nothing while the row looks held but one mark", async () => {
    const { time, row, mutex } = await held(60_000);
    const { locking } = await startWaiting(mutex, time);
    for (let count = 0; count < 20; count += 1) await pollOnce(time);
    expect(scene.proxy.counts()).toEqual({ PutItem: 1, GetItem: 20, UpdateItem: 1 });
    expect(scene.proxy.select("GetItem").every(({ body }) => body.ConsistentRead !== true)).toBe(true);
    expect(scene.proxy.units()).toEqual({ write: 2, read: 10 });
    // The mark is a hint for the holder's process, and touches nothing of the lease.
    expect(await scene.row()).toEqual({ name: scene.name, sort: "lock", ...row, wanted: expect.any(Number) });

    await scene.remove();
    await time.advance(time.sleeps.at(-1) as number);
    const lock = await locking;
    expect(scene.proxy.counts()).toEqual({ PutItem: 2, GetItem: 21, UpdateItem: 1 });
    await lock.unlock();
  });

  test("a mark that was refused, or is over, is written again, so that the holder's process never keeps a lock for good", async () => {
    const { time, mutex } = await held(3_600_000, { poll: { minMs: 500, maxMs: 500 }, handOverMs: 100 });
    const refusal = scene.proxy.on("UpdateItem", throttle());
    const controller = new AbortController();
    const { locking } = await startWaiting(mutex, time, { signal: controller.signal });
    await pollOnce(time);
    await refusal.done;
    const wantedUntil = async () => Number((await scene.row())?.wanted ?? 0) - time.now;
    expect(await wantedUntil()).toBeLessThan(0);
    while (time.elapsed < 10_000) await pollOnce(time);
    expect(await wantedUntil()).toBeGreaterThan(0);
    while (time.elapsed < 70_000) await pollOnce(time);
    expect(await wantedUntil()).toBeGreaterThan(0);
    // One that was refused, and one a minute.
    expect(scene.proxy.count("UpdateItem")).toBe(1 + 2);
    controller.abort();
    await expect(locking).rejects.toThrow();
  });

  test("it looks ever more rarely, and quickly again when the holder has changed", async () => {
    const { time, mutex } = await held(60_000);
    await startWaiting(mutex, time);
    for (let count = 0; count < 8; count += 1) await pollOnce(time);
    const [first = 0] = time.sleeps;
    const last = time.sleeps.at(-1) as number;
    expect(first).toBeGreaterThanOrEqual(37.5);
    expect(first).toBeLessThanOrEqual(63);
    expect(last).toBeGreaterThanOrEqual(300);
    expect(last).toBeLessThanOrEqual(500);
    await scene.put(heldFor(time, 60_000, { uuid: "the next" }));
    expect(await pollOnce(time)).toBeLessThanOrEqual(63);
  });

  test.each([
    ["expired", { takeover: "expired" } as const, 8_000 + 1_000 + 1],
    ["unchanged", { takeover: "unchanged" } as const, 10_000],
  ])("a sleep never lasts beyond the moment at which a takeover becomes possible (%s)", async (_, options, moment) => {
    const time = new ManualTime();
    await scene.put(heldFor(time, 8_000, { ttlMs: 10_000 }));
    const clock = time.clock({ maxSkewMs: 1_000 });
    const mutex = scene.host({ clock }).mutex(scene.name, { poll: { minMs: 3_000, maxMs: 3_000 }, ...options });
    const locking = mutex.lock();
    await sleptThrough(time, locking);
    expect(time.elapsed).toBe(moment);
    const lock = await locking;
    expect(await scene.row()).toMatchObject({ uuid: lock.uuid });
    await lock.unlock();
  });
});

test("many calls with one signal have one listener on it, which goes with the last of them", async () => {
  const controller = new AbortController();
  const { signal } = controller;
  const listeners = (): number => getEventListeners(signal, "abort").length;
  const mutex = scene.host().mutex(scene.name);
  const first = await mutex.lock({ signal });
  expect(listeners()).toBe(0);
  const waiting = Array.from({ length: 20 }, () => mutex.run((lock) => lock.held, { signal }));
  await turn();
  expect(listeners()).toBe(1);
  await first.unlock();
  expect(await Promise.all(waiting)).toEqual(Array(20).fill(true));
  expect(listeners()).toBe(0);
  await using _again = await mutex.lock({ signal });
  const others = [mutex.lock({ signal }), mutex.lock({ signal }), mutex.inspect()];
  controller.abort(new Error("the end"));
  for (const outcome of (await Promise.allSettled(others)).slice(0, 2)) {
    expect(outcome).toMatchObject({ status: "rejected", reason: { message: "the end" } });
  }
  expect(listeners()).toBe(0);
});

describe("waitMs", () => {
  test("ends the wait on time, the error names the holder and how long it was, and nothing more is sent", async () => {
    const time = new ManualTime();
    const row = heldFor(time, 60_000, { owner: "host-9#7", data: { job: "migration" } });
    await scene.put(row);
    const mutex = scene.host({ clock: time.clock() }).mutex(scene.name);
    const { locking } = await startWaiting(mutex, time, { waitMs: 5_000 });
    while (time.elapsed + (time.sleeps.at(-1) as number) < 5_000) await pollOnce(time);
    await time.advance(5_000 - time.elapsed);
    await expect(locking).rejects.toBeInstanceOf(LockTimeoutError);
    await expect(locking).rejects.toMatchObject({
      code: "LOCK_TIMEOUT",
      lockName: scene.name,
      waitedMs: 5_000,
      holder: {
        name: scene.name,
        uuid: "somebody-else",
        owner: "host-9#7",
        ttlMs: 60_000,
        expires: new Date(row.expires as number),
        acquired: new Date(row.acquired as number),
        data: { job: "migration" },
      },
      message: expect.stringContaining("host-9#7"),
    });
    expect(time.timers).toBe(0);
    const count = scene.proxy.count();
    await time.advance(120_000);
    expect(scene.proxy.count()).toBe(count);
    expect(await scene.row()).toMatchObject(row);
  });

  test("a mutex's own waitMs holds unless the call has another", async () => {
    const time = new ManualTime();
    await scene.put(heldFor(time, 60_000));
    const mutex = () => scene.host({ clock: time.clock() }).mutex(scene.name, { waitMs: 10 });
    const short = watch((await startWaiting(mutex(), time)).locking);
    const long = watch((await startWaiting(mutex(), time, { waitMs: 20 })).locking);
    await time.advance(10);
    expect([short.settled, long.settled]).toEqual([true, false]);
    await time.advance(10);
    expect(long.settled).toBe(true);
  });
});

describe("trap 17: an aborted wait leaves nothing behind", () => {
  const reason = new Error("the caller has changed its mind");

  test("aborted before: the reason at once, and nothing is sent", async () => {
    const mutex = scene.host().mutex(scene.name);
    await expect(mutex.lock({ signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
    await expect(mutex.lock({ signal: AbortSignal.abort(reason), waitMs: 0 })).rejects.toBe(reason);
    await expect(mutex.run(() => "no", { signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
    expect(scene.proxy.requests).toEqual([]);
  });

  test("aborted while it waits: the reason at once, no timer left, nothing more is sent", async () => {
    const { time, row, mutex } = await held(60_000, { handOverMs: 1 });
    const controller = new AbortController();
    const { locking } = await startWaiting(mutex, time, { signal: controller.signal });
    await pollOnce(time);
    controller.abort(reason);
    await expect(locking).rejects.toBe(reason);
    await turn();
    expect(time.timers).toBe(0);
    expect(scene.proxy.counts()).toEqual({ PutItem: 1, GetItem: 1, UpdateItem: 1 });
    expect(await scene.row()).toMatchObject(row);
  });

  test("aborted while a read is under way: the reason at once", async () => {
    const { time, mutex } = await held(60_000);
    const hold = scene.proxy.hold("GetItem");
    const controller = new AbortController();
    const { locking } = await startWaiting(mutex, time, { signal: controller.signal });
    await time.advance(time.sleeps.at(-1) as number);
    await hold.arrived;
    controller.abort(reason);
    await expect(locking).rejects.toBe(reason);
    await scene.remove();
    hold.release();
    await eventually(() => time.timers === 0);
    expect(scene.proxy.counts()).toEqual({ PutItem: 1, GetItem: 1 });
    expect(await scene.row()).toBeUndefined();
  });

  test("aborted around the moment of acquisition: either the caller has the lock, or nobody has", async () => {
    const seen = { held: 0, aborted: 0 };
    for (let later = 0; later < 40; later += 1) {
      const { one: host } = hosts();
      const reply = createGate();
      host.hold = (message) => (isTake(message) ? reply.released : undefined);
      const controller = new AbortController();
      const locking = host.mutex("a").lock({ signal: controller.signal });
      const refusal = locking.then(
        () => undefined,
        (why: unknown) => why,
      );
      await turn();
      reply.release();
      afterMicrotasks(later, () => controller.abort(reason));
      const isRefused = (await refusal) === reason;
      seen[isRefused ? "aborted" : "held"] += 1;
      await turn();
      if (!isRefused) {
        const lock = await locking;
        expect([lock.held, host.row("a")?.uuid]).toEqual([true, lock.uuid]);
        await lock.unlock();
      }
      expect(host.row("a")).toBeUndefined();
    }
    // Otherwise the moment was not among them.
    expect(seen.held).toBeGreaterThan(0);
    expect(seen.aborted).toBeGreaterThan(0);
  });

  /** A call whose take is on its way, until the test lets it arrive. */
  async function callWithTakeUnderWay(options: LockOptions = {}) {
    const { time, one: host } = hosts();
    const arrival = createGate();
    host.fate = (message) => (isTake(message) ? arrival.released : "answered");
    const controller = new AbortController();
    const locking = host.mutex("a").lock({ signal: controller.signal, ...options });
    locking.catch(() => undefined);
    await turn();
    return { time, host, arrival, controller, locking };
  }

  test("aborted while the take is on its way: the caller hears at once, the lock is given back on arrival", async () => {
    const { host, arrival, controller, locking } = await callWithTakeUnderWay({ waitMs: 2_000 });
    controller.abort(reason);
    await expect(locking).rejects.toBe(reason);
    arrival.release();
    await turn();
    expect(host.told()).toEqual(["take lock", "vacate lock"]);
    expect(host.row("a")).toBeUndefined();
  });

  test.each([0, 3_600_000])(
    "a take that arrives only after its client has given up on it is found, and within a second no row is left, though the wall clock is set by %d ms meanwhile",
    async (setByMs) => {
      const { time, host, arrival, controller, locking } = await callWithTakeUnderWay();
      const looks = () => host.sent.filter(({ kind }) => kind === "read").length;
      controller.abort(reason);
      await expect(locking).rejects.toBe(reason);
      await time.advanceUntil(() => looks() >= 2);
      host.session.clock.atMost = () => time.elapsed + setByMs;
      // It has looked in vain a few times.
      await time.advanceUntil(() => looks() >= 4);
      arrival.release();
      await turn();
      expect(host.row("a")).toBeDefined();
      await time.advance(1_000);
      expect([host.row("a"), time.timers]).toEqual([undefined, 0]);
    },
  );
});

describe("a table in trouble", () => {
  test("trap 14: throttling does not abort a wait, neither of its writes nor of its reads", async () => {
    const failures = hear("dynamutex:wait-failed");
    await scene.put(rowOf());
    const puts = scene.proxy.on("PutItem", throttle(), { times: 3 });
    const gets = scene.proxy.on("GetItem", throttle("ProvisionedThroughputExceededException"), { times: 3 });
    // A clock that learns the time from the table would read first, and put only when the row is gone.
    const locking = scene.host({ clock: systemClock() }).mutex(scene.name).lock();
    await puts.done;
    await gets.done;
    await scene.remove();
    const more = scene.proxy.on("PutItem", throttle(), { times: 3 });
    const lock = await locking;
    await more.done;
    expect(lock.held).toBe(true);
    expect(failures.map(({ name }) => name)).toEqual(Array(9).fill(scene.name));
    await lock.unlock();
  });

  test.each([
    ["throttling", throttle],
    ["a 500", status500],
    ["a reset", resetBefore],
  ])("trap 14: %s does not end a tryLock", async (_, fault) => {
    const trouble = scene.proxy.on("PutItem", fault(), { times: 3 });
    const lock = await scene.host().mutex(scene.name).tryLock();
    await trouble.done;
    expect(lock?.held).toBe(true);
    expect(scene.proxy.count("PutItem")).toBe(4);
    await lock?.unlock();
  });

  const CALLS: readonly [string, (mutex: Mutex) => Promise<unknown>][] = [
    ["lock with waitMs Infinity", (mutex) => mutex.lock({ waitMs: Number.POSITIVE_INFINITY })],
    ["tryLock", (mutex) => mutex.tryLock()],
    ["run", (mutex) => mutex.run(() => "no")],
  ];

  test.each(CALLS)("an endpoint that never answers ends %s after 10 s with the store's error", async (_, call) => {
    const time = new ManualTime();
    scene.proxy.partition(undefined, "hang");
    const outcome = call(scene.host({ clock: time.clock() }).mutex(scene.name));
    await timedOut(time, outcome);
    expect(time.elapsed).toBe(10_000);
    await expect(outcome).rejects.toBeInstanceOf(LockStoreError);
    await expect(outcome).rejects.toMatchObject({ code: "LOCK_STORE", transient: true });
  });

  test.each([0, 200])(
    "trap 54: an endpoint that never answers ends a lock with waitMs %d after one timeout",
    async (waitMs) => {
      const time = new ManualTime();
      scene.proxy.partition(undefined, "hang");
      const outcome = scene.host({ clock: time.clock() }).mutex(scene.name).lock({ waitMs });
      await timedOut(time, outcome);
      expect(time.elapsed).toBe(3_000);
      await expect(outcome).rejects.toMatchObject({ code: "LOCK_STORE", transient: true });
      // What looks for its claim reads.
      expect(scene.proxy.count("PutItem")).toBe(1);
    },
  );

  test("a call with waitMs 0 behind one whose claim is not answered ends after the timeout of that", async () => {
    const { time, one } = hosts();
    one.fate = (message) => {
      return message.kind === "write" && message.write.at.name === "silent" ? "lost" : "answered";
    };
    const waiting = watch(one.mutex("silent").lock());
    // The table answers others, so the first call waits for as long as it takes.
    await (await one.mutex("other").lock()).unlock();
    const outcome = one.mutex("silent").lock({ waitMs: 0 });
    const watched = watch(outcome);
    await time.advance(2_999);
    expect(watched.settled).toBe(false);
    await time.advance(1);
    await expect(outcome).rejects.toMatchObject({ code: "LOCK_STORE" });
    expect(waiting.settled).toBe(false);
    await time.settle(one.session.close(0));
  });

  test.each(["hang", "reset"] as const)(
    "an outage (%s) that comes later is waited out, however long it is",
    async (how) => {
      const { time, mutex } = await held(3_600_000);
      const { locking } = await startWaiting(mutex, time);
      scene.proxy.partition(undefined, how);
      const watched = watch(locking);
      if (how === "hang") await time.passUntil(() => watched.settled || time.elapsed > 120_000);
      else await time.sleepUntil(() => watched.settled || time.elapsed > 120_000);
      expect(watched.settled).toBe(false);
      await scene.remove();
      scene.proxy.heal();
      await time.sleepUntil(() => watched.settled);
      const lock = await locking;
      expect(lock.held).toBe(true);
      await lock.unlock();
    },
  );

  test("a first answer of any kind counts: one that throttles for a minute is waited out", async () => {
    const time = new ManualTime();
    const trouble = scene.proxy.on("PutItem", throttle(), FOREVER);
    const locking = scene.host({ clock: time.clock() }).mutex(scene.name).lock();
    const watched = watch(locking);
    await time.sleepUntil(() => watched.settled || time.elapsed > 60_000);
    expect(watched.settled).toBe(false);
    trouble.remove();
    await time.sleepUntil(() => watched.settled);
    await (await locking).unlock();
  });
});

describe("a table that cannot be used", () => {
  test("one that does not exist: the error says how to create it, after one request", async () => {
    const mutex = scene.host({ tableName: "no-such-table" }).mutex(scene.name);
    for (const call of [() => mutex.lock(), () => mutex.tryLock()]) {
      await expect(call()).rejects.toMatchObject({
        code: "LOCK_STORE",
        transient: false,
        message: expect.stringMatching(/no-such-table.*create\(\)/),
        cause: { name: "ResourceNotFoundException" },
      });
    }
    // The first error has told the time.
    expect(scene.proxy.counts()).toEqual({ GetItem: 1, PutItem: 1 });
  });

  test.each(["PutItem", "GetItem"])(
    "no permission for %s: the error names it, with the SDK's as its cause",
    async (operation) => {
      // It is over soon: the put is sent then.
      await scene.put(rowOf({ expires: Date.now() + 500, ttlMs: 500 }));
      scene.proxy.on(operation, error("AccessDeniedException", "User is not authorized"));
      await expect(scene.host().mutex(scene.name).lock()).rejects.toMatchObject({
        code: "LOCK_STORE",
        transient: false,
        message: expect.stringContaining(`dynamodb:${operation}`),
        cause: { name: "AccessDeniedException" },
      });
      expect(scene.proxy.count(operation)).toBe(1);
    },
  );

  test("no credentials: the SDK's error is the cause, and nothing is sent", async () => {
    const failure = Object.assign(new Error("Could not load credentials"), { name: "CredentialsProviderError" });
    const locks = scene.host({ sdk: { credentials: () => Promise.reject(failure) } });
    await expect(locks.mutex(scene.name).lock()).rejects.toMatchObject({ code: "LOCK_STORE", cause: failure });
    expect(scene.proxy.requests).toEqual([]);
  });
});

/** Late by so many turns of the queue of microtasks. */
function afterMicrotasks(count: number, act: () => void): void {
  if (count === 0) act();
  else queueMicrotask(() => afterMicrotasks(count - 1, act));
}
