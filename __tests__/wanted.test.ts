import { once } from "node:events";
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import type { Lock, Lockable } from "../lib/index.js";
import type { Mutex } from "../lib/mutex.js";
import { lockAt } from "../lib/protocol/addresses.js";
import { TestTable } from "../lib/testing/index.js";
import { hear } from "./support/diagnostics.js";
import { type BusyHost, DistantHosts, NAME } from "./support/distant-hosts.js";
import { eventually, turn } from "./support/eventually.js";

const AT = lockAt(NAME);

/** Renewed every 5 s; others mark after 500 ms, at their next look. */
const OPTIONS = { ttlMs: 10_000, renewEveryMs: 5_000, handOverMs: 500 };

let world: DistantHosts;
let holder: BusyHost;
let lockable: Mutex;
beforeEach(() => {
  world = new DistantHosts();
  holder = world.add({ callers: 0, sectionMs: 0 });
  lockable = holder.mutex(OPTIONS);
});
const locks: Lock[] = [];
afterEach(async () => {
  for (const lock of locks.splice(0)) await unlocked(lock);
  await world.close();
});

async function locked(mutex: Lockable = lockable): Promise<Lock> {
  const locking = mutex.lock();
  await world.time.advance(200);
  const lock = await locking;
  locks.push(lock);
  return lock;
}

/** A row that others have left, whose lease is over, with a mark that is not. */
function plantMarked(): void {
  const { now } = world.time;
  const lease = { uuid: "others", expires: now - 1, ttlMs: 1_000, owner: "elsewhere", acquired: now - 1_001 };
  world.table.plant(AT, { format: 1, ...lease, wanted: now + 60_000 });
}

async function unlocked(lock: Lock): Promise<void> {
  const unlocking = lock.unlock();
  await world.time.advance(100);
  await unlocking;
}

/** A further host, whose caller wants the lock once. */
function waits(): { readonly got: () => boolean; readonly host: BusyHost } {
  const host = world.add({ callers: 0, sectionMs: 0 });
  let got = false;
  const wait = async (): Promise<void> => {
    const lock = await host.mutex(OPTIONS).lock();
    got = true;
    await lock.unlock();
  };
  wait().catch(() => undefined);
  return { got: () => got, host };
}

describe("lock.wanted", () => {
  test("becomes true with the first renewal after another host has waited for handOverMs, and is told of once", async () => {
    const told = hear("dynamutex:wanted");
    const lock = await locked();
    waits();
    await world.time.advance(1_500);
    expect(world.table.row(AT)?.wanted).toBeGreaterThan(world.time.now);
    expect([lock.wanted, told.length]).toEqual([false, 0]);
    await world.time.advance(4_000);
    expect([lock.wanted, told.length]).toEqual([true, 1]);
    expect(told[0]).toMatchObject({ name: NAME, uuid: lock.uuid, owner: "host-1" });
    await world.time.advance(15_000);
    expect([lock.wanted, told.length]).toEqual([true, 1]);
  });

  test("takes no request: the holder sends what it sends without a waiter", async () => {
    const alone = await locked();
    const before = holder.requests;
    await world.time.advance(21_000);
    const renewals = holder.requests - before;
    await unlocked(alone);
    const lock = await locked();
    waits();
    const since = holder.requests;
    await world.time.advance(21_000);
    expect([lock.wanted, holder.requests - since]).toEqual([true, renewals]);
    expect(renewals).toBe(4);
  });

  test("is false while nobody waits, and after the section", async () => {
    const told = hear("dynamutex:wanted");
    const lock = await locked();
    await world.time.advance(11_000);
    expect(lock.wanted).toBe(false);
    waits();
    await world.time.advance(6_000);
    expect(lock.wanted).toBe(true);
    const unlocking = lock.unlock();
    expect(lock.wanted).toBe(false);
    await world.time.advance(100);
    await unlocking;
    expect(told).toHaveLength(1);
  });

  test("is learned by extend() at once", async () => {
    const lock = await locked();
    waits();
    await world.time.advance(1_500);
    expect(lock.wanted).toBe(false);
    const extending = lock.extend();
    await world.time.advance(50);
    await extending;
    expect(lock.wanted).toBe(true);
  });

  test("becomes false again where those who waited have gone and their mark is over", async () => {
    const lock = await locked();
    world.table.apply({ kind: "want", at: AT, until: world.time.now + 20_000 });
    await world.time.advance(5_200);
    expect(lock.wanted).toBe(true);
    await world.time.advance(20_000);
    expect(lock.wanted).toBe(false);
  });

  test("is true only after handOverMs where the mark was there at the take, and is told of at that moment", async () => {
    const told = hear("dynamutex:wanted");
    plantMarked();
    const lock = await locked();
    await world.time.advance(250);
    expect([lock.wanted, told.length]).toEqual([false, 0]);
    await world.time.advance(250);
    expect([lock.wanted, told.length]).toEqual([true, 1]);
  });

  test("dies with its section: nothing is told of a lock that was unlocked or lost before the mark counts", async () => {
    const told = hear("dynamutex:wanted");
    plantMarked();
    const lock = await locked();
    await world.time.advance(100);
    const unlocking = lock.unlock();
    await world.time.advance(2_000);
    await unlocking;
    expect(told).toEqual([]);
  });

  test("of a process that ends its section and locks again at once, the one that waits comes first", async () => {
    const lock = await locked();
    const waiter = waits();
    await world.time.advance(6_000);
    expect(lock.wanted).toBe(true);
    let isAgain = false;
    const again = lock.unlock().then(async () => {
      const next = await lockable.lock();
      isAgain = true;
      await next.unlock();
    });
    for (let ms = 0; ms < 1_000 && !waiter.got(); ms += 20) {
      expect(isAgain).toBe(false);
      await world.time.advance(20);
    }
    expect([waiter.got(), isAgain]).toEqual([true, false]);
    await world.time.advance(2_000);
    expect(isAgain).toBe(true);
    await again;
  });
});

describe("on a table in memory, lock.wanted", () => {
  /** Whoever holds the first is told of whoever waits for the second. */
  const KINDS = {
    "a mutex": (host: TestHost) => host.mutex("x", OPTIONS),
    "a fair mutex": (host: TestHost) => host.mutex("x", { ...OPTIONS, fair: true }),
    "a semaphore": (host: TestHost) => host.semaphore("x", { ...OPTIONS, permits: 1 }),
    "the exclusive side of a shared mutex": (host: TestHost) => host.sharedMutex("x", OPTIONS).exclusive,
  } as const;
  type TestHost = ReturnType<TestTable["host"]>;

  test.each(Object.keys(KINDS) as (keyof typeof KINDS)[])("of %s is true where another host waits", async (kind) => {
    const table = new TestTable({ time: "manual" });
    const [first, second] = [table.host(), table.host()];
    const lock = (await KINDS[kind](first).tryLock()) as Lock;
    const waiting = KINDS[kind](second).lock();
    await table.clock.advance(5_100);
    expect(lock.wanted).toBe(true);
    await lock.unlock();
    await table.clock.advance(2_000);
    await (await waiting).unlock();
  });

  test("of the shared side of a shared mutex stays false", async () => {
    const table = new TestTable({ time: "manual" });
    const lock = await table.host().sharedMutex("x", OPTIONS).shared.lock();
    const waiting = table.host().sharedMutex("x", OPTIONS).exclusive.lock();
    await table.clock.advance(11_000);
    expect(lock.wanted).toBe(false);
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
