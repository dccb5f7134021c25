import { describe, expect, test } from "@jest/globals";
import { findLockLost, type Lock, LockLostError, type LockOptions, systemClock } from "../../../lib/index.js";
import { writerAt } from "../../../lib/protocol/addresses.js";
import { turn, watch } from "../../support/eventually.js";
import { deferred } from "../../support/fault-proxy/deferred.js";
import { hosts, MemoryHost } from "../../support/memory-host.js";
import { useScene } from "../../support/scene.js";

const NAME = "catalogue";

describe("readers", () => {
  test("a shared cycle is a put, a consistent read of the writer, and a delete", async () => {
    const { one } = hosts();
    const lock = await one.sharedMutex(NAME).shared.lock();
    expect(one.told()).toEqual(["take reader", "consistent read writer"]);
    await lock.unlock();
    expect(one.told()).toEqual(["vacate reader"]);
    expect(one.table.rows).toEqual([]);
  });

  test("one whose row was unlocked by force while its reply was lost takes another row, and waits for nobody", async () => {
    const { time, one, other } = hosts();
    let takes = 0;
    one.fate = (message) => (message.kind === "write" && ++takes === 1 ? "reply lost" : "answered");
    const { shared } = one.sharedMutex(NAME, { ttlMs: 60_000 });
    const begun = time.now;
    const reading = shared.lock();
    await turn();
    const [forced] = one.readers(NAME);
    await other.sharedMutex(NAME).forceUnlock(forced?.uuid ?? "");
    await time.settle(reading);
    await using lock = await reading;
    expect(lock.held).toBe(true);
    // The parked row keeps writers out until it expires.
    expect(one.readers(NAME).map(({ uuid }) => uuid)).toEqual(expect.arrayContaining([undefined, lock.uuid]));
    expect(one.told()).toEqual([
      "take reader",
      "take reader",
      "consistent read reader",
      "take reader",
      "consistent read writer",
    ]);
    expect(time.now - begun).toBeLessThan(60_000);
  });

  test("those of several hosts run beside one another, each host with a row", async () => {
    const { one, other } = hosts();
    await using first = await one.sharedMutex(NAME).shared.lock();
    await using second = await other.sharedMutex(NAME).shared.lock();
    expect([first.held, second.held]).toEqual([true, true]);
    expect(one.readers(NAME)).toHaveLength(2);
  });

  test("any number of them in one process have one row, which goes when the last has ended", async () => {
    const { one } = hosts();
    const { shared } = one.sharedMutex(NAME);
    const locks = await Promise.all(Array.from({ length: 8 }, () => shared.lock()));
    expect(one.told()).toEqual(["take reader", "consistent read writer"]);
    expect(one.readers(NAME)).toHaveLength(1);
    expect(new Set(locks.map(({ uuid }) => uuid)).size).toBe(1);
    for (const lock of locks.slice(1)) await lock.unlock();
    expect(locks.map(({ held }) => held)).toEqual([true, ...Array(7).fill(false)]);
    expect(one.readers(NAME)).toHaveLength(1);
    await locks[0]?.unlock();
    expect(one.told()).toEqual(["vacate reader"]);
  });

  test.each([false, true])(
    "2 000 short ones of one process, fair: %s, begin together on the row that is on its way in",
    async (fair) => {
      const { one } = hosts();
      const { shared } = one.sharedMutex(NAME, { fair });
      let most = 0;
      let running = 0;
      const read = async (): Promise<void> => {
        most = Math.max(most, ++running);
        await Promise.resolve();
        running -= 1;
      };
      await Promise.all(Array.from({ length: 2_000 }, () => shared.run(read)));
      const looks = fair ? ["consistent query writer"] : [];
      expect(one.told()).toEqual([...looks, "take reader", "consistent read writer", "vacate reader"]);
      expect(most).toBe(2_000);
    },
  );

  test.each([false, true])(
    "fair: %s: a caller that gives up while its row is on its way in takes it from nobody who joined",
    async (fair) => {
      const { one } = hosts();
      const { shared } = one.sharedMutex(NAME, { fair });
      const [gone, asked, arrives] = [new AbortController(), deferred<void>(), deferred<void>()];
      // The consistent read that lets a reader in: a look of a fair queue is a query.
      one.hold = (message) => {
        if (message.kind !== "read") return undefined;
        asked.resolve();
        return arrives.promise;
      };
      const first = shared.lock({ signal: gone.signal });
      await asked.promise;
      // After the look at the queue that has let the first one try.
      const other = shared.lock();
      gone.abort(new Error("gone"));
      await expect(first).rejects.toThrow("gone");
      // What is asked next is answered late: others have gone on by then.
      const late = deferred<void>();
      let asks = 0;
      one.hold = (message) => (message.kind === "query" && ++asks === 1 ? late.promise : undefined);
      arrives.resolve();
      await turn();
      late.resolve();
      const lock = await other;
      await turn();
      expect(lock.held).toBe(true);
      expect(one.readers(NAME).map(({ uuid }) => uuid)).toEqual([lock.uuid]);
      await lock.unlock();
      expect(one.readers(NAME)).toEqual([]);
    },
  );

  test("whoever joins sends nothing within handOverMs of the last look, and then one eventually consistent read", async () => {
    const { time, one } = hosts();
    const { shared } = one.sharedMutex(NAME, { handOverMs: 500 });
    await using _first = await shared.lock();
    one.told();
    await time.advance(499);
    await using _second = await shared.lock();
    expect(one.told()).toEqual([]);
    await time.advance(1);
    await using _third = await shared.lock();
    expect(one.told()).toEqual(["read writer"]);
    await using _fourth = await shared.tryLock();
    expect(one.told()).toEqual([]);
    expect(one.readers(NAME)).toHaveLength(1);
  });

  test("nobody joins once a writer was seen, and those who wait get in after it", async () => {
    const { time, one, other } = hosts();
    const { shared } = one.sharedMutex(NAME, { handOverMs: 500 });
    const first = await shared.lock();
    const writing = other.sharedMutex(NAME).exclusive.lock();
    const writer = watch(writing);
    await time.advance(500);
    const readers = [shared.lock(), shared.lock()];
    const reading = watch(Promise.race(readers));
    await time.advance(5_000);
    expect([writer.settled, reading.settled]).toEqual([false, false]);
    await first.unlock();
    await time.advanceUntil(() => writer.settled);
    expect(reading.settled).toBe(false);
    await (await writing).unlock();
    await time.settle(Promise.all(readers));
    expect(new Set((await Promise.all(readers)).map(({ uuid }) => uuid)).size).toBe(1);
  });

  test("one that finds a writer gives its row back, and waits with reads of the writer alone", async () => {
    const { time, one, other } = hosts();
    const lock = await other.sharedMutex(NAME).exclusive.lock();
    const reading = one.sharedMutex(NAME).shared.lock();
    const watched = watch(reading);
    await turn();
    expect(one.told()).toEqual(["take reader", "consistent read writer", "vacate reader"]);
    expect(one.readers(NAME)).toEqual([]);
    await time.advance(2_000);
    const told = one.told();
    expect(new Set(told)).toEqual(new Set(["read writer", "want writer"]));
    expect(told.filter((request) => request === "want writer")).toHaveLength(1);
    expect(watched.settled).toBe(false);
    await lock.unlock();
    await time.advanceUntil(() => watched.settled);
    await using _reader = await reading;
    expect(one.told().slice(-3)).toEqual(["read writer", "take reader", "consistent read writer"]);
  });

  test("a try that finds a writer names it", async () => {
    const { one, other } = hosts();
    await using _writer = await other.sharedMutex(NAME).exclusive.lock();
    const { shared } = one.sharedMutex(NAME);
    expect(await shared.tryLock()).toBeNull();
    expect(await shared.tryRun(() => "never")).toMatchObject({
      ran: false,
      reason: "held",
      holder: { kind: "exclusive", owner: "other" },
    });
    await expect(shared.lock({ waitMs: 0 })).rejects.toMatchObject({
      code: "LOCK_TIMEOUT",
      holder: { owner: "other" },
    });
    await turn();
    expect(one.readers(NAME)).toEqual([]);
  });

  test("a try that would join a lease which cannot be renewed ends after 10 s, as any other", async () => {
    const { time, one } = hosts();
    const { shared } = one.sharedMutex(NAME, { ttlMs: 600_000 });
    await shared.lock();
    one.fate = ({ kind }) => (kind === "write" ? "lost" : "answered");
    await time.advance(330_000);
    const watched = watch(shared.tryLock());
    await time.advance(9_000);
    expect(watched.settled).toBe(false);
    await time.advance(1_100);
    expect(watched.settled).toBe(true);
  });

  test("a try that has to remove a dead writer ends after 10 s, as any other", async () => {
    const { time, one, other } = hosts();
    await other.sharedMutex(NAME, { ttlMs: 5_000 }).exclusive.lock();
    other.fate = () => "lost";
    await time.advance(20_000);
    await (await one.mutex("warm").lock()).unlock();
    one.hold = () => one.session.clock.sleep(2_900);
    one.fate = (message) => (message.kind === "write" && message.write.kind === "remove" ? "lost" : "answered");
    const trying = one.sharedMutex(NAME).shared.tryLock();
    const watched = watch(trying);
    await time.advance(10_000);
    expect(watched.settled).toBe(true);
    await expect(trying).rejects.toThrow(/^No answer from the table/);
  });

  test("those of hosts that try again and again do not starve a writer", async () => {
    const { time, one, other, third } = hosts();
    const triers = [one, third, new MemoryHost(time, { owner: "fourth", table: one.table })];
    for (const host of [other, ...triers]) host.fate = () => time.clock().sleep(5);
    let enough = false;
    const loops = triers.map(async (host, index) => {
      await time.clock().sleep(3 * index);
      while (!enough) {
        const lock = await host.sharedMutex(NAME).shared.tryLock();
        await time.clock().sleep(5);
        await lock?.unlock();
      }
    });
    await time.advance(200);
    const writing = other.sharedMutex(NAME).exclusive.lock();
    await time.settle(writing, { withinMs: 5_000 });
    enough = true;
    const unlocked = watch((await writing).unlock());
    const ended = watch(Promise.all(loops));
    await time.advanceUntil(() => ended.settled && unlocked.settled);
  });

  test("trap 39: judge a writer by what was known before their read left, not when the reply arrives", async () => {
    const { time, one } = hosts();
    const uuid = "11111111-2222-4333-8444-555555555555";
    const expires = time.now + 1_000;
    one.table.plant(writerAt(NAME), { format: 1, uuid, owner: "writer", expires, ttlMs: 60_000, acquired: 1 });
    const arrives = time.clock().sleep(2_000);
    let reads = 0;
    one.hold = (message) => (message.kind === "read" && ++reads === 1 ? arrives : undefined);
    const trying = one.sharedMutex(NAME).shared.tryLock();
    await time.advance(1_999);
    expect(one.told()).toEqual(["take reader", "consistent read writer"]);
    await time.advance(1);
    await using reader = await trying;
    expect(reader?.held).toBe(true);
    // The reply has shown a lease that is over by now, and was not when the question left: it is asked once more.
    expect(one.told()).toEqual(["vacate reader", "take reader", "consistent read writer", "remove writer"]);
  });

  test("waitMs ends the wait for a writer, and its error names it", async () => {
    const { time, one, other } = hosts();
    await using _writer = await other.sharedMutex(NAME).exclusive.lock();
    const reading = one
      .sharedMutex(NAME)
      .shared.lock({ waitMs: 1_000 })
      .catch((error: unknown) => error);
    await time.advance(1_000);
    expect(await reading).toMatchObject({ code: "LOCK_TIMEOUT", holder: { owner: "other", kind: "exclusive" } });
  });

  test("a writer that died keeps readers out until its lease is over, and no longer", async () => {
    const { time, one, other } = hosts();
    await other.sharedMutex(NAME, { ttlMs: 1_000, autoRenew: false }).exclusive.lock();
    const reading = one.sharedMutex(NAME).shared.lock();
    const watched = watch(reading);
    await time.advance(999);
    expect(watched.settled).toBe(false);
    await time.advance(3);
    expect((await reading).held).toBe(true);
  });

  test.each<readonly [string, LockOptions]>([
    ["data", { data: { job: 2 } }],
    ["holdAtLeastMs", { holdAtLeastMs: 1_000 }],
  ])("a section with %s has a row of its own", async (_, options) => {
    const { one } = hosts();
    const { shared } = one.sharedMutex(NAME);
    await using first = await shared.lock();
    const second = await shared.lock(options);
    await using third = await shared.lock();
    expect(second.uuid).not.toBe(first.uuid);
    expect(third.uuid).toBe(first.uuid);
    expect(one.readers(NAME).find(({ uuid }) => uuid === second.uuid)?.data).toEqual(options.data);
    await second.unlock();
    expect([first.held, third.held]).toEqual([true, true]);
  });

  test("holdAtLeastMs of a section keeps writers out for that long, and lets readers in", async () => {
    const { time, one, other } = hosts();
    const first = await one.sharedMutex(NAME).shared.lock({ holdAtLeastMs: 5_000 });
    await first.unlock();
    await using reader = await other.sharedMutex(NAME).shared.lock();
    expect(reader.held).toBe(true);
    await reader.unlock();
    const writing = other.sharedMutex(NAME).exclusive.lock();
    const watched = watch(writing);
    await time.advance(4_990);
    expect(watched.settled).toBe(false);
    await time.advanceUntil(() => watched.settled);
    expect(one.readers(NAME)).toEqual([]);
  });

  test.each([
    [1_000, 6_000],
    [6_000, 3_000],
  ])(
    "a row of which less than half is left, with a margin of %d ms, is renewed before anybody joins",
    async (safetyMarginMs, ms) => {
      const { time, one } = hosts();
      const options = { ttlMs: 10_000, safetyMarginMs, renewEveryMs: 3_000, autoRenew: false, handOverMs: 10_000 };
      const { shared } = one.sharedMutex(NAME, options);
      await using _first = await shared.lock();
      await time.advance(ms);
      one.told();
      await using second = await shared.lock();
      expect(one.told()).toEqual(["renew reader"]);
      expect(second.remainingMs).toBe(10_000 - safetyMarginMs);
    },
  );

  test("the row is renewed for as long as one of its sections runs", async () => {
    const { time, one, other } = hosts();
    const { shared } = one.sharedMutex(NAME, { ttlMs: 1_000 });
    const [first, second] = [await shared.lock(), await shared.lock()];
    await first.unlock();
    const writing = watch(other.sharedMutex(NAME).exclusive.lock());
    await time.advance(10_000);
    expect([second.held, writing.settled]).toEqual([true, false]);
  });

  test("its loss reaches all sections that share it, and each unlock() rejects", async () => {
    const { time, one } = hosts();
    const { shared } = one.sharedMutex(NAME, { ttlMs: 1_000 });
    const locks = [await shared.lock(), await shared.lock(), await shared.lock()];
    const [, , ended] = locks;
    await ended?.unlock();
    const [row] = one.readers(NAME);
    one.table.plant({ name: NAME, sort: row?.sort ?? "" }, undefined);
    await time.advance(600);
    const running = locks.slice(0, 2);
    expect(running.map(({ signal }) => findLockLost(signal.reason)?.reason)).toEqual(["deleted", "deleted"]);
    expect(ended?.signal.aborted).toBe(false);
    for (const lock of running) await expect(lock.unlock()).rejects.toThrow(LockLostError);
    await ended?.unlock();
  });

  test("a close revokes all sections on one row, and the row goes when the last has ended", async () => {
    const { time, one } = hosts();
    const { shared } = one.sharedMutex(NAME);
    const locks = [await shared.lock(), await shared.lock()] as [Lock, Lock];
    const closing = one.session.close(0).catch((error: AggregateError) => error);
    const closed = watch(closing);
    await turn();
    expect(locks.map(({ signal }) => findLockLost(signal.reason)?.reason)).toEqual(["closed", "closed"]);
    await expect(locks[0].unlock()).rejects.toMatchObject({ reason: "closed" });
    expect(one.readers(NAME)).toHaveLength(1);
    await expect(locks[1].unlock()).rejects.toMatchObject({ reason: "closed" });
    expect(one.readers(NAME)).toEqual([]);
    await time.advanceUntil(() => closed.settled);
    expect(await closing).toMatchObject({ name: "AggregateError" });
  });

  test("one that gives up while its row is on its way leaves none behind", async () => {
    const { time, one } = hosts();
    const arrives = time.clock().sleep(100);
    one.fate = (message) => (message.kind === "write" && message.write.kind === "take" ? arrives : "answered");
    const giveUp = new AbortController();
    const reading = one.sharedMutex(NAME).shared.lock({ signal: giveUp.signal });
    const ended = expect(reading).rejects.toThrow("enough");
    await time.advance(50);
    giveUp.abort(new Error("enough"));
    await ended;
    await time.advance(50);
    await time.advanceUntil(() => one.sent.length > 1 && one.readers(NAME).length === 0);
  });

  test("a row that lapsed while the writer was looked for lets nobody in: it is taken again", async () => {
    const { time, one } = hosts();
    const answered = time.clock().sleep(1_500);
    let looks = 0;
    one.fate = (message) => (message.kind === "read" && ++looks === 1 ? answered : "answered");
    const reading = one.sharedMutex(NAME, { ttlMs: 1_000 }).shared.lock();
    const watched = watch(reading);
    await time.advance(100);
    const [lapsed] = one.readers(NAME);
    await time.advanceUntil(() => watched.settled);
    const lock = await reading;
    expect(lock.uuid).not.toBe(lapsed?.uuid);
    expect(one.readers(NAME)).toMatchObject([{ uuid: lock.uuid }]);
  });
});

test("a reader that is suspended while its row is renewed before its section, past the end of that, takes another", async () => {
  const { time, one } = hosts();
  const [seen, arrives] = [deferred<void>(), deferred<void>()];
  let reads = 0;
  one.hold = (message) => (message.kind === "read" && ++reads === 1 ? seen.promise : undefined);
  one.fate = (message) => (message.kind === "write" && message.write.kind === "renew" ? arrives.promise : "answered");
  const reading = one.sharedMutex(NAME, { ttlMs: 1_000 }).shared.lock();
  const watched = watch(reading);
  await time.advance(600);
  const [lapsed] = one.readers(NAME);
  seen.resolve();
  await turn();
  expect(one.told()).toEqual(["take reader", "consistent read writer", "renew reader"]);
  time.skip(500);
  arrives.resolve();
  await time.advanceUntil(() => watched.settled);
  await using reader = await reading;
  expect(reader.held).toBe(true);
  expect(reader.uuid).not.toBe(lapsed?.uuid);
  expect(one.readers(NAME)).toMatchObject([{ uuid: reader.uuid }]);
});

describe("on DynamoDB", () => {
  const scene = useScene();

  test("a shared cycle is three requests, 2 write units and 1 read unit", async () => {
    const { shared } = scene.host({ clock: systemClock() }).sharedMutex(scene.name);
    const lock = await shared.lock();
    await lock.unlock();
    expect(scene.proxy.requests.map(({ operation }) => operation)).toEqual(["PutItem", "GetItem", "DeleteItem"]);
    expect(scene.proxy.units()).toEqual({ read: 1, write: 2 });
  });

  test("an exclusive cycle is three requests, 2 write units and 1 read unit", async () => {
    const { exclusive } = scene.host({ clock: systemClock() }).sharedMutex(scene.name);
    const lock = await exclusive.lock();
    await lock.unlock();
    expect(scene.proxy.requests.map(({ operation }) => operation)).toEqual(["PutItem", "Query", "DeleteItem"]);
    expect(scene.proxy.units()).toEqual({ read: 1, write: 2 });
  });

  test("eight readers of a process have one row; a writer beside them gets in when the last has gone", async () => {
    const { shared, exclusive } = scene.host().sharedMutex(scene.name, { poll: { minMs: 1, maxMs: 5 } });
    const other = scene.host({ tag: "other" }).sharedMutex(scene.name, { poll: { minMs: 1, maxMs: 5 } });
    const locks = await Promise.all(Array.from({ length: 8 }, () => shared.lock()));
    expect((await other.inspect()).shared).toMatchObject([{ uuid: locks[0]?.uuid, kind: "shared" }]);
    expect(await exclusive.tryLock()).toBeNull();
    const writing = other.exclusive.lock();
    const watched = watch(writing);
    await scene.proxy.until((requests) => requests.filter(({ client }) => client === "other").length > 3);
    expect(watched.settled).toBe(false);
    await Promise.all(locks.map((lock) => lock.unlock()));
    await using writer = await writing;
    expect(writer.held).toBe(true);
    expect(await other.inspect()).toMatchObject({ exclusive: { uuid: writer.uuid, kind: "exclusive" }, shared: [] });
  });
});

test.each(Array.from({ length: 20 }, (_, turns) => turns))(
  "a row whose last section ends %d microtasks after a further call is joined or left, and not both",
  async (turns) => {
    const { one } = hosts();
    const { shared } = one.sharedMutex(NAME);
    const first = await shared.lock();
    const joining = shared.lock();
    for (let count = 0; count < turns; count += 1) await null;
    const unlocking = first.unlock();
    const next = await joining;
    await unlocking;
    expect([next.held, one.readers(NAME).map(({ uuid }) => uuid)]).toEqual([true, [next.uuid]]);
    await next.unlock();
  },
);
