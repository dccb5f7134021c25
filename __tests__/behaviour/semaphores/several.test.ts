import { describe, expect, test } from "@jest/globals";
import { findLockLost, LockTimeoutError, type Permit } from "../../../lib/index.js";
import { listLocks } from "../../../lib/operations/inspect.js";
import { permitAt } from "../../../lib/protocol/addresses.js";
import { hear } from "../../support/diagnostics.js";
import { watch } from "../../support/eventually.js";
import { deferred } from "../../support/fault-proxy/deferred.js";
import { ManualTime } from "../../support/manual-time.js";
import { hosts, MemoryHost } from "../../support/memory-host.js";

const NAME = "memory";

const only = () => {
  const time = new ManualTime();
  return { time, one: new MemoryHost(time, { owner: "one" }) };
};

/** The permits that are held, by the rows. */
const held = ({ table }: MemoryHost): string[] =>
  table.rows.flatMap(({ sort, uuid }) => (uuid === undefined || !sort.startsWith("semaphore#") ? [] : sort.slice(-1)));

test("several permits are taken by a look and one transaction, renewed in one batch, and released together", async () => {
  const { time, one } = only();
  const semaphore = one.semaphore(NAME, { permits: 4, ttlMs: 1_000 });
  const lock = await semaphore.lock({ permits: 3, data: { job: 7 } });
  expect(lock.permits).toHaveLength(3);
  expect(lock.permits).toEqual([...lock.permits].sort());
  expect(lock.permit).toBe(lock.permits[0]);
  const rows = lock.permits.map((permit) => one.permit(NAME, permit));
  for (const row of rows) expect(row).toMatchObject({ owner: "one", permits: 4, data: { job: 7 } });
  const sorts = lock.permits.map((permit) => `semaphore#000${permit}`);
  expect(one.told().filter((request) => !request.startsWith("consistent read"))).toEqual([
    "consistent query semaphore#0000",
    `take ${sorts.join(", ")}`,
  ]);
  // Batches grow with each answer, from one.
  await time.advance(3_000);
  const batches = one.sent.flatMap((message) => (message.kind === "renewAll" ? [message.renewals] : []));
  expect(batches.at(-1)?.map(({ at }) => at.sort)).toEqual(sorts);
  expect(lock.held).toBe(true);
  one.told();
  await lock.unlock();
  expect([...one.told()].sort()).toEqual(sorts.map((sort) => `vacate ${sort}`));
  expect(one.table.rows).toEqual([]);
});

test("permits: 1 is what a call without it does, request by request", async () => {
  const [plain, asked] = await Promise.all(
    [undefined, { permits: 1 }].map(async (options) => {
      const { time, one } = only();
      const semaphore = one.semaphore(NAME, { permits: 3, ttlMs: 1_000 });
      const lock = await semaphore.lock(options);
      expect(lock.permits).toEqual([lock.permit]);
      await time.advance(2_000);
      await lock.unlock();
      await semaphore.tryRun(() => undefined, options);
      return one.told();
    }),
  );
  expect(asked).toEqual(plain);
});

test("never more than the permits are held in all, by heavy and light sections of several hosts, and none is left", async () => {
  const { time, one, other, third } = hosts();
  let [now, most, sections] = [0, 0, 0];
  const work = [one, other, third].flatMap((host) => {
    const semaphore = host.semaphore(NAME, { permits: 4, handOverMs: 50, poll: { minMs: 10, maxMs: 50 } });
    return [1, 2, 3].map(async (permits) => {
      for (let count = 0; count < 4; count += 1) {
        await semaphore.run(
          async (lock) => {
            expect(lock.permits).toHaveLength(permits);
            now += permits;
            most = Math.max(most, now);
            await time.clock().sleep(10);
            now -= permits;
            sections += 1;
          },
          { permits },
        );
      }
    });
  });
  await time.advanceUntil(() => sections === 36);
  await Promise.all(work);
  expect(most).toBeLessThanOrEqual(4);
  expect(most).toBeGreaterThan(1);
  expect(one.table.rows).toEqual([]);
});

test("all or none: a try that finds too few free takes none, and sends no write", async () => {
  const { one, other } = hosts();
  await using _held = await one.semaphore(NAME, { permits: 3 }).lock({ permits: 2 });
  const semaphore = other.semaphore(NAME, { permits: 3 });
  expect(await semaphore.tryLock({ permits: 2 })).toBeNull();
  expect(await semaphore.tryRun(() => undefined, { permits: 3 })).toMatchObject({ ran: false, reason: "held" });
  expect(other.sent.filter(({ kind }) => kind === "write" || kind === "writeAll")).toEqual([]);
  await using light = await semaphore.tryLock();
  expect(light?.held).toBe(true);
});

test("who needs several waits until so many are free, and its error names a holder", async () => {
  const { time, one, other } = hosts();
  const light = one.semaphore(NAME, { permits: 3, ttlMs: 60_000 });
  const [first, second] = [await light.lock(), await light.lock()];
  const heavy = other.semaphore(NAME, { permits: 3, ttlMs: 60_000 });
  const late = heavy.lock({ permits: 3, waitMs: 1_000 }).catch((error: unknown) => error);
  const waiting = watch(heavy.lock({ permits: 3 }));
  await time.advance(1_000);
  expect(await late).toBeInstanceOf(LockTimeoutError);
  expect(await late).toMatchObject({ lockName: NAME, holder: { owner: "one", kind: "semaphore" } });
  await first.unlock();
  await time.advance(2_000);
  expect(waiting.settled).toBe(false);
  await second.unlock();
  await time.advanceUntil(() => waiting.settled);
  expect(held(one)).toEqual(["0", "1", "2"]);
});

test("a lease passes without a request, and only between those who ask for as many", async () => {
  const { time, one } = only();
  const semaphore = one.semaphore(NAME, { permits: 4, ttlMs: 60_000 });
  const lock = await semaphore.lock({ permits: 3 });
  const got: Permit[] = [];
  const ask = (permits: number) => void semaphore.lock({ permits }).then((permit) => got.push(permit));
  ask(2);
  ask(3);
  await time.advance(10);
  expect(got).toEqual([]);
  one.told();
  await lock.unlock();
  await time.advance(1);
  expect(got.map(({ permits, uuid }) => ({ permits, uuid }))).toEqual([{ permits: lock.permits, uuid: lock.uuid }]);
  expect(one.told().filter((request) => !request.startsWith("query"))).toEqual([]);
  await got[0]?.unlock();
  await time.advanceUntil(() => got.length === 2);
  expect(got[1]?.permits).toHaveLength(2);
});

test.each(["deleted", "stolen", "forced"] as const)(
  "losing one is losing all (%s), and the others are given back",
  async (reason) => {
    const { time, one } = only();
    const semaphore = one.semaphore(NAME, { permits: 3, ttlMs: 1_000 });
    const lock = await semaphore.lock({ permits: 3 });
    const at = permitAt(NAME, 1);
    const row = { format: 1, ...one.table.item(at) };
    const uuid = reason === "forced" ? undefined : "somebody-else";
    one.table.plant(at, reason === "deleted" ? undefined : { ...row, uuid });
    await time.advance(600);
    expect(findLockLost(lock.signal.reason)?.reason).toBe(reason);
    expect(lock.held).toBe(false);
    // Nobody gets in beside the section before its leases end.
    expect(held(one)).toEqual(expect.arrayContaining(["0", "2"]));
    await expect(lock.unlock()).rejects.toMatchObject({ code: "LOCK_LOST", reason });
    expect(held(one)).toEqual(reason === "stolen" ? ["1"] : []);
  },
);

describe("permits that were taken together are one acquisition", () => {
  /** One caller has three permits, and another, of the same process and the same millisecond, has one. */
  const taken = async (options = {}) => {
    const { time, one } = only();
    const two = new MemoryHost(time, { owner: "two", table: one.table });
    const semaphore = one.semaphore(NAME, { permits: 5, ...options });
    const [several, single] = await Promise.all([semaphore.lock({ permits: 3 }), semaphore.lock()]);
    return { time, one, two: two.semaphore(NAME, { permits: 5, ...options }), semaphore, several, single };
  };

  test("inspect() shows one holder, with all of its permits", async () => {
    const { two, several, single } = await taken();
    const { holders } = await two.inspect();
    const expected = [several, single].map(({ uuid, permit, permits }) => ({ uuid, permit, permits, owner: "one" }));
    expect(holders).toMatchObject(expected.sort((a, b) => a.permit - b.permit));
  });

  test("also when one of its rows is gone", async () => {
    const { one, two, several } = await taken();
    one.table.plant(permitAt(NAME, several.permit), undefined);
    const { holders } = await two.inspect();
    expect(holders.find(({ uuid }) => uuid === several.uuid)?.permits).toEqual(several.permits.slice(1));
  });

  test("also when they have got another uuid, as their lease was over before it could be handed out", async () => {
    const { time, one } = only();
    const semaphore = one.semaphore(NAME, { permits: 5, ttlMs: 1_000 });
    const answer = deferred<void>();
    one.hold = (message) => (message.kind === "writeAll" ? answer.promise : undefined);
    const asked = semaphore.lock({ permits: 3 });
    await time.advance(1);
    const before = one.table.rows.map((row) => row.uuid);
    expect(before).toHaveLength(3);
    time.skip(1_500);
    answer.resolve();
    await time.settle(asked);
    const { uuid, permits } = await asked;
    const { holders } = await semaphore.inspect();
    expect(holders).toMatchObject([{ uuid, permits }]);
    expect(one.table.rows.every((row) => row.uuid?.startsWith(uuid))).toBe(true);
    expect(before).not.toContain(uuid);
  });

  test("list() yields it once", async () => {
    const { one, several, single } = await taken();
    const listed: (string | undefined)[] = [];
    for await (const { uuid } of listLocks(one.session, {})) listed.push(uuid);
    expect(listed.sort()).toEqual([several.uuid, single.uuid].sort());
  });

  test("forceUnlock() ends it with all of its permits, and nobody else's; it is told once", async () => {
    const { one, two, several, single } = await taken();
    const forced = hear("dynamutex:forced");
    expect(await two.forceUnlock(several.uuid, { now: true })).toBe(true);
    expect(held(one)).toEqual([String(single.permit)]);
    expect(forced).toEqual([{ name: NAME, uuid: several.uuid, now: true }]);
    expect(await two.forceUnlock(several.uuid)).toBe(false);
    await expect(several.unlock()).rejects.toMatchObject({ code: "LOCK_LOST", reason: "forced" });
    await single.unlock();
  });

  test("who is told whom it waited for is told the same", async () => {
    const { time, two, several, single } = await taken();
    const waiting = two.lock({ permits: 5, waitMs: 100 }).catch((error: unknown) => error);
    const error = await time.outcome(waiting);
    expect([several.uuid, single.uuid]).toContain((error as LockTimeoutError).holder?.uuid);
  });

  test("a release of them that fails is told once", async () => {
    const { time, one, several } = await taken({ releaseWithinMs: 500 });
    const failed = hear("dynamutex:release-failed");
    one.fate = () => "lost";
    await time.settle(several.unlock());
    expect(failed).toMatchObject([{ name: NAME, uuid: several.uuid }]);
  });
});

test("the lease of all ends with the first of them that is not renewed", async () => {
  const { time, one } = only();
  const lock = await one.semaphore(NAME, { permits: 2, ttlMs: 1_000 }).lock({ permits: 2 });
  const isOfLast = (sort: string): boolean => sort === "semaphore#0001";
  one.fate = (message) =>
    (message.kind === "write" && isOfLast(message.write.at.sort)) || message.kind === "renewAll" ? "lost" : "answered";
  await time.advance(1_000);
  expect(findLockLost(lock.signal.reason)?.reason).toBe("expired");
  one.fate = () => "answered";
  await expect(lock.unlock()).rejects.toMatchObject({ reason: "expired" });
  await time.advanceUntil(() => held(one).length === 0);
});

test("a transaction whose reply was lost is taken for what it is: granted", async () => {
  const { time, one } = only();
  let isFirst = true;
  one.fate = ({ kind }) => {
    if (kind !== "writeAll" || !isFirst) return "answered";
    isFirst = false;
    return "reply lost";
  };
  const asked = one.semaphore(NAME, { permits: 3 }).lock({ permits: 2 });
  const watched = watch(asked);
  await time.advanceUntil(() => watched.settled);
  const lock = await asked;
  expect(held(one).map(Number)).toEqual(lock.permits);
  await lock.unlock();
  expect(held(one)).toEqual([]);
});

test("permits that arrive after their caller has gone are given back, all of them", async () => {
  const { time, one } = only();
  one.fate = ({ kind }) => (kind === "writeAll" ? "reply lost" : "answered");
  const controller = new AbortController();
  const waiting = one.semaphore(NAME, { permits: 3 }).lock({ permits: 3, signal: controller.signal });
  waiting.catch(() => undefined);
  await time.advanceUntil(() => held(one).length === 3);
  controller.abort(new Error("enough"));
  await expect(waiting).rejects.toThrow("enough");
  await time.advanceUntil(() => held(one).length === 0);
});

test("holdAtLeastMs keeps all of them", async () => {
  const { time, one, other } = hosts();
  await one.semaphore(NAME, { permits: 2 }).run(() => undefined, { permits: 2, holdAtLeastMs: 5_000 });
  expect(one.table.rows.map(({ uuid }) => uuid)).toEqual([undefined, undefined]);
  expect(await other.semaphore(NAME, { permits: 2 }).tryLock()).toBeNull();
  await time.advance(6_000);
  expect(await other.semaphore(NAME, { permits: 2 }).tryLock()).not.toBeNull();
});

test("several permits cannot be handed off: the call sends nothing, and the lock is still held", async () => {
  const { one } = only();
  await using lock = await one.semaphore(NAME, { permits: 3 }).lock({ permits: 2 });
  one.told();
  await expect(lock.handOff({ validForMs: 60_000 })).rejects.toMatchObject({
    code: "LOCK_CONFIG",
    option: "handOff()",
  });
  await expect(lock.handOff({ validForMs: 60_000 })).rejects.toThrow(/several permits: take one permit/);
  expect([one.told(), lock.held]).toEqual([[], true]);
});

test("a guard is of one permit", async () => {
  const { one } = only();
  await using lock = await one.semaphore(NAME, { permits: 2 }).lock({ permits: 2 });
  await expect(lock.guard()).rejects.toMatchObject({ code: "LOCK_CONFIG", option: "guard()" });
  await expect(lock.transactWrite([])).rejects.toMatchObject({ code: "LOCK_CONFIG" });
});

test.each([
  [{ permits: 0 }, "permits"],
  [{ permits: 101 }, "permits"],
  [{ permits: 1.5 }, "permits"],
  [{ permits: "2" as unknown as number }, "permits"],
  [{ permits: 4 }, "permits"],
])("%j is refused, of three", async (options, option) => {
  const { one } = only();
  const semaphore = one.semaphore(NAME, { permits: 3 });
  for (const call of [
    () => semaphore.lock(options),
    () => semaphore.tryLock(options),
    () => semaphore.run(() => undefined, options),
    () => semaphore.tryRun(() => undefined, options),
  ]) {
    await expect(call()).rejects.toMatchObject({ code: "LOCK_CONFIG", option });
  }
  expect(one.sent).toEqual([]);
});

test("a table of several Regions has no transactions: several permits are refused with the remedy, and one is as ever", async () => {
  const { one } = only();
  Object.assign(one.session.clock, { regionSkewMs: 1_000 });
  const semaphore = one.semaphore(NAME, { permits: 3 });
  await expect(semaphore.lock({ permits: 2 })).rejects.toMatchObject({
    code: "LOCK_CONFIG",
    option: "permits",
    message: expect.stringMatching(/no transactions.*docs\/guides\/regions\.md/),
  });
  expect(one.sent).toEqual([]);
  await using lock = await semaphore.lock({ permits: 1 });
  expect(lock.permits).toHaveLength(1);
});

test("a mutex has no permits", async () => {
  const { one } = only();
  await expect(one.mutex(NAME).lock({ permits: 2 } as object)).rejects.toMatchObject({
    code: "LOCK_CONFIG",
    option: "permits",
    message: expect.stringContaining("is an option of a semaphore"),
  });
});
