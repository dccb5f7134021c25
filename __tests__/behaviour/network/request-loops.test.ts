import { ConditionalCheckFailedException, type DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { marshall } from "@aws-sdk/util-dynamodb";
import { describe, expect, test } from "@jest/globals";
import { type Clock, LockStoreError, LockTable, type MutexOptions } from "../../../lib/index.js";
import { hear } from "../../support/diagnostics.js";
import { turn, watch } from "../../support/eventually.js";
import { rewriteReply } from "../../support/fault-proxy.js";
import { ManualTime } from "../../support/manual-time.js";
import { rowOf, useScene } from "../../support/scene.js";

const scene = useScene();

/** The most requests of one call between two pauses, on any way through the library. */
const MOST_AT_ONCE = 20;

type Send = (operation: string, time: ManualTime) => unknown;

/** A client as tests of users have it: a plain object, whose answers are made up. */
function world(
  send: Send,
  { clock: clockOn, ...options }: MutexOptions & { readonly clock?: (time: ManualTime) => Clock } = {},
) {
  const time = new ManualTime();
  const clock = clockOn?.(time) ?? time.tableClock();
  /** When each request left. */
  const sent: number[] = [];
  const client = {
    send: async (command: object) => {
      sent.push(time.elapsed);
      if (sent.length > 10_000) throw new Error("far too many requests");
      return await send(command.constructor.name.replace("Command", ""), time);
    },
    destroy: () => undefined,
    config: {},
  } as unknown as DynamoDBClient;
  const locks = new LockTable({ tableName: "made-up", client, clock, ...options });
  /** The most that left at one moment. */
  const mostAtOnce = (): number => {
    const counts = new Map<number, number>();
    for (const at of sent) counts.set(at, (counts.get(at) ?? 0) + 1);
    return Math.max(0, ...counts.values());
  };
  /** Lets time pass in steps; what a step sets in motion happens in it. */
  const pass = async (ms: number): Promise<void> => {
    for (let passed = 0; passed < ms; passed += 50) {
      await time.advance(50);
      await turn();
    }
  };
  return { time, locks, sent, mostAtOnce, pass };
}

describe("trap 31: a client that answers every request with {}", () => {
  test("makes the clock fall back to the host's, which says so once, and gives locks for two or three requests", async () => {
    const heard = hear("dynamutex:clock");
    const { time, locks, sent } = world(() => ({}));
    const lock = await locks.mutex("a").lock();
    expect(lock.held).toBe(true);
    expect(sent).toHaveLength(2);
    expect(lock.expires.getTime()).toBeLessThanOrEqual(time.now + 30_000 + 1_000);
    await lock.unlock();
    expect(sent).toHaveLength(3);
    expect(heard).toEqual([{ event: "no-date", detail: expect.stringContaining("trusting the host's clock") }]);
    await (await locks.mutex("a").tryLock())?.unlock();
    await (await locks.mutex("fenced", { fencing: true }).lock()).unlock();
    await (await locks.lockAll(["a", "b"])).unlock();
    await time.advance(10_000);
    expect(await locks.mutex("a").tryRun(() => "ran", { everyMs: 60_000 })).toMatchObject({ ran: true });
    expect(heard).toHaveLength(1);
    await locks.close();
  });

  test("gets no request without a pause from fair mutexes either, whose places it never shows", async () => {
    const held = marshall({ name: "fair", sort: "lock", ...rowOf({ expires: Date.UTC(2099, 0) }) });
    const { locks, sent, mostAtOnce, pass } = world((operation) => (operation === "Query" ? { Items: [held] } : {}));
    const locking = watch(locks.mutex("fair", { fair: true }).lock());
    await pass(20_000);
    expect(locking.settled).toBe(false);
    expect(mostAtOnce()).toBeLessThanOrEqual(MOST_AT_ONCE);
    expect(sent.length).toBeLessThan(20 * MOST_AT_ONCE);
    await locks.close();
  });
});

test("trap 31: create() describes a table that never shows with pauses, and says so when its time is over", async () => {
  const { locks, mostAtOnce, pass } = world(() => ({}));
  const creating = locks.create({ timeoutMs: 10_000 }).catch((error: unknown) => error);
  await pass(11_000);
  expect(await creating).toMatchObject({ message: expect.stringContaining("it does not show yet") });
  expect(mostAtOnce()).toBeLessThanOrEqual(MOST_AT_ONCE);
});

describe("trap 31: a client that refuses every write, and shows a row that looks free", () => {
  const item = marshall({ name: "a", sort: "lock", ...rowOf({ expires: 1, ttlMs: 1_000 }) });
  const refuse: Send = (operation) => {
    if (operation === "GetItem") return { Item: item };
    if (operation === "Query") return { Items: [item] };
    const message = "The conditional request failed";
    throw new ConditionalCheckFailedException({ message, Item: item, $metadata: {} });
  };

  test.each([
    ["lock()", (locks: LockTable) => locks.mutex("a").lock()],
    ["lock() of a fair mutex", (locks: LockTable) => locks.mutex("a", { fair: true }).lock()],
    ["lock() of a fenced one", (locks: LockTable) => locks.mutex("a", { fencing: true }).lock()],
  ])("gets no request without a pause from %s", async (_, call) => {
    const { locks, sent, mostAtOnce, pass } = world(refuse);
    call(locks).catch(() => undefined);
    await pass(30_000);
    expect(mostAtOnce()).toBeLessThanOrEqual(MOST_AT_ONCE);
    expect(sent.length).toBeLessThan(30 * MOST_AT_ONCE);
    const closing = locks.close();
    await pass(1_000);
    await closing;
  });

  test("gets few requests from tryLock(), which says that the lock is held", async () => {
    const { locks, sent } = world(refuse);
    expect(await locks.mutex("a").tryLock()).toBeNull();
    expect(sent.length).toBeLessThanOrEqual(MOST_AT_ONCE);
    await locks.close();
  });
});

describe("trap 31: a query whose pages all end at the same key", () => {
  test("ends", async () => {
    const LastEvaluatedKey = marshall({ name: "a", sort: `queue#${"5".padStart(38, "0")}` });
    const { locks, mostAtOnce, pass } = world((operation) => (operation === "Query" ? { LastEvaluatedKey } : {}));
    const mutex = locks.mutex("a", { fair: true });
    const tried = mutex.tryLock();
    const trying = watch(tried);
    await pass(1_000);
    expect(trying.settled).toBe(true);
    expect(mostAtOnce()).toBeLessThanOrEqual(MOST_AT_ONCE);
    await (await tried)?.unlock();
    await locks.close();
  });
});

describe("trap 31: a clock that never knows the time", () => {
  const CASES: readonly [string, Partial<Clock>][] = [
    ["has no bounds", { wall: () => undefined, isCurrent: () => false }],
    ["has no bounds, and says that they are good", { wall: () => undefined, isCurrent: () => true }],
    ["has bounds that are never good enough", { isCurrent: () => false }],
  ];

  test.each(CASES)("because it %s: every call ends in one error that says so", async (_, broken) => {
    for (const call of ["lock", "tryLock"] as const) {
      const { locks, sent, pass } = world(() => ({}), { clock: (time) => ({ ...time.clock(), ...broken }) });
      const failure = (name: string) =>
        locks
          .mutex(name)
          [call]()
          .catch((reason: unknown) => reason);
      const outcomes = Promise.all(["a", "b"].map(failure));
      await pass(1_000);
      for (const outcome of await outcomes) {
        expect(outcome).toBeInstanceOf(LockStoreError);
        expect(outcome).toMatchObject({ transient: false, message: expect.stringMatching(/time/) });
      }
      expect(sent.length).toBeLessThanOrEqual(6);
      await locks.close();
    }
  });
});

describe("trap 31: a proxy that hides headers of all replies", () => {
  test("and only their time, makes the clock fall back after its first success; locks exclude one another as ever", async () => {
    const heard = hear("dynamutex:clock");
    const hide = rewriteReply(({ headers, ...reply }) => {
      return { ...reply, headers: { "content-type": headers["content-type"], "x-served-by": "gateway" } };
    });
    scene.proxy.on({}, hide, { times: Number.POSITIVE_INFINITY }).done.catch(() => undefined);
    const [one, other] = ["one", "other"].map((tag) => scene.host({ tag }).mutex(scene.name));
    const lock = await one?.lock();
    // One read tells that there is no time to learn.
    expect(scene.proxy.counts()).toEqual({ GetItem: 1, PutItem: 1 });
    expect(await other?.tryLock()).toBeNull();
    expect(heard.map(({ event }) => event)).toEqual(["no-date", "no-date"]);
    await lock?.unlock();
    await (await other?.tryLock())?.unlock();
    expect(await scene.row()).toBeUndefined();
  });
});

describe("trap 31: answers that take longer than a lease", () => {
  test.each(["lock", "tryLock"] as const)("%s() ends in the error that says so", async (call) => {
    const slow: Send = async (_, time) => {
      await time.clock().sleep(900);
      return {};
    };
    const { locks, mostAtOnce, pass } = world(slow, { ttlMs: 500 });
    const outcome = locks
      .mutex("a")
      [call]()
      .catch((reason: unknown) => reason);
    const settled = watch(outcome);
    await pass(15_000);
    expect(settled.settled).toBe(true);
    expect(await outcome).toMatchObject({
      code: "LOCK_STORE",
      transient: false,
      message: 'Lock "a": the table\'s answers take longer than a lease of 500 ms lasts; raise ttlMs',
    });
    expect(mostAtOnce()).toBeLessThanOrEqual(MOST_AT_ONCE);
  });
});
