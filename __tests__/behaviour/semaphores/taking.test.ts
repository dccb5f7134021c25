import { expect, test } from "@jest/globals";
import type { Permit } from "../../../lib/index.js";
import { lockAt, permitAt } from "../../../lib/protocol/addresses.js";
import { watch } from "../../support/eventually.js";
import { ManualTime } from "../../support/manual-time.js";
import { hosts, MemoryHost } from "../../support/memory-host.js";

const NAME = "api";

const numbersOf = (permits: readonly Permit[]): number[] => permits.map(({ permit }) => permit).sort();

test("at most as many hold a permit at once as there are permits, over several hosts, and their numbers differ", async () => {
  const { time, one, other, third } = hosts();
  const held = new Set<number>();
  let [most, sections] = [0, 0];
  const section = async ({ permit }: Permit): Promise<void> => {
    expect(held.has(permit)).toBe(false);
    held.add(permit);
    most = Math.max(most, held.size);
    await time.clock().sleep(10);
    held.delete(permit);
    sections += 1;
  };
  const work = [one, other, third].flatMap((host) => {
    const semaphore = host.semaphore(NAME, { permits: 3, handOverMs: 50 });
    return [1, 2, 3].map(async () => {
      for (let count = 0; count < 5; count += 1) await semaphore.run(section);
    });
  });
  await time.advanceUntil(() => sections === 45);
  await Promise.all(work);
  expect(most).toBe(3);
  expect(one.table.rows).toEqual([]);
});

test("a permit is taken by one write and released by one", async () => {
  const host = new MemoryHost(new ManualTime());
  const permit = await host.semaphore(NAME, { permits: 4 }).lock();
  expect(host.told()).toEqual([`take semaphore#000${permit.permit}`]);
  await permit.unlock();
  expect(host.told()).toEqual([`vacate semaphore#000${permit.permit}`]);
});

test("a process asks first for the permit that it has released last", async () => {
  const host = new MemoryHost(new ManualTime());
  const semaphore = host.semaphore(NAME, { permits: 3 });
  const [one, other] = [await semaphore.lock(), await semaphore.lock()];
  await one.unlock();
  await other.unlock();
  host.told();
  await using again = await semaphore.lock();
  expect(again.permit).toBe(other.permit);
  expect(host.told()).toEqual([`take semaphore#000${other.permit}`]);
});

test("a first guess that is refused costs one query, which shows the permits that are free", async () => {
  const { one, other } = hosts();
  await using held = await one.semaphore(NAME, { permits: 2 }).lock();
  await using permit = await other.semaphore(NAME, { permits: 2 }).lock();
  expect(other.told()).toEqual([
    `take semaphore#000${held.permit}`,
    "consistent query semaphore#0000",
    `take semaphore#000${permit.permit}`,
  ]);
  expect(permit.permit).toBe(1 - held.permit);
});

test("calls of one process take permits at the same time, and none is refused by another of them", async () => {
  const host = new MemoryHost(new ManualTime());
  const semaphore = host.semaphore(NAME, { permits: 4 });
  const permits = await Promise.all([1, 2, 3, 4].map(() => semaphore.lock()));
  expect(numbersOf(permits)).toEqual([0, 1, 2, 3]);
  expect(host.told().toSorted()).toEqual([0, 1, 2, 3].map((permit) => `take semaphore#000${permit}`));
});

test("of a burst of calls, those for which its own process asks for all permits wait without a request", async () => {
  const time = new ManualTime();
  const host = new MemoryHost(time);
  host.fate = () => time.clock().sleep(10);
  const semaphore = host.semaphore(NAME, { permits: 3, ttlMs: 60_000 });
  const order: number[] = [];
  const calls = Array.from({ length: 20 }, async (_, number) => {
    const permit = await semaphore.lock();
    order.push(number);
    return permit;
  });
  await time.advance(5_000);
  expect(host.told().toSorted()).toEqual([0, 1, 2].map((permit) => `take semaphore#000${permit}`));
  expect(order.toSorted()).toEqual([0, 1, 2]);
  for (const call of calls) {
    await time.settle((await call).unlock());
  }
  expect(order.slice(3)).toEqual(Array.from({ length: 17 }, (_, index) => index + 3));
  expect(host.told().filter((request) => request.startsWith("take"))).toEqual([]);
  expect(host.table.rows).toEqual([]);
});

test("while a process has all permits, its callers wait without a request", async () => {
  const time = new ManualTime();
  const host = new MemoryHost(time);
  const semaphore = host.semaphore(NAME, { permits: 2, ttlMs: 60_000 });
  const held = [await semaphore.lock(), await semaphore.lock()];
  const waiting = [1, 2, 3].map(() => watch(semaphore.lock()));
  host.told();
  await time.advance(20_000);
  expect(host.told()).toEqual([]);
  expect(waiting.map(({ settled }) => settled)).toEqual([false, false, false]);
  for (const permit of held) expect(permit.held).toBe(true);
});

test("tryLock gives null where its own process holds all permits, without a request", async () => {
  const host = new MemoryHost(new ManualTime());
  const semaphore = host.semaphore(NAME, { permits: 2 });
  await using _one = await semaphore.lock();
  await using other = await semaphore.lock();
  host.told();
  expect(await semaphore.tryLock()).toBeNull();
  const result = await semaphore.tryRun(() => "never");
  expect(result).toMatchObject({ ran: false, reason: "held", holder: { kind: "semaphore", uuid: other.uuid } });
  expect(host.told()).toEqual([]);
});

test("tryLock gives null where others hold all permits, and tryRun says who holds one", async () => {
  const { one, other } = hosts();
  const semaphore = one.semaphore(NAME, { permits: 2 });
  await using _first = await semaphore.lock();
  await using _second = await semaphore.lock();
  const asking = other.semaphore(NAME, { permits: 2 });
  expect(await asking.tryLock()).toBeNull();
  expect(await asking.tryRun(() => "never")).toMatchObject({ ran: false, reason: "held", holder: { owner: "one" } });
});

test("a permit of a holder that died is taken over when its lease is over", async () => {
  const { time, one: dead, other: next } = hosts();
  await dead.semaphore(NAME, { permits: 1, ttlMs: 1_000, autoRenew: false }).lock();
  const waiting = next.semaphore(NAME, { permits: 1 }).lock();
  const watched = watch(waiting);
  await time.advance(999);
  expect(watched.settled).toBe(false);
  await time.advance(3);
  await using permit = await waiting;
  expect(permit.held).toBe(true);
});

test("a permit that was seen unchanged for its whole lease is taken over, whatever the clock shows", async () => {
  const { time, one: dead, other: next } = hosts();
  await dead.semaphore(NAME, { permits: 1, ttlMs: 1_000, autoRenew: false }).lock();
  await time.advance(500);
  const waiting = next.semaphore(NAME, { permits: 1, takeover: "unchanged" }).lock();
  const watched = watch(waiting);
  await time.advance(999);
  expect(watched.settled).toBe(false);
  await time.advanceUntil(() => watched.settled, { withinMs: 500 });
  await using permit = await waiting;
  expect(permit.held).toBe(true);
});

test("a semaphore may have a thousand permits, and a host finds the one among them that is free", async () => {
  const { one, other } = hosts();
  const semaphore = one.semaphore(NAME, { permits: 1_000 });
  const held = await Promise.all(Array.from({ length: 1_000 }, () => semaphore.lock()));
  expect(new Set(held.map(({ permit }) => permit)).size).toBe(1_000);
  expect(Math.max(...held.map(({ permit }) => permit))).toBe(999);
  expect(await semaphore.tryLock()).toBeNull();
  await held[777]?.unlock();
  await using permit = await other.semaphore(NAME, { permits: 1_000 }).lock();
  expect(permit.permit).toBe(held[777]?.permit);
});

test("a mutex, a semaphore and a shared mutex of one name have nothing to do with one another", async () => {
  const host = new MemoryHost(new ManualTime());
  await using lock = await host.mutex(NAME).lock();
  await using permit = await host.semaphore(NAME, { permits: 1 }).lock();
  const { exclusive, shared } = host.sharedMutex(NAME);
  const writer = await exclusive.lock();
  expect([lock.held, permit.held, writer.held]).toEqual([true, true, true]);
  await writer.unlock();
  await using reader = await shared.lock();
  expect(reader.held).toBe(true);
  const sorts = [...host.table.partition(NAME).keys()].map((sort) => sort.replace(/#.*-.*/, "#"));
  expect(sorts.toSorted()).toEqual([lockAt(NAME).sort, permitAt(NAME, 0).sort, "reader#"].toSorted());
});
