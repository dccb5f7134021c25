import { describe, expect, test } from "@jest/globals";
import { LockStoreError } from "../../../lib/index.js";
import { READERS, writerAt } from "../../../lib/protocol/addresses.js";
import type { Row } from "../../../lib/protocol/row.js";
import { LONGEST_ATTEMPT_MS } from "../../../lib/session/retry.js";
import { turn, watch } from "../../support/eventually.js";
import { deferred } from "../../support/fault-proxy/deferred.js";
import { hosts, type MemoryHost } from "../../support/memory-host.js";
import type { Message } from "../../support/message.js";

const NAME = "catalogue";
const PUT = { Put: { TableName: "orders", Item: { id: { S: "1" } } } };

/** The row of a writer, as its process left it. */
function plantWriter({ table }: MemoryHost, row: Partial<Row>): void {
  const uuid = "11111111-2222-4333-8444-555555555555";
  table.plant(writerAt(NAME), { format: 1, uuid, owner: "writer", ttlMs: 1_000, acquired: 1, ...row });
}

const isRemoval = (message: Message): boolean => message.kind === "write" && message.write.kind === "remove";

describe("a reader that finds a dead writer", () => {
  test("removes its row exactly as it was seen, and is in", async () => {
    const { one } = hosts();
    plantWriter(one, { expires: 1 });
    await using reader = await one.sharedMutex(NAME).shared.lock();
    expect(reader.held).toBe(true);
    expect(one.told()).toEqual(["take reader", "consistent read writer", "remove writer"]);
    expect(one.sent.find(isRemoval)).toMatchObject({ write: { seenUuid: expect.any(String), seenExpires: 1 } });
    expect(one.writer(NAME)).toBeUndefined();
  });

  test("is not passed by a guard of that writer that arrives late", async () => {
    const { time, one, other } = hosts();
    const writer = await one.sharedMutex(NAME, { ttlMs: 1_000, autoRenew: false }).exclusive.lock();
    await time.advance(10);
    await writer.guard();
    const arrives = deferred<void>();
    one.fate = (message) => (message.kind === "transact" ? arrives.promise : "answered");
    const writing = writer.transactWrite([PUT]).catch((error: unknown) => error);
    await time.advance(1_500);
    await using reader = await other.sharedMutex(NAME).shared.tryLock();
    expect(reader?.held).toBe(true);
    arrives.resolve();
    expect(await writing).toMatchObject({ code: "LOCK_LOST" });
    expect(one.table.committed).toEqual([]);
  });

  test("gives way where the writer has renewed since it was seen", async () => {
    const { time, one } = hosts();
    plantWriter(one, { expires: time.now - 1 });
    const arrives = deferred<void>();
    one.fate = (message) => (isRemoval(message) ? arrives.promise : "answered");
    const trying = one.sharedMutex(NAME).shared.tryLock();
    await time.advanceUntil(() => one.sent.some(isRemoval));
    plantWriter(one, { expires: time.now + 60_000 });
    arrives.resolve();
    expect(await trying).toBeNull();
    await turn();
    expect(one.writer(NAME)).toMatchObject({ owner: "writer" });
    expect(one.readers(NAME)).toEqual([]);
  });

  test("looks again where the reply to its removal was lost", async () => {
    const { time, one } = hosts();
    plantWriter(one, { expires: 1 });
    one.fate = (message) => (isRemoval(message) && one.sent.filter(isRemoval).length === 1 ? "reply lost" : "answered");
    const reading = one.sharedMutex(NAME).shared.lock();
    await time.settle(reading);
    await using reader = await reading;
    expect(reader.held).toBe(true);
    expect(one.told()).toEqual([
      "take reader",
      "consistent read writer",
      "remove writer",
      "remove writer",
      "consistent read writer",
    ]);
  });

  test("gives way to the next writer, who came while the reply to its removal was lost", async () => {
    const { time, one, other } = hosts();
    plantWriter(one, { expires: 1 });
    one.fate = (message) => (isRemoval(message) ? "reply lost" : "answered");
    const trying = one.sharedMutex(NAME).shared.tryLock();
    const watched = watch(trying);
    await time.advanceUntil(() => one.sent.some(isRemoval));
    const writing = watch(other.sharedMutex(NAME).exclusive.lock());
    await turn();
    one.fate = () => "answered";
    await time.advanceUntil(() => watched.settled);
    expect(await trying).toBeNull();
    await time.advanceUntil(() => writing.settled);
    expect(other.writer(NAME)).toMatchObject({ owner: "other" });
  });

  test("rejects where it may not remove the row", async () => {
    const { time, one } = hosts();
    plantWriter(one, { expires: 1 });
    const denied = new LockStoreError("AccessDenied");
    one.fate = (message) => (isRemoval(message) ? Promise.reject(denied) : "answered");
    expect(await time.outcome(one.sharedMutex(NAME).shared.lock())).toBe(denied);
    await turn();
    expect(one.readers(NAME)).toEqual([]);
  });
});

test("a writer behind a dead reader that it may not remove rejects, and leaves no row", async () => {
  const { time, one } = hosts();
  const at = { name: NAME, sort: `${READERS.first}11111111-2222-4333-8444-555555555555` };
  one.table.plant(at, { format: 1, uuid: "gone", owner: "gone", ttlMs: 1_000, acquired: 1, expires: 1 });
  const denied = new LockStoreError("AccessDenied");
  one.fate = (message) => (isRemoval(message) ? Promise.reject(denied) : "answered");
  const writing = one.sharedMutex(NAME).exclusive.lock({ waitMs: 60_000 });
  expect(await time.outcome(writing)).toBe(denied);
  expect(one.sent.filter(isRemoval)).toHaveLength(1);
  await turn();
  expect(one.writer(NAME)).toBeUndefined();
});

test.each<[string, (host: MemoryHost) => Promise<unknown>]>([
  ["reader", (host) => host.sharedMutex(NAME).shared.lock({ waitMs: 0 })],
  ["writer", (host) => host.sharedMutex(NAME).exclusive.lock({ waitMs: 0 })],
])(
  "a %s that does not wait asks once for the removal of a dead row, and ends if that is not answered",
  async (_, lock) => {
    const { time, one } = hosts();
    plantWriter(one, { expires: 1 });
    const reader = { name: NAME, sort: `${READERS.first}11111111-2222-4333-8444-555555555555` };
    one.table.plant(reader, { format: 1, uuid: "gone", owner: "gone", ttlMs: 1_000, acquired: 1, expires: 1 });
    one.fate = (message) => (isRemoval(message) ? "lost" : "answered");
    expect(await time.outcome(lock(one))).toMatchObject({
      code: "LOCK_STORE",
      message: expect.stringContaining("No answer from the table within"),
    });
    expect(one.sent.filter(isRemoval)).toHaveLength(1);
    expect(time.elapsed).toBeLessThanOrEqual(LONGEST_ATTEMPT_MS);
  },
);

describe("a writer behind several dead readers", () => {
  const reader = (number: number) => ({
    name: NAME,
    sort: `${READERS.first}${String(number).padStart(2, "0")}111111-2222-4333-8444-555555555555`,
  });
  const plantReaders = ({ table }: MemoryHost, count: number, expires = 1): void => {
    for (let number = 0; number < count; number += 1) {
      const uuid = `gone-${number}`;
      table.plant(reader(number), { format: 1, uuid, owner: uuid, ttlMs: 10_000, acquired: 1, expires });
    }
  };
  const removes = (number: number) => (message: Message) =>
    message.kind === "write" && message.write.kind === "remove" && message.write.at.sort === reader(number).sort;

  test("removes all of them, each once", async () => {
    const { one } = hosts();
    plantReaders(one, 20);
    await using writer = await one.sharedMutex(NAME).exclusive.lock();
    expect(writer.held).toBe(true);
    expect([one.readers(NAME).length, one.sent.filter(isRemoval).length]).toEqual([0, 20]);
  });

  test("sends again only what has got no answer, and counts that alone", async () => {
    const { time, one } = hosts();
    plantReaders(one, 3);
    one.fate = (message) => (removes(2)(message) ? "lost" : "answered");
    const failed = await time.outcome(one.sharedMutex(NAME).exclusive.tryLock());
    const again = one.sent.filter(removes(2)).length;
    expect(again).toBeGreaterThan(1);
    expect(failed).toMatchObject({ message: expect.stringContaining(`No answer from the table in ${again} attempts`) });
    expect([0, 1].map((number) => one.sent.filter(removes(number)).length)).toEqual([1, 1]);
  });

  test("ends as its time is over where one removal has failed, although others were answered", async () => {
    const { time, one } = hosts();
    plantReaders(one, 2);
    const throttled = new LockStoreError("throttled", { transient: true, throttled: true });
    const waitMs = 1_000;
    one.fate = (message) =>
      !removes(0)(message) ? "answered" : time.elapsed < waitMs ? Promise.reject(throttled) : "lost";
    expect(await time.outcome(one.sharedMutex(NAME).exclusive.lock({ waitMs }))).toBe(throttled);
    expect(time.elapsed).toBe(waitMs);
  });

  test.each(["lost", "throttled"])(
    "is not told that somebody has it where the last one has died, and its removal is %s",
    async (how) => {
      const { time, one } = hosts();
      plantReaders(one, 1, time.now + 500);
      const throttled = new LockStoreError("throttled", { transient: true, throttled: true });
      one.fate = (message) => (!removes(0)(message) ? "answered" : how === "lost" ? "lost" : Promise.reject(throttled));
      const lock = one.sharedMutex(NAME, { ttlMs: 20_000 }).exclusive.lock({ waitMs: 8_000 });
      expect(await time.outcome(lock)).toMatchObject({ code: "LOCK_STORE" });
      expect(time.elapsed).toBeLessThanOrEqual(8_000 + LONGEST_ATTEMPT_MS);
    },
  );

  test("is not told that others were first where removals have failed for long, whenever its time is over", async () => {
    for (let waitMs = 30_500; waitMs < 30_600; waitMs += 10) {
      const { time, one } = hosts();
      plantReaders(one, 1, time.now + 500);
      const throttled = new LockStoreError("throttled", { transient: true, throttled: true });
      one.fate = (message) => (removes(0)(message) ? Promise.reject(throttled) : "answered");
      const failed = one
        .sharedMutex(NAME, { ttlMs: 20_000 })
        .exclusive.lock({ waitMs })
        .catch((error) => error);
      await time.settle(failed, { withinMs: 40_000 });
      expect(await failed).toBe(throttled);
    }
  });

  test.each(["lost", "throttled"])(
    "keeps no call of its process beyond the time of that, where a removal is %s",
    async (how) => {
      const { time, one } = hosts();
      plantReaders(one, 2);
      const throttled = new LockStoreError("throttled", { transient: true, throttled: true });
      one.fate = (message) => (!isRemoval(message) ? "answered" : how === "lost" ? "lost" : Promise.reject(throttled));
      const first = one.sharedMutex(NAME).exclusive.lock();
      await turn();
      const second = await time.outcome(one.sharedMutex(NAME).exclusive.lock({ waitMs: 1_000 }));
      expect(second).toMatchObject({ code: "LOCK_STORE" });
      expect(time.elapsed).toBeLessThanOrEqual(1_000 + LONGEST_ATTEMPT_MS);
      one.fate = () => "answered";
      await time.settle(first);
      await using lock = await first;
      expect(lock.held).toBe(true);
    },
  );

  test.each(["lost", "throttled"])(
    "rejects at once where it may not remove one row, and another removal is %s",
    async (how) => {
      const { time, one } = hosts();
      plantReaders(one, 3);
      const denied = new LockStoreError("AccessDenied");
      const throttled = new LockStoreError("throttled", { transient: true, throttled: true });
      one.fate = (message) => {
        if (removes(0)(message)) return how === "lost" ? "lost" : Promise.reject(throttled);
        return removes(1)(message) ? Promise.reject(denied) : "answered";
      };
      expect(await time.outcome(one.sharedMutex(NAME).exclusive.lock())).toBe(denied);
      expect(time.elapsed).toBe(0);
    },
  );
});
