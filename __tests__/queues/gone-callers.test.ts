import { describe, expect, test } from "@jest/globals";
import { LockStoreError } from "../../lib/errors.js";
import type { Lockable, LockError } from "../../lib/index.js";
import { hosts, inWords, isTake, type MemoryHost } from "../support/memory-host.js";

const NAME = "m";

type Kind = readonly [
  string,
  permits: number,
  of: (host: MemoryHost) => Lockable,
  held?: (host: MemoryHost) => Lockable,
];

const KINDS: readonly Kind[] = [
  ["a mutex", 1, (host) => host.mutex(NAME)],
  ["a fair mutex", 1, (host) => host.mutex(NAME, { fair: true })],
  ["a semaphore", 10, (host) => host.semaphore(NAME, { permits: 10 })],
  ["a fair semaphore", 2, (host) => host.semaphore(NAME, { permits: 2, fair: true })],
  [
    "the shared side of a shared mutex",
    1,
    (host) => host.sharedMutex(NAME).shared,
    (host) => host.sharedMutex(NAME).exclusive,
  ],
];

const codeOf = (call: Promise<unknown>): Promise<string> =>
  call.then(
    () => "granted",
    (error: LockError) => error.code,
  );

describe.each(KINDS)("callers of one process that leave %s together", (_kind, permits, of, held = of) => {
  test("end with the tries that were under way, and begin none for one another", async () => {
    const { time, one, other } = hosts();
    for (let count = 0; count < permits; count += 1) await held(one).lock();
    // Each try takes two requests at most.
    const [ANSWER_MS, WAIT_MS] = [600, 1_000];
    other.fate = () => time.clock().sleep(ANSWER_MS);
    const ends: number[] = [];
    const calls = Array.from({ length: 20 }, async () => {
      expect(await codeOf(of(other).lock({ waitMs: WAIT_MS }))).toBe("LOCK_TIMEOUT");
      ends.push(time.elapsed);
    });
    await time.settle(Promise.all(calls));
    expect(Math.max(...ends)).toBeLessThanOrEqual(5 * ANSWER_MS);
  });

  test("are answered after one timeout of a silent table", async () => {
    const { time, other } = hosts();
    await (await of(other).lock()).unlock();
    other.fate = () => "reply lost";
    const calls = Array.from({ length: 10 }, () => codeOf(of(other).lock({ waitMs: 1_000 })));
    const ended = Promise.all(calls);
    await time.settle(ended);
    expect(new Set(await ended)).toEqual(new Set(["LOCK_STORE"]));
    expect(time.elapsed).toBeLessThanOrEqual(4_000);
  });

  test.each(["abort", "close"] as const)("send nothing but the end of what was under way: %s", async (how) => {
    const { time, other } = hosts();
    other.fate = () => time.clock().sleep(50);
    const controller = new AbortController();
    const calls = Array.from({ length: 30 }, () => codeOf(of(other).lock({ signal: controller.signal })));
    await time.advance(10);
    const underWay = other.told().length;
    if (how === "abort") controller.abort();
    const closed = how === "close" ? other.session.close() : undefined;
    await Promise.all(calls);
    await time.advance(2_000);
    await closed;
    // A claim is given back, which may take a look.
    expect(other.told().length).toBeLessThanOrEqual(2 * underWay);
  });
});

test("a caller that has gone leaves nothing of how often it looked", async () => {
  const { time, one, other } = hosts();
  await one.mutex(NAME).lock();
  const gone = codeOf(other.mutex(NAME, { poll: { minMs: 10, maxMs: 20 } }).lock({ waitMs: 500 }));
  const controller = new AbortController();
  const poll = { minMs: 1_000, maxMs: 5_000 };
  const waits = codeOf(other.mutex(NAME, { poll }).lock({ signal: controller.signal }));
  await time.advance(1_000);
  expect(await gone).toBe("LOCK_TIMEOUT");
  other.told();
  await time.advance(60_000);
  expect(other.told().length).toBeLessThanOrEqual(20);
  controller.abort();
  await waits;
});

test("a permit that one caller gets leaves another one who is in its way", async () => {
  const { time, one, other } = hosts();
  await one.semaphore(NAME, { permits: 2 }).lock();
  const semaphore = other.semaphore(NAME, { permits: 2, poll: { minMs: 1_000, maxMs: 5_000 } });
  other.hold = (message) => (inWords(message) === "take semaphore#0000" ? time.clock().sleep(300) : undefined);
  const refused = time.outcome(semaphore.lock({ waitMs: 600, data: { its: "own" } }));
  const granted = semaphore.lock();
  await time.settle(granted);
  await (await granted).unlock();
  expect(await refused).toMatchObject({ code: "LOCK_TIMEOUT" });
});

test("a try that shares a claim asks for itself when that claim's caller has gone", async () => {
  const { time, other } = hosts();
  const mutex = other.mutex(NAME);
  await (await mutex.lock()).unlock();
  other.hold = (message) => (isTake(message) ? time.clock().sleep(500) : undefined);
  const controller = new AbortController();
  const gone = mutex.lock({ signal: controller.signal }).catch(() => undefined);
  await time.advance(50);
  const tries = mutex.lock({ waitMs: 0 });
  await time.advance(50);
  controller.abort();
  await gone;
  await time.settle(tries);
  await (await tries).unlock();
});

test.each([0, 1, 2, 3, 4, 5])(
  "a try whose call has ended while it shared others' claims does not hold up a close: %i turns between their failures",
  async (turns) => {
    const { time, other } = hosts();
    const semaphore = other.semaphore(NAME, { permits: 2 });
    const rejects: ((reason: unknown) => void)[] = [];
    other.fate = () => {
      const failure = new Promise<never>((_, reject) => rejects.push(reject));
      failure.catch(() => undefined);
      return failure;
    };
    const calls = [codeOf(semaphore.lock()), codeOf(semaphore.lock()), codeOf(semaphore.lock({ waitMs: 0 }))];
    await time.advance(20);
    const refused = new LockStoreError("refused", { transient: false });
    rejects[0]?.(refused);
    for (let turn = 0; turn < turns; turn += 1) await Promise.resolve();
    other.fate = () => Promise.reject(refused);
    for (const reject of rejects.slice(1)) reject(refused);
    expect(await Promise.all(calls)).toEqual(["LOCK_STORE", "LOCK_STORE", "LOCK_STORE"]);
    await time.advance(20_000);
    const from = time.elapsed;
    await time.settle(other.session.close());
    expect(time.elapsed - from).toBe(0);
  },
);
