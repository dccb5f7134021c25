import { describe, expect, test } from "@jest/globals";
import { LockStoreError } from "../../../lib/errors.js";
import { lockAt } from "../../../lib/protocol/addresses.js";
import { watch } from "../../support/eventually.js";
import { leakOn } from "../../support/listeners.js";
import { ManualTime } from "../../support/manual-time.js";
import { MemoryHost } from "../../support/memory-host.js";

/** How long an answer takes. */
const ANSWER_MS = 20;
const POLL = { minMs: 50, maxMs: 400 };
/** Twice the longest poll, and a few answers. */
const SOON_MS = 2 * POLL.maxMs + 8 * ANSWER_MS;

function world(count: number) {
  const time = new ManualTime();
  const holder = new MemoryHost(time, { owner: "holder" });
  const waiter = new MemoryHost(time, { owner: "waiter", table: holder.table });
  const clock = time.clock();
  for (const host of [holder, waiter]) host.fate = () => clock.sleep(ANSWER_MS);
  const names = Array.from({ length: count }, (_, number) => `account#${number}`);
  const sent = (kind: string) => waiter.sent.filter((message) => message.kind === kind).length;
  const isFree = () => names.every((name) => holder.row(name) === undefined);
  /** How long it takes from the moment at which all rows are free until the set is there. */
  const takenAfter = async (taking: Promise<unknown>, isOver: () => boolean): Promise<number> => {
    await time.advanceUntil(isOver, { withinMs: 60_000 });
    const freeAt = time.elapsed;
    const watched = watch(taking);
    await time.advanceUntil(() => watched.settled, { withinMs: 120_000 });
    await taking;
    return time.elapsed - freeAt;
  };
  return { time, holder, waiter, names, sent, isFree, takenAfter };
}

describe.each([20, 100])("%d names", (count) => {
  test.each([1_000, 20_000])(
    "that a living holder frees at once, after %d ms, are taken soon after",
    async (heldMs) => {
      const { time, holder, waiter, names, sent, isFree, takenAfter } = world(count);
      const holding = holder.lockAll(names);
      await time.settle(holding);
      const taking = waiter.lockAll(names, { poll: POLL });
      await time.advance(heldMs);
      const polls = sent("read");
      void (await holding).unlock();
      expect(await takenAfter(taking, isFree)).toBeLessThan(SOON_MS);
      // One read a poll while they were held, and then each row once: a refused transaction costs four times as much.
      expect(polls).toBeLessThan(heldMs / POLL.maxMs + 12);
      expect(sent("read") - polls).toBeLessThan(count + 10);
      expect(sent("writeAll")).toBe(2);
    },
  );

  test("of a holder that died are taken soon after its lease", async () => {
    const { time, holder, waiter, names, sent, takenAfter } = world(count);
    const expires = time.now + 13_000;
    const row = { format: 1, uuid: "dead", owner: "dead", expires, ttlMs: 30_000, acquired: time.now };
    for (const name of names) holder.table.plant(lockAt(name), row);
    const taking = waiter.lockAll(names, { poll: POLL });
    expect(await takenAfter(taking, () => time.now > expires)).toBeLessThan(SOON_MS);
    expect(sent("writeAll")).toBe(2);
  });

  test("of which some stay held are not asked for before those are free, and then soon", async () => {
    const { time, holder, waiter, names, sent, isFree, takenAfter } = world(count);
    const holding = holder.lockAll(names);
    await time.settle(holding);
    const set = await holding;
    const taking = waiter.lockAll(names, { poll: POLL });
    for (const name of names.filter((_, index) => index % 3 !== 1)) void set.locks.get(name)?.unlock();
    await time.advance(10_000);
    expect(sent("writeAll")).toBe(1);
    void set.unlock();
    expect(await takenAfter(taking, isFree)).toBeLessThan(SOON_MS);
    expect(sent("writeAll")).toBe(2);
  });
});

test("a name that has refused once is read before each further transaction of its set", async () => {
  const { time, holder, waiter, sent, names } = world(3);
  const [first = "", second = ""] = names;
  const once = async <T>(work: Promise<T>): Promise<T> => {
    await time.settle(work);
    return await work;
  };
  const one = await once(holder.mutex(first).lock());
  const taking = waiter.lockAll(names, { poll: POLL });
  await time.advance(200);
  const two = await once(holder.mutex(second).lock());
  await once(one.unlock());
  // Refused by the second name, which has not refused before.
  await time.advance(2_000);
  expect(sent("writeAll")).toBe(2);
  const again = await once(holder.mutex(first).lock());
  await once(two.unlock());
  await time.advance(2_000);
  expect(sent("writeAll")).toBe(2);
  await once(again.unlock());
  await once(taking);
  expect(sent("writeAll")).toBe(3);
});

test("reads of 100 names that fail at once, and pause at once, are no leak to Node", async () => {
  const { time, holder, waiter, names, isFree, takenAfter } = world(100);
  const holding = holder.lockAll(names);
  await time.settle(holding);
  const leaks: number[] = [];
  const { clock } = waiter.session;
  const sleep = clock.sleep.bind(clock);
  clock.sleep = (ms, signal) => {
    const slept = sleep(ms, signal);
    leaks.push(...leakOn(signal));
    return slept;
  };
  const taking = waiter.lockAll(names, { poll: POLL });
  await time.advance(1_000);
  const failed = new LockStoreError("throttled", { transient: true, answered: true });
  const asked = new Set<string>();
  // Each row is refused once, also those that are read side by side.
  waiter.fate = (message) => {
    if (message.kind !== "read" || asked.has(message.at.name)) return clock.sleep(ANSWER_MS);
    asked.add(message.at.name);
    return clock.sleep(ANSWER_MS).then(() => Promise.reject(failed));
  };
  void (await holding).unlock();
  await takenAfter(taking, isFree);
  expect(asked.size).toBe(100);
  expect(leaks).toEqual([]);
});
