import { describe, expect, test } from "@jest/globals";
import { findLockLost, type Lock, LockConfigError, LockTable, type TransferableLock } from "../../../lib/index.js";
import { writerAt } from "../../../lib/protocol/addresses.js";
import type { Row } from "../../../lib/protocol/row.js";
import { turn, watch } from "../../support/eventually.js";
import { deferred } from "../../support/fault-proxy/deferred.js";
import { ManualTime } from "../../support/manual-time.js";
import { hosts, MemoryHost } from "../../support/memory-host.js";
import type { Message } from "../../support/message.js";

const NAME = "catalogue";
const PUT = { Put: { TableName: "orders", Item: { id: { S: "1" } } } };

const isWrite = (kind: string) => (message: Message) => message.kind === "write" && message.write.kind === kind;

/** A reader's row as a process left it that is gone. */
function plantReader({ table }: MemoryHost, row: Partial<Row>): void {
  const { uuid } = { uuid: "11111111-2222-4333-8444-555555555555", ...row };
  const sort = "reader#11111111-2222-4333-8444-555555555555";
  const item = { format: 1, uuid, owner: "gone", ttlMs: 1_000, acquired: 1, ...row };
  table.plant({ name: NAME, sort }, uuid === undefined ? { ...item, uuid: undefined } : item);
}

describe("a writer", () => {
  test("is in by one empty consistent query after its row is there", async () => {
    const { one } = hosts();
    const lock = await one.sharedMutex(NAME).exclusive.lock();
    expect(one.told()).toEqual(["take writer", "consistent query reader"]);
    await lock.unlock();
    expect(one.told()).toEqual(["vacate writer"]);
  });

  test("keeps other writers out, those of its own process too", async () => {
    const { time, one, other } = hosts();
    const lock = await one.sharedMutex(NAME).exclusive.lock();
    expect(await one.sharedMutex(NAME).exclusive.tryLock()).toBeNull();
    expect(await other.sharedMutex(NAME).exclusive.tryLock()).toBeNull();
    const writing = other.sharedMutex(NAME).exclusive.lock();
    const watched = watch(writing);
    await time.advance(5_000);
    expect(watched.settled).toBe(false);
    await lock.unlock();
    await time.advanceUntil(() => watched.settled);
    expect((await writing).held).toBe(true);
  });

  test("whose renewal gets no answer when the last reader leaves is not called busy, and is in 3 s after its waitMs", async () => {
    const { time, one, other } = hosts();
    const reader = await other.sharedMutex(NAME).shared.lock();
    const writing = one.sharedMutex(NAME).exclusive.lock({ waitMs: 16_000 });
    const watched = watch(writing);
    // Its row is renewed after half a lease, 15 s. Later the table answers all others, and a new row of its own.
    one.fate = (message) => (isWrite("renew")(message) ? "lost" : "answered");
    await time.advance(15_200);
    await reader.unlock();
    await time.advance(500);
    expect(watched.settled).toBe(false);
    await time.advance(3_500);
    expect(watched.settled).toBe(true);
    await (await writing).unlock();
    await time.advance(60_000);
    expect(one.writer(NAME)).toBeUndefined();
  });

  test("waits for the readers, and is in by the first consistent query that shows none", async () => {
    const { time, one, other, third } = hosts();
    const readers = [await one.sharedMutex(NAME).shared.lock(), await third.sharedMutex(NAME).shared.lock()];
    const writing = other.sharedMutex(NAME).exclusive.lock();
    const watched = watch(writing);
    await readers[0]?.unlock();
    await time.advance(3_000);
    expect(watched.settled).toBe(false);
    const told = other.told();
    expect(told[0]).toBe("take writer");
    expect(new Set(told.slice(1))).toEqual(new Set(["consistent query reader"]));
    await readers[1]?.unlock();
    await time.advanceUntil(() => watched.settled);
    await using lock = await writing;
    expect(lock.held).toBe(true);
    expect(new Set(other.told())).toEqual(new Set(["consistent query reader"]));
  });

  test.each<readonly [string, Partial<Row>]>([
    ["its lease is over", { expires: 1 }],
    ["it was unlocked by force, and its lease is over", { expires: 1, uuid: undefined }],
  ])("removes a reader that is dead, exactly as it was seen: %s", async (_, row) => {
    const { one } = hosts();
    plantReader(one, row);
    await using lock = await one.sharedMutex(NAME).exclusive.lock();
    expect(lock.held).toBe(true);
    expect(one.told()).toEqual(["take writer", "consistent query reader", "remove reader", "consistent query reader"]);
    const removal = one.sent.find(isWrite("remove"));
    expect(removal).toMatchObject({
      write: { seenUuid: "uuid" in row ? undefined : expect.any(String), seenExpires: 1 },
    });
    expect(one.readers(NAME)).toEqual([]);
  });

  test("removes a reader whose row it has seen unchanged for its whole lease, whatever the clock shows", async () => {
    const { time, one } = hosts();
    plantReader(one, { expires: time.now + 3_600_000 });
    const writing = one.sharedMutex(NAME, { takeover: "unchanged" }).exclusive.lock();
    const watched = watch(writing);
    await time.advance(999);
    expect(watched.settled).toBe(false);
    await time.advanceUntil(() => watched.settled, { withinMs: 500 });
    expect(one.readers(NAME)).toEqual([]);
  });

  test("leaves a reader alone that was renewed after it was seen, and waits for it", async () => {
    const { time, one } = hosts();
    plantReader(one, { expires: time.now - 1, ttlMs: 60_000 });
    const arrives = deferred<void>();
    one.fate = (message) => (isWrite("remove")(message) ? arrives.promise : "answered");
    const writing = one.sharedMutex(NAME).exclusive.lock();
    const watched = watch(writing);
    await time.advanceUntil(() => one.sent.some(isWrite("remove")));
    plantReader(one, { expires: time.now + 5_000, ttlMs: 60_000 });
    arrives.resolve();
    await time.advance(4_900);
    expect(watched.settled).toBe(false);
    expect(one.readers(NAME)).toHaveLength(1);
    await time.advanceUntil(() => watched.settled);
    expect(one.readers(NAME)).toEqual([]);
  });

  test("trap 39: judges readers by what was known before its query left, not when the reply arrives", async () => {
    const { time, one } = hosts();
    plantReader(one, { expires: time.now + 1_000, ttlMs: 60_000 });
    const arrives = time.clock().sleep(2_000);
    let queries = 0;
    one.fate = (message) => (message.kind === "query" && ++queries === 1 ? arrives : "answered");
    const writing = watch(one.sharedMutex(NAME).exclusive.lock());
    await time.advance(1_999);
    expect(one.sent.some(isWrite("remove"))).toBe(false);
    await time.advance(1);
    // The reply has shown a lease that is over by now, and was not when the question left: it is asked once more.
    expect(one.sent.some(isWrite("remove"))).toBe(false);
    await time.advanceUntil(() => writing.settled);
    expect(one.sent.filter(isWrite("remove"))).toHaveLength(1);
  });

  test.each<readonly [string, (writing: AbortController, host: MemoryHost) => unknown]>([
    ["a timeout", () => undefined],
    ["an abort", (controller) => controller.abort(new Error("enough"))],
    ["a close", (_, host) => void host.session.close(0).catch(() => undefined)],
  ])("that gives up by %s frees its row at once, so that readers get in", async (_, giveUp) => {
    const { time, one, other, third } = hosts();
    await using _reader = await one.sharedMutex(NAME).shared.lock();
    const controller = new AbortController();
    const { signal } = controller;
    const writing = other
      .sharedMutex(NAME)
      .exclusive.lock({ signal, waitMs: 1_000 })
      .catch((error: Error) => error);
    await time.advance(999);
    expect(other.writer(NAME)).toMatchObject({ owner: "other" });
    giveUp(controller, other);
    await time.advance(1);
    expect(await writing).toBeInstanceOf(Error);
    await turn();
    expect(other.writer(NAME)).toBeUndefined();
    await using reader = await third.sharedMutex(NAME).shared.tryLock();
    expect(reader?.held).toBe(true);
  });

  test("has one renewal under way at a time, also as the last reader leaves", async () => {
    const { time, one, other } = hosts();
    const reader = await one.sharedMutex(NAME).shared.lock();
    const answers = deferred<void>();
    const renewals = () => other.sent.filter(isWrite("renew"));
    other.hold = (message) => (renewals().includes(message) ? answers.promise : undefined);
    const writing = other.sharedMutex(NAME, { ttlMs: 10_000 }).exclusive.lock();
    const watched = watch(writing);
    await time.advanceUntil(() => renewals().length === 1);
    await reader.unlock();
    await time.advance(1_000);
    expect([watched.settled, renewals().length]).toEqual([false, 1]);
    answers.resolve();
    await time.advanceUntil(() => watched.settled);
    const lock = await writing;
    expect(lock.expires.getTime()).toBe(other.table.row({ name: NAME, sort: "writer" })?.expires);
    await lock.unlock();
  });

  test("whose row lapses while it waits starts again, and waits for the readers that came in meanwhile", async () => {
    const { time, one, other, third } = hosts();
    const first = await one.sharedMutex(NAME).shared.lock();
    const writing = other.sharedMutex(NAME, { ttlMs: 1_000 }).exclusive.lock();
    const watched = watch(writing);
    await time.advance(100);
    const lapsed = other.writer(NAME)?.uuid;
    other.fate = () => "lost";
    await time.advance(1_500);
    // A reader that looks at the row takes the writer for dead, and rightly so.
    const second = await third.sharedMutex(NAME).shared.lock();
    other.fate = () => "answered";
    await first.unlock();
    await time.advance(5_000);
    expect(watched.settled).toBe(false);
    await second.unlock();
    await time.advanceUntil(() => watched.settled);
    const lock = await writing;
    expect(lock.uuid).not.toBe(lapsed);
    expect(lock.held).toBe(true);
  });

  test("whose row is lost again and again while it waits leaves nothing behind of what is gone", async () => {
    const { time, one, other } = hosts();
    await using _reader = await one.sharedMutex(NAME).shared.lock();
    const controller = new AbortController();
    const { exclusive } = other.sharedMutex(NAME, { ttlMs: 200 });
    const writing = exclusive.lock({ signal: controller.signal }).catch((error: unknown) => error);
    for (let losses = 0; losses < 5; losses += 1) {
      // It has been renewed since.
      await time.advance(300);
      const { uuid = "" } = other.writer(NAME) ?? {};
      await one.sharedMutex(NAME).forceUnlock(uuid, { now: true });
      await time.advanceUntil(() => (other.writer(NAME)?.uuid ?? uuid) !== uuid);
    }
    await time.advance(50);
    expect(other.session.leases.size).toBe(1);
    controller.abort(new Error("enough"));
    await writing;
    await turn();
    expect(other.session.leases.size).toBe(0);
  });

  test("tryLock gives null where readers are, and leaves no row of a writer", async () => {
    const { one, other } = hosts();
    await using reader = await one.sharedMutex(NAME).shared.lock();
    const { exclusive } = other.sharedMutex(NAME);
    expect(await exclusive.tryLock()).toBeNull();
    await turn();
    expect(other.writer(NAME)).toBeUndefined();
    expect(other.told()).toEqual(["take writer", "consistent query reader", "vacate writer"]);
    const result = await exclusive.tryRun(() => "never");
    expect(result).toMatchObject({ ran: false, reason: "held", holder: { kind: "shared", uuid: reader.uuid } });
    await expect(exclusive.lock({ waitMs: 0 })).rejects.toMatchObject({ holder: { owner: "one" } });
  });

  test("a call with waitMs 0 behind one of its process learns of a reader, and does not wait for it to leave", async () => {
    const { time, one, other } = hosts();
    await using _reader = await one.sharedMutex(NAME).shared.lock();
    const { exclusive } = other.sharedMutex(NAME);
    const waiting = exclusive.lock();
    await expect(exclusive.lock({ waitMs: 0 })).rejects.toMatchObject({
      code: "LOCK_TIMEOUT",
      holder: { owner: "one" },
    });
    expect(time.elapsed).toBe(0);
    await other.session.close(0);
    await expect(waiting).rejects.toMatchObject({ code: "LOCK_CLOSED" });
  });

  test("waits for the readers of its own process as well", async () => {
    const { time, one } = hosts();
    const { shared, exclusive } = one.sharedMutex(NAME);
    const reader = await shared.lock();
    const writing = exclusive.lock();
    const watched = watch(writing);
    await time.advance(1_000);
    expect(watched.settled).toBe(false);
    await reader.unlock();
    await time.advanceUntil(() => watched.settled);
    expect((await writing).held).toBe(true);
  });

  test("waitMs names a reader that is in the way", async () => {
    const { time, one, other } = hosts();
    await using reader = await one.sharedMutex(NAME).shared.lock();
    const writing = other
      .sharedMutex(NAME)
      .exclusive.lock({ waitMs: 500 })
      .catch((error: unknown) => error);
    await time.advance(500);
    expect(await writing).toMatchObject({ code: "LOCK_TIMEOUT", holder: { kind: "shared", uuid: reader.uuid } });
  });

  test("hands over to the next of its process without a request: no reader can have come in", async () => {
    const { one } = hosts();
    const { exclusive } = one.sharedMutex(NAME);
    const first = await exclusive.lock();
    const waiting = exclusive.lock();
    one.told();
    await first.unlock();
    const second = await waiting;
    expect(second.uuid).toBe(first.uuid);
    expect(one.told()).toEqual([]);
    await second.unlock();
  });

  test("that is passed on within its process lets waiting readers of others in after handOverMs", async () => {
    const { time, one, other } = hosts();
    const options = { handOverMs: 500, poll: { minMs: 20, maxMs: 100 } };
    const { exclusive } = one.sharedMutex(NAME, options);
    let enough = false;
    const loops = [1, 2].map(async () => {
      while (!enough) await exclusive.run(() => time.clock().sleep(20));
    });
    await time.advance(100);
    const reading = other.sharedMutex(NAME, options).shared.lock();
    await time.settle(reading, { withinMs: 2_000 });
    await (await reading).unlock();
    enough = true;
    await time.settle(Promise.all(loops));
  });

  test("is not starved by readers that come and go on several hosts", async () => {
    const { time, one, other, third } = hosts();
    const options = { handOverMs: 200, poll: { minMs: 20, maxMs: 100 } };
    let enough = false;
    const loops = [one, third].flatMap((host) => {
      const { shared } = host.sharedMutex(NAME, options);
      return [1, 2, 3].map(async (number) => {
        await time.clock().sleep(number * 10);
        while (!enough) await shared.run(() => time.clock().sleep(50));
      });
    });
    await time.advance(500);
    const writing = other.sharedMutex(NAME, options).exclusive.lock();
    await time.settle(writing, { withinMs: 2_000 });
    await (await writing).unlock();
    enough = true;
    await time.settle(Promise.all(loops));
    expect(one.table.rows).toEqual([]);
  });
});

test("holdAtLeastMs of a writer keeps readers and writers out for that long", async () => {
  const { time, one, other } = hosts();
  const writer = await one.sharedMutex(NAME).exclusive.lock({ holdAtLeastMs: 5_000 });
  await writer.unlock();
  const { shared, exclusive } = other.sharedMutex(NAME);
  await time.advance(4_999);
  expect([await shared.tryLock(), await exclusive.tryLock()]).toEqual([null, null]);
  await time.advance(2);
  await using reader = await shared.tryLock();
  expect(reader?.held).toBe(true);
});

describe("a writer that is suspended while its renewal is under way, past the end of its lease", () => {
  /** Its renewal arrives after a reader has taken it for dead, and its answer is there before any timer of its process rings. */
  async function overslept({ time, one, other }: ReturnType<typeof hosts>): Promise<Lock> {
    time.skip(500);
    const reader = await other.sharedMutex(NAME).shared.lock();
    expect(one.sent.some(isWrite("renew"))).toBe(true);
    return reader;
  }

  test("has lost its lock, although the renewal was applied", async () => {
    const scene = hosts();
    const { time, one } = scene;
    const arrives = deferred<void>();
    one.fate = (message) => (isWrite("renew")(message) ? arrives.promise : "answered");
    const writer = await one.sharedMutex(NAME, { ttlMs: 1_000 }).exclusive.lock();
    await time.advance(600);
    await using reader = await overslept(scene);
    arrives.resolve();
    await turn();
    expect([writer.held, reader.held]).toEqual([false, true]);
    expect(findLockLost(writer.signal.reason)?.reason).toBe("expired");
    await expect(writer.unlock()).rejects.toMatchObject({ reason: "expired" });
  });

  test("does not get in beside the reader, although its last look showed none", async () => {
    const scene = hosts();
    const { time, one, third } = scene;
    const first = await third.sharedMutex(NAME).shared.lock();
    const arrives = deferred<void>();
    const seen = deferred<void>();
    const writing = one.sharedMutex(NAME, { ttlMs: 1_000, poll: { minMs: 550, maxMs: 550 } }).exclusive.lock();
    const watched = watch(writing);
    await time.advance(10);
    await first.unlock();
    one.fate = (message) => (isWrite("renew")(message) ? arrives.promise : "answered");
    one.hold = (message) => (message.kind === "query" ? seen.promise : undefined);
    await time.advance(600);
    await using reader = await overslept(scene);
    arrives.resolve();
    seen.resolve();
    await turn();
    expect([watched.settled, reader.held]).toEqual([false, true]);
    one.fate = () => "answered";
    one.hold = () => undefined;
    await time.advance(5_000);
    expect(watched.settled).toBe(false);
    await reader.unlock();
    await time.advanceUntil(() => watched.settled);
  });

  test("does not get in on a row that it renewed before its section began", async () => {
    const scene = hosts();
    const { time, one } = scene;
    const arrives = deferred<void>();
    const seen = deferred<void>();
    one.fate = (message) => (isWrite("renew")(message) ? arrives.promise : "answered");
    one.hold = (message) => (message.kind === "query" ? seen.promise : undefined);
    const writing = watch(one.sharedMutex(NAME, { ttlMs: 1_000, autoRenew: false }).exclusive.lock());
    await time.advance(600);
    seen.resolve();
    await turn();
    await using reader = await overslept(scene);
    arrives.resolve();
    await turn();
    expect([writing.settled, reader.held]).toEqual([false, true]);
    one.hold = () => undefined;
    await reader.unlock();
    await time.advanceUntil(() => writing.settled);
  });
});

describe("either side", () => {
  const sides = ["shared", "exclusive"] as const;

  test("never is a writer beside anybody, over three hosts", async () => {
    const { time, one, other, third } = hosts();
    const options = { handOverMs: 50, poll: { minMs: 5, maxMs: 20 } };
    let [readers, writers, sections] = [0, 0, 0];
    const check = (): void => {
      if (writers > 1 || (writers === 1 && readers > 0))
        throw new Error(`${writers} writers beside ${readers} readers`);
    };
    const work = [one, other, third].flatMap((host) => {
      const { shared, exclusive } = host.sharedMutex(NAME, options);
      const read = async (): Promise<void> => {
        readers += 1;
        check();
        await time.clock().sleep(7);
        readers -= 1;
        sections += 1;
      };
      const write = async (): Promise<void> => {
        writers += 1;
        check();
        await time.clock().sleep(5);
        writers -= 1;
        sections += 1;
      };
      return [1, 2, 3].map(async () => {
        for (let count = 0; count < 5; count += 1) {
          await shared.run(read);
          await exclusive.run(write);
        }
      });
    });
    await time.settle(Promise.all(work));
    await Promise.all(work);
    expect(sections).toBe(90);
    expect(one.table.rows).toEqual([]);
  });

  test.each(sides)("%s: a guard names its row", async (side) => {
    const { one } = hosts();
    await using lock = await one.sharedMutex(NAME)[side].lock();
    const guard = await lock.guard();
    const sort = guard.ConditionCheck?.Key?.sort?.S;
    if (side === "exclusive") expect(sort).toBe("writer");
    else expect(one.readers(NAME)).toMatchObject([{ sort }]);
  });

  test.each(sides)("%s: transactWrite applies writes while it is held, and none after", async (side) => {
    const { one } = hosts();
    const lock = await one.sharedMutex(NAME)[side].lock();
    await lock.transactWrite([PUT]);
    expect(one.table.committed).toHaveLength(1);
    const at = { name: NAME, sort: one.table.rows[0]?.sort ?? "" };
    one.table.plant(at, undefined);
    await expect(lock.transactWrite([PUT])).rejects.toMatchObject({ code: "LOCK_LOST", reason: "deleted" });
    expect(one.table.committed).toHaveLength(1);
  });

  test.each(sides)("%s: handOff is refused, and nothing is sent", async (side) => {
    const { one } = hosts();
    await using lock = await one.sharedMutex(NAME)[side].lock();
    one.told();
    const handOff = (lock as TransferableLock).handOff({ validForMs: 1_000 });
    await expect(handOff).rejects.toThrow(LockConfigError);
    expect(one.told()).toEqual([]);
    expect(lock.held).toBe(true);
  });

  test.each(sides)("%s: forceUnlock ends it, by its uuid", async (side) => {
    const { time, one, other } = hosts();
    const lock = await one.sharedMutex(NAME, { ttlMs: 1_000 })[side].lock();
    const sharedMutex = other.sharedMutex(NAME);
    expect(await sharedMutex.forceUnlock("somebody-else")).toBe(false);
    expect(await sharedMutex.forceUnlock(lock.uuid)).toBe(true);
    expect(await sharedMutex.exclusive.tryLock()).toBeNull();
    await time.advance(1_001);
    expect(findLockLost(lock.signal.reason)?.reason).toBe("forced");
    await using writer = await sharedMutex.exclusive.tryLock();
    expect(writer?.held).toBe(true);
    await expect(lock.unlock()).rejects.toMatchObject({ reason: "forced" });
  });

  test.each(sides)("%s: forceUnlock with now frees it at once", async (side) => {
    const { one, other } = hosts();
    const lock = await one.sharedMutex(NAME)[side].lock();
    const sharedMutex = other.sharedMutex(NAME);
    expect(await sharedMutex.forceUnlock(lock.uuid, { now: true })).toBe(true);
    await using writer = await sharedMutex.exclusive.tryLock();
    expect(writer?.held).toBe(true);
  });

  test("a reader is unlocked by force, although a lost reply looks as if the writer's row had had its uuid", async () => {
    const { time, one, other } = hosts();
    const lock = await one.sharedMutex(NAME).shared.lock();
    const unlocked = { format: 1, owner: "writer", ttlMs: 60_000, acquired: 1, expires: time.now + 60_000 };
    one.table.plant(writerAt(NAME), unlocked);
    let writes = 0;
    other.fate = (message) => (message.kind === "write" && ++writes === 1 ? "lost" : "answered");
    const forcing = other.sharedMutex(NAME).forceUnlock(lock.uuid);
    await time.settle(forcing);
    expect([await forcing, one.readers(NAME).map(({ uuid }) => uuid)]).toEqual([true, [undefined]]);
  });

  test.each(sides)("%s: a close ends the wait for it", async (side) => {
    const { time, one, other } = hosts();
    await using _writer = await one.sharedMutex(NAME).exclusive.lock();
    const waiting = other
      .sharedMutex(NAME)
      [side].lock()
      .catch((error: unknown) => error);
    await time.advance(100);
    await other.session.close(0);
    expect(await waiting).toMatchObject({ code: "LOCK_CLOSED" });
  });

  test.each(sides)("%s: once, everyMs and fencing are options of a mutex", async (side) => {
    const { one } = hosts();
    const lockable = one.sharedMutex(NAME)[side];
    await expect(lockable.tryLock({ once: 1 } as object)).rejects.toMatchObject({ option: "once" });
    await expect(lockable.tryRun(() => 1, { everyMs: 60_000 } as object)).rejects.toMatchObject({ option: "everyMs" });
    const locks = new LockTable({ tableName: "locks", clock: new ManualTime().clock() });
    expect(() => locks.sharedMutex(NAME, { fencing: true } as object)).toThrow(/^fencing: is an option of a mutex/);
    const plain = new LockTable({ tableName: "locks", keys: { sort: null }, clock: new ManualTime().clock() });
    expect(() => plain.sharedMutex(NAME)).toThrow(/sort key/);
  });

  test.each(sides)("%s: data is on its row, and inspect() shows it", async (side) => {
    const { one, other } = hosts();
    await using lock = await one.sharedMutex(NAME)[side].lock({ data: { job: 1 } });
    expect(one.table.rows).toMatchObject([{ uuid: lock.uuid, data: { job: 1 } }]);
    const { exclusive, shared } = await other.sharedMutex(NAME).inspect();
    const info = { kind: side, owner: "one", uuid: lock.uuid, data: { job: 1 } };
    expect([exclusive, shared]).toMatchObject(side === "exclusive" ? [info, []] : [null, [info]]);
  });

  test("inspect() shows a writer that waits beside the readers that it waits for", async () => {
    const { time, one, other } = hosts();
    await using reader = await one.sharedMutex(NAME).shared.lock();
    void other
      .sharedMutex(NAME)
      .exclusive.lock()
      .catch(() => undefined);
    await time.advance(100);
    const state = await one.sharedMutex(NAME).inspect();
    expect(state).toMatchObject({ exclusive: { owner: "other" }, shared: [{ uuid: reader.uuid }], waiters: [] });
  });
});

describe("a fair one", () => {
  const options = { fair: true, ttlMs: 60_000 };

  async function standing(time: ManualTime, { table, session }: MemoryHost): Promise<void> {
    const places = (): number =>
      table.rows.filter(({ sort, owner }) => sort.startsWith("writer-queue#") && owner === session.owner).length;
    await time.advanceUntil(() => places() > 0);
  }

  test("serves both sides in the order in which they asked", async () => {
    const { time, one, other, third } = hosts();
    const fourth = new MemoryHost(time, { owner: "fourth", table: one.table });
    const held = await one.sharedMutex(NAME, options).exclusive.lock();
    const order: Lock[] = [];
    const asks = [
      [other, "shared"],
      [third, "exclusive"],
      [fourth, "shared"],
    ] as const;
    for (const [host, side] of asks) {
      void host
        .sharedMutex(NAME, options)
        [side].lock()
        .then((lock) => order.push(lock));
      await standing(time, host);
    }
    await held.unlock();
    for (let count = 1; count <= 3; count += 1) {
      await time.advanceUntil(() => order.length === count);
      await time.advance(3_000);
      expect(order).toHaveLength(count);
      await order[count - 1]?.unlock();
    }
    expect(order.map(({ owner }) => owner)).toEqual(["other", "third", "fourth"]);
    await time.advance(1_000);
    expect(one.table.rows).toEqual([]);
  });

  test("lets readers in together that stand behind one another", async () => {
    const { time, one, other, third } = hosts();
    const held = await one.sharedMutex(NAME, options).exclusive.lock();
    const readers: Lock[] = [];
    for (const host of [other, third]) {
      void host
        .sharedMutex(NAME, options)
        .shared.lock()
        .then((lock) => readers.push(lock));
      await standing(time, host);
    }
    await held.unlock();
    await time.advanceUntil(() => readers.length === 2);
    expect(readers.map(({ held }) => held)).toEqual([true, true]);
  });

  test("asks once for readers of one process that ask together", async () => {
    const { time, one } = hosts();
    one.fate = () => time.clock().sleep(5);
    const { shared } = one.sharedMutex(NAME, options);
    const waiting = Array.from({ length: 8 }, () => shared.lock());
    const all = watch(Promise.all(waiting));
    await time.advanceUntil(() => all.settled);
    expect(new Set((await Promise.all(waiting)).map(({ uuid }) => uuid)).size).toBe(1);
    const told = one.told();
    expect(told.filter((request) => request === "consistent query writer").length).toBeLessThanOrEqual(2);
    expect(told.filter((request) => !request.includes("query")).length).toBeLessThanOrEqual(4);
  });

  test("lets no reader join its process's row while a writer stands in the queue before it", async () => {
    const { time, one, other } = hosts();
    const { shared } = one.sharedMutex(NAME, options);
    const first = await shared.lock();
    const order: Lock[] = [];
    void other
      .sharedMutex(NAME, options)
      .exclusive.lock()
      .then((lock) => order.push(lock));
    await time.advanceUntil(() => other.writer(NAME) !== undefined);
    await time.advance(600);
    void shared.lock().then((lock) => order.push(lock));
    await time.advance(3_000);
    expect(order).toEqual([]);
    await first.unlock();
    await time.advanceUntil(() => order.length === 1);
    expect(order[0]?.owner).toBe("other");
    await order[0]?.unlock();
    await time.advanceUntil(() => order.length === 2);
  });

  test("that waits for readers keeps the turn of those behind it in its process", async () => {
    const { time, one, other, third } = hosts();
    const reader = await one.sharedMutex(NAME, options).shared.lock();
    const order: Lock[] = [];
    const ask = (host: MemoryHost): void => {
      void host
        .sharedMutex(NAME, options)
        .exclusive.lock()
        .then((lock) => order.push(lock));
    };
    ask(other);
    await time.advanceUntil(() => other.writer(NAME) !== undefined);
    await time.advance(5_000);
    ask(other);
    await time.advance(200);
    ask(third);
    await time.advance(5_000);
    ask(other);
    await time.advance(200);
    await reader.unlock();
    for (let count = 1; count <= 4; count += 1) {
      await time.advanceUntil(() => order.length === count);
      await order[count - 1]?.unlock();
    }
    expect(order.map(({ owner }) => owner)).toEqual(["other", "other", "third", "other"]);
    await time.advance(1_000);
    expect(one.table.rows).toEqual([]);
  });

  test("inspect() shows who waits, in order, and for which side", async () => {
    const { time, one, other, third } = hosts();
    await using _held = await one.sharedMutex(NAME, options).exclusive.lock();
    for (const [host, side] of [
      [other, "exclusive"],
      [third, "shared"],
    ] as const) {
      void host.sharedMutex(NAME, options)[side].lock();
      await standing(time, host);
    }
    const { waiters } = await one.sharedMutex(NAME, options).inspect();
    expect(waiters.map(({ owner, side }) => [owner, side])).toEqual([
      ["other", "exclusive"],
      ["third", "shared"],
    ]);
  });
});
