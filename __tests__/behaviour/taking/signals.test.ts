import { describe, expect, test } from "@jest/globals";
import type { Lock, Lockable } from "../../../lib/index.js";
import { turn } from "../../support/eventually.js";
import { createGate } from "../../support/fault-proxy/gate.js";
import { hosts, type MemoryHost } from "../../support/memory-host.js";

const NAME = "job";
const REASON = new Error("the caller has changed its mind");
const ABORTED = AbortSignal.abort(REASON);

/** What a call comes to, or what it rejects with. */
const settled = (call: Promise<unknown>): Promise<unknown> => call.catch((reason: unknown) => reason);

const LOCKABLES: readonly (readonly [kind: string, of: (host: MemoryHost) => Lockable])[] = [
  ["a mutex", (host) => host.mutex(NAME)],
  ["a fair mutex", (host) => host.mutex(NAME, { fair: true })],
  ["a semaphore", (host) => host.semaphore(NAME, { permits: 2 })],
  ["a fair semaphore", (host) => host.semaphore(NAME, { permits: 2, fair: true })],
  ["the shared side of a shared mutex", (host) => host.sharedMutex(NAME).shared],
  ["the exclusive side of a shared mutex", (host) => host.sharedMutex(NAME).exclusive],
];

const OWNERS = [
  ["a mutex", (host: MemoryHost) => host.mutex(NAME, { fair: true })],
  ["a semaphore", (host: MemoryHost) => host.semaphore(NAME, { permits: 2, fair: true })],
  ["a shared mutex", (host: MemoryHost) => host.sharedMutex(NAME, { fair: true })],
] as const;

const holders = ({ table }: MemoryHost): readonly string[] =>
  table.rows.filter(({ uuid }) => uuid !== undefined).map(({ sort }) => sort);

/** Requests are on their way until the test lets them arrive. */
function heldUp(host: MemoryHost) {
  const arrival = createGate();
  host.fate = () => arrival.released;
  return { arrive: arrival.release, controller: new AbortController() };
}

describe.each(LOCKABLES)("a try of %s", (_, of) => {
  const tries = [
    (lockable: Lockable, signal: AbortSignal) => lockable.tryLock({ signal }),
    (lockable: Lockable, signal: AbortSignal) => lockable.tryRun(() => "never", { signal }),
  ];

  test("whose signal has aborted before rejects with the reason, and sends nothing", async () => {
    const { one } = hosts();
    for (const attempt of tries) await expect(attempt(of(one), ABORTED)).rejects.toBe(REASON);
    expect(one.sent).toEqual([]);
  });

  test("rejects with the reason as soon as its signal aborts, and what it still takes is given back", async () => {
    for (const attempt of tries) {
      const { time, one } = hosts();
      const { arrive, controller } = heldUp(one);
      const trying = settled(attempt(of(one), controller.signal));
      await turn();
      expect(one.sent).not.toEqual([]);
      controller.abort(REASON);
      expect([await trying, time.elapsed]).toEqual([REASON, 0]);
      arrive();
      one.fate = () => "answered";
      await turn();
      await time.advanceUntil(() => holders(one).length === 0);
      await time.advance(60_000);
      expect([holders(one), time.timers]).toEqual([[], 0]);
    }
  });

  test("aborts the lock's signal as well where it runs a function, which is no loss", async () => {
    const { one } = hosts();
    const controller = new AbortController();
    const running = of(one).tryRun(
      async ({ signal }) => {
        controller.abort(REASON);
        return signal.reason;
      },
      { signal: controller.signal },
    );
    expect(await running).toEqual({ ran: true, value: REASON });
    expect(holders(one)).toEqual([]);
  });
});

test("a try that waits for a slot is not sent any more once its signal has aborted", async () => {
  const { time, one } = hosts();
  const { arrive, controller } = heldUp(one);
  for (let other = 0; other < 60; other += 1)
    one
      .mutex(`other-${other}`)
      .tryLock()
      .catch(() => undefined);
  await turn();
  const trying = settled(one.mutex(NAME).tryLock({ signal: controller.signal }));
  controller.abort(REASON);
  expect(await trying).toBe(REASON);
  arrive();
  await time.advance(60_000);
  expect(one.sent.filter((message) => "write" in message && message.write.at.name === NAME)).toEqual([]);
});

test.each([
  [{ once: 7 }, { ran: false, reason: "done" }],
  [
    { once: 7, untilSuccess: true },
    { ran: true, value: 1 },
  ],
])("a try for a tick that was aborted as the tick was granted: %p", async (tick, next) => {
  const { one, other } = hosts();
  const { arrive, controller } = heldUp(one);
  const trying = settled(one.mutex(NAME).tryRun(() => "never", { ...tick, signal: controller.signal }));
  await turn();
  controller.abort(REASON);
  expect(await trying).toBe(REASON);
  arrive();
  one.fate = () => "answered";
  await turn();
  expect(await other.mutex(NAME).tryRun(({ attempt = 1 }) => attempt, tick)).toMatchObject(next);
});

describe.each(OWNERS)("inspect() and forceUnlock() of %s", (_, of) => {
  const calls = (host: MemoryHost, signal: AbortSignal, uuid = "theirs") => [
    () => of(host).inspect({ signal }),
    () => of(host).forceUnlock(uuid, { signal }),
  ];

  test("reject with the reason of a signal that has aborted before, and send nothing", async () => {
    const { one } = hosts();
    for (const call of calls(one, ABORTED)) await expect(call()).rejects.toBe(REASON);
    expect(one.sent).toEqual([]);
  });

  test("reject with the reason as soon as the signal aborts, whichever request is on its way, and send no other", async () => {
    for (const which of [0, 1])
      for (let answered = 0; ; answered += 1) {
        const { time, one } = hosts();
        const arrival = createGate();
        one.fate = () => (one.sent.length > answered ? arrival.released : "answered");
        const controller = new AbortController();
        const call = settled(calls(one, controller.signal)[which]?.() ?? Promise.resolve());
        await turn();
        // All of its requests have been cut off once.
        if (one.sent.length <= answered) break;
        controller.abort(REASON);
        expect([await call, time.elapsed]).toEqual([REASON, 0]);
        arrival.release();
        await time.advance(60_000);
        expect([one.sent.length, time.timers]).toEqual([answered + 1, 0]);
      }
  });
});

describe.each([
  ...LOCKABLES.map(([kind, of]) => [kind, (host: MemoryHost) => of(host).lock()] as const),
  ["a set", (host: MemoryHost) => host.lockAll(["a", "b"])] as const,
])("extend() of the lock of %s", (_, lockIn) => {
  const ends = (lock: Lock | Awaited<ReturnType<MemoryHost["lockAll"]>>): readonly number[] =>
    "locks" in lock ? [...lock.locks.values()].map(({ expires }) => expires.getTime()) : [lock.expires.getTime()];

  test("rejects with the reason as soon as its signal aborts: the lock is held as before, and then for longer", async () => {
    const { time, one } = hosts();
    const lock = await lockIn(one);
    const before = ends(lock);
    await time.advance(1_000);
    const sent = one.sent.length;
    await expect(lock.extend({ signal: ABORTED })).rejects.toBe(REASON);
    expect(one.sent).toHaveLength(sent);
    const { arrive, controller } = heldUp(one);
    const extending = settled(lock.extend({ signal: controller.signal }));
    const joined = lock.extend();
    await turn();
    controller.abort(REASON);
    expect(await extending).toBe(REASON);
    expect([lock.held, lock.signal.aborted, ends(lock)]).toEqual([true, false, before]);
    arrive();
    one.fate = () => "answered";
    await joined;
    expect([lock.held, ends(lock)]).toEqual([true, before.map((end) => end + 1_000)]);
    await lock.unlock();
    await turn();
    expect([holders(one), time.timers]).toEqual([[], 0]);
  });
});

test("an extend() whose lock is lost as its signal aborts rejects with the loss", async () => {
  const { time, one } = hosts();
  const lock = await one.mutex(NAME, { ttlMs: 1_000 }).lock();
  one.fate = () => "lost";
  const extending = settled(lock.extend({ signal: lock.signal }));
  await time.advance(2_000);
  expect(await extending).toBe(lock.signal.reason);
  expect(await time.outcome(lock.unlock())).toBe(lock.signal.reason);
});
