import { AsyncLocalStorage } from "node:async_hooks";
import { describe, expect, test } from "@jest/globals";
import { LockStoreError } from "../../lib/errors.js";
import type { Lockable } from "../../lib/index.js";
import { hosts, inWords, type MemoryHost } from "../support/memory-host.js";

const NAME = "m";
const storage = new AsyncLocalStorage<string>();

const KINDS: readonly (readonly [string, (host: MemoryHost) => Lockable])[] = [
  ["a mutex", (host) => host.mutex(NAME)],
  ["a fair mutex", (host) => host.mutex(NAME, { fair: true })],
  ["a semaphore", (host) => host.semaphore(NAME, { permits: 1 })],
  ["a shared mutex", (host) => host.sharedMutex(NAME).exclusive],
];

describe.each(KINDS)("callers of one process that wait for %s", (_kind, lockable) => {
  test("when the first one times out while its requests are throttled, all that follows is in the second one's context", async () => {
    const { time, one, other } = hosts();
    const held = await lockable(one).lock();
    const first = storage.run("first", () => lockable(other).lock({ waitMs: 4_000 }));
    const missed = expect(first).rejects.toMatchObject({ code: "LOCK_TIMEOUT" });
    await time.advance(100);
    const second = storage.run("second", () => lockable(other).lock());
    const sent: string[] = [];
    let isThrottled = false;
    other.fate = (message) => {
      sent.push(`${storage.getStore()}: ${inWords(message)}`);
      const error = new LockStoreError("slow down", { transient: true, throttled: true });
      return isThrottled ? Promise.reject(error) : "answered";
    };
    await time.advance(1_900);
    isThrottled = true;
    await time.advance(2_000);
    await missed;
    sent.splice(0);
    await time.advance(4_000);
    isThrottled = false;
    await held.unlock();
    await time.settle(second);
    expect(sent.length).toBeGreaterThan(2);
    // A place serves several callers.
    expect(sent.filter((what) => !/^second: |^undefined: vacate queue/.test(what))).toEqual([]);
    await (await second).unlock();
  });

  test("an error counts the attempts and the time of its own call alone", async () => {
    const { time, other } = hosts();
    other.fate = () => "lost";
    const first = lockable(other).lock({ waitMs: 6_000 });
    const missed = expect(first).rejects.toMatchObject({ code: "LOCK_STORE" });
    await time.advance(5_500);
    const askedAt = time.elapsed;
    const error = (await time.outcome(lockable(other).lock())) as Error;
    await missed;
    const waitedMs = time.elapsed - askedAt;
    expect(error.message).toMatch(/No answer from the table/);
    const said = Number(/within (\d+) ms/.exec(error.message)?.[1]);
    expect(said).toBeLessThanOrEqual(waitedMs);
  });
});

test("callers that time out one by one look at the lock no oftener than one that waits for as long", async () => {
  const looksOf = async (...waits: readonly number[]): Promise<number> => {
    const { time, one, other } = hosts();
    await one.mutex(NAME).lock();
    const missed = waits.map((waitMs) => time.outcome(other.mutex(NAME).lock({ waitMs })));
    await Promise.all(missed);
    return other.told().length;
  };
  const oneByOne = Array.from({ length: 40 }, (_, index) => 100 * (1 + index));
  expect(await looksOf(...oneByOne)).toBeLessThanOrEqual(1.1 * (await looksOf(4_000)));
});

test("a place serves several callers: it is drawn, taken, kept and given up in the context of none", async () => {
  const { time, one, other } = hosts();
  const held = await one.mutex(NAME, { fair: true }).lock();
  const sent: string[] = [];
  other.fate = (message) => {
    if (/queue|draw/.test(inWords(message)) && message.kind !== "query")
      sent.push(`${storage.getStore()}: ${inWords(message)}`);
    return "answered";
  };
  const calls = ["first", "second"].map((caller) =>
    storage.run(caller, () => other.mutex(NAME, { fair: true, ttlMs: 2_000 }).lock()),
  );
  await time.advance(3_000);
  await held.unlock();
  for (const call of calls) {
    await time.settle(call);
    await (await call).unlock();
  }
  expect(sent.map((what) => what.replace(/#\d+/, ""))).toEqual([
    expect.stringMatching(/^undefined: draw /),
    "undefined: take queue",
    ...sent.slice(2, -1).map(() => "undefined: renew queue"),
    "undefined: vacate queue",
  ]);
});

test("callers of one lock that time out on a silent table cost no more than callers of as many locks", async () => {
  const requestsFor = async (nameOf: (index: number) => string) => {
    const { time, other } = hosts();
    await (await other.mutex(NAME).lock()).unlock();
    other.told();
    other.fate = () => "reply lost";
    const calls = Array.from({ length: 10 }, (_, index) => {
      return time.outcome(other.mutex(nameOf(index)).lock({ waitMs: 1_000 * (1 + index) }));
    });
    const missed = await Promise.all(calls);
    for (const error of missed) expect(error).toMatchObject({ code: "LOCK_STORE" });
    other.fate = () => "answered";
    await time.advance(20_000);
    const sent = other.told();
    // Nothing of theirs stays in the way.
    for (let index = 0; index < 10; index += 1) await (await other.mutex(nameOf(index)).lock()).unlock();
    return sent.length;
  };
  const alone = await requestsFor((index) => `${NAME}/${index}`);
  expect(await requestsFor(() => NAME)).toBeLessThanOrEqual(1.1 * alone);
});
