import { once } from "node:events";
import { describe, expect, test } from "@jest/globals";
import type { Lock, Lockable } from "../../../lib/index.js";
import { lockAt } from "../../../lib/protocol/addresses.js";
import { TestTable } from "../../../lib/testing/index.js";
import { hear } from "../../support/diagnostics.js";
import { eventually, turn, watch } from "../../support/eventually.js";
import { hosts } from "../../support/memory-host.js";

const NAME = "wanted by all";

/** Renewed every 5 s; others mark after 500 ms, at their next look. */
const OPTIONS = { ttlMs: 10_000, renewEveryMs: 5_000, handOverMs: 500 };

/** A host that has the lock, and another that may want it. */
async function held({ isMarked = false } = {}) {
  const { time, one, other } = hosts();
  const mutex = one.mutex(NAME, OPTIONS);
  // A row that others have left, whose lease is over, with a mark that is not.
  const lease = { uuid: "others", expires: time.now - 1, ttlMs: 1_000, owner: "elsewhere", acquired: time.now - 1_001 };
  if (isMarked) one.table.plant(lockAt(NAME), { format: 1, ...lease, wanted: time.now + 60_000 });
  const told = hear("dynamutex:wanted");
  const lock = await mutex.lock();
  const waits = () =>
    watch(
      other
        .mutex(NAME, OPTIONS)
        .lock()
        .then((own) => own.unlock()),
    );
  return { time, one, mutex, lock, told, waits };
}

describe("lock.wanted", () => {
  test("becomes true with the first renewal after another host has waited for handOverMs, and is told of once", async () => {
    const { time, one, lock, told, waits } = await held();
    waits();
    await time.advance(1_500);
    expect(one.row(NAME)?.wanted).toBeGreaterThan(time.now);
    expect([lock.wanted, told.length]).toEqual([false, 0]);
    await time.advance(4_000);
    expect(lock.wanted).toBe(true);
    expect(told).toMatchObject([{ name: NAME, uuid: lock.uuid, owner: "one" }]);
    await time.advance(15_000);
    expect([lock.wanted, told.length]).toEqual([true, 1]);
  });

  test("takes no request: the holder sends what it sends without a waiter", async () => {
    const { time, one, mutex, lock: alone, waits } = await held();
    await time.advance(21_000);
    const renewals = Array(4).fill("renew lock");
    expect(one.told()).toEqual(["take lock", ...renewals]);
    await alone.unlock();
    const lock = await mutex.lock();
    one.told();
    waits();
    await time.advance(21_000);
    expect(lock.wanted).toBe(true);
    expect(one.told()).toEqual(renewals);
  });

  test("is false while nobody waits, and after the section", async () => {
    const { time, lock, told, waits } = await held();
    await time.advance(11_000);
    expect(lock.wanted).toBe(false);
    waits();
    await time.advance(6_000);
    expect(lock.wanted).toBe(true);
    const unlocking = lock.unlock();
    expect(lock.wanted).toBe(false);
    await unlocking;
    expect(told).toHaveLength(1);
  });

  test("is learned by extend() at once", async () => {
    const { time, lock, waits } = await held();
    waits();
    await time.advance(1_500);
    expect(lock.wanted).toBe(false);
    await lock.extend();
    expect(lock.wanted).toBe(true);
  });

  test("becomes false again where those who waited have gone and their mark is over", async () => {
    const { time, one, lock } = await held();
    one.table.apply({ kind: "want", at: lockAt(NAME), until: time.now + 20_000 });
    await time.advance(5_000);
    expect(lock.wanted).toBe(true);
    await time.advance(20_000);
    expect(lock.wanted).toBe(false);
  });

  test("is true only after handOverMs where the mark was there at the take, and is told of at that moment", async () => {
    const { time, lock, told } = await held({ isMarked: true });
    await time.advance(499);
    expect([lock.wanted, told.length]).toEqual([false, 0]);
    await time.advance(1);
    expect([lock.wanted, told.length]).toEqual([true, 1]);
  });

  test.each([
    ["of which nothing is kept", {}],
    ["that keeps its token", { fencing: true }],
  ])("comes from a mark under a holder: a late copy changes nothing on a released row %s", async (_, options) => {
    const { time, one } = hosts();
    await (await one.mutex(NAME, options).lock()).unlock();
    const released = one.table.item(lockAt(NAME));
    one.table.apply({ kind: "want", at: lockAt(NAME), until: time.now + 20_000 });
    expect(one.table.item(lockAt(NAME))).toEqual(released);
  });

  test("dies with its section: nothing is told of a lock that was unlocked or lost before the mark counts", async () => {
    const { time, lock, told } = await held({ isMarked: true });
    await time.advance(100);
    await lock.unlock();
    await time.advance(2_000);
    expect(told).toEqual([]);
  });

  test("of a process that ends its section and locks again at once, the one that waits comes first", async () => {
    const { time, mutex, lock, waits } = await held();
    const waiter = waits();
    await time.advance(6_000);
    expect(lock.wanted).toBe(true);
    await lock.unlock();
    const again = watch(mutex.lock());
    await time.advanceUntil(() => waiter.settled || again.settled, { withinMs: 1_000 });
    expect([waiter.settled, again.settled]).toEqual([true, false]);
    await time.advance(2_000);
    expect(again.settled).toBe(true);
  });
});

describe("on a table in memory, lock.wanted", () => {
  type TestHost = ReturnType<TestTable["host"]>;
  type Kind = (host: TestHost) => Lockable;
  const exclusive: Kind = (host) => host.sharedMutex("x", OPTIONS).exclusive;

  /** Whoever holds the first is told of whoever waits for the second. */
  test.each<readonly [string, boolean, Kind, Kind?]>([
    ["a mutex", true, (host) => host.mutex("x", OPTIONS)],
    ["a fair mutex", true, (host) => host.mutex("x", { ...OPTIONS, fair: true })],
    ["a semaphore", true, (host) => host.semaphore("x", { ...OPTIONS, permits: 1 })],
    ["the exclusive side of a shared mutex", true, exclusive],
    ["the shared side of a shared mutex", false, (host) => host.sharedMutex("x", OPTIONS).shared, exclusive],
  ])("of %s, where another host waits, is %s", async (_, isWanted, kind, other = kind) => {
    const table = new TestTable({ time: "manual" });
    const lock = await kind(table.host()).lock();
    const waiting = other(table.host()).lock();
    await table.clock.advance(11_000);
    expect(lock.wanted).toBe(isWanted);
    await lock.unlock();
    await table.clock.advance(2_000);
    await (await waiting).unlock();
  });

  test("of a set is true where another host waits for one of its locks", async () => {
    const table = new TestTable({ time: "manual" });
    const set = await table.host().lockAll(["x", "y"], { ttlMs: 10_000, renewEveryMs: 5_000 });
    const waiting = table.host().mutex("y", OPTIONS).lock();
    await table.clock.advance(5_100);
    expect([set.wanted, set.locks.get("x")?.wanted, set.locks.get("y")?.wanted]).toEqual([true, false, true]);
    await set.unlock();
    await table.clock.advance(2_000);
    await (await waiting).unlock();
  });

  test("of a leader is what its election says, and a leader that returns and stands again lets another lead", async () => {
    const table = new TestTable({ time: "manual" });
    const led: string[] = [];
    const stand = (owner: string) => {
      const mutex = table.host({ owner }).mutex("x", OPTIONS);
      return (lead: (lock: Lock) => Promise<void>) =>
        mutex.elect(async (lock) => {
          led.push(owner);
          await lead(lock);
        });
    };
    const end = new AbortController();
    const ended = once(end.signal, "abort");
    const first = stand("a");
    const election = first(async () => void (await ended));
    await eventually(() => election.isLeader);
    const other = stand("b")(
      ({ signal }) => new Promise((resolve) => signal.addEventListener("abort", () => resolve())),
    );
    await table.clock.advance(100);
    expect(election.wanted).toBe(false);
    await table.clock.advance(5_000);
    expect(election.wanted).toBe(true);
    end.abort();
    await election.done;
    expect(election.wanted).toBe(false);
    const again = first(async () => undefined);
    await table.clock.advance(3_000);
    await turn();
    expect(led).toEqual(["a", "b"]);
    await again.resign();
    await other.resign();
  });
});
