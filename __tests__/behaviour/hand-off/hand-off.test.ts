import { once } from "node:events";
import { Worker } from "node:worker_threads";
import { describe, expect, test } from "@jest/globals";
import {
  findLockLost,
  LockConfigError,
  LockLostError,
  LockStoreError,
  type MutexOptions,
  type Permit,
  systemClock,
  type TransferableLock,
} from "../../../lib/index.js";
import { compiled } from "../../support/compiled.js";
import { hear } from "../../support/diagnostics.js";
import { turn, watch } from "../../support/eventually.js";
import { deferred } from "../../support/fault-proxy/deferred.js";
import { ManualTime } from "../../support/manual-time.js";
import { hosts, isRelease, MemoryHost } from "../../support/memory-host.js";
import type { Message } from "../../support/message.js";
import { answerOf } from "../../support/message-store.js";
import { useScene } from "../../support/scene.js";

const NAME = "order-42";
const MINUTE = 60_000;

/** The hosts, the first of which has handed a lock off. */
async function handedOff() {
  const all = hosts();
  return { ...all, token: await (await all.one.mutex(NAME).lock()).handOff({ validForMs: MINUTE }) };
}

const isTransfer = (message: Message): boolean => message.kind === "write" && message.write.kind === "transfer";
const isVacate = (message: Message): boolean => message.kind === "write" && message.write.kind === "vacate";

describe("a lock that is handed off", () => {
  test("goes on in the same process", async () => {
    const { one } = hosts();
    const mutex = one.mutex(NAME);
    const lock = await mutex.lock();
    const token = await lock.handOff({ validForMs: MINUTE });
    expect(token).toMatch(/^[A-Za-z0-9_.-]+$/);
    await using resumed = await mutex.resume(token);
    expect(resumed.held).toBe(true);
    expect(resumed.uuid).not.toBe(lock.uuid);
    expect(resumed.name).toBe(NAME);
  });

  test("goes on in another process, and nobody gets it in between", async () => {
    const { time, one, other, third } = hosts();
    const lock = await one.mutex(NAME).lock();
    const token = await lock.handOff({ validForMs: MINUTE });
    await time.advance(50_000);
    expect(await third.mutex(NAME).tryLock()).toBeNull();
    const resumed = await other.mutex(NAME).resume(token);
    expect(await third.mutex(NAME).tryLock()).toBeNull();
    expect(other.row(NAME)).toMatchObject({ owner: "other", uuid: resumed.uuid, ttlMs: 30_000 });
    await resumed.unlock();
    expect(other.row(NAME)).toBeUndefined();
  });

  test("is over for its section at once: held is false, and unlock() does nothing", async () => {
    const { one } = hosts();
    const lock = await one.mutex(NAME).lock();
    const handing = lock.handOff({ validForMs: MINUTE });
    expect([lock.held, lock.remainingMs]).toEqual([false, 0]);
    await handing;
    one.told();
    await lock.unlock();
    await lock[Symbol.asyncDispose]();
    expect(one.told()).toEqual([]);
    expect(lock.signal.aborted).toBe(false);
    expect(one.row(NAME)).toBeDefined();
    await expect(lock.extend()).rejects.toMatchObject({ code: "LOCK_RELEASED" });
    await expect(lock.handOff({ validForMs: MINUTE })).rejects.toMatchObject({ code: "LOCK_RELEASED" });
  });

  test("is renewed first where it never was, and else handed off by one write; resumed by a look and one", async () => {
    const { time, one, other, token } = await handedOff();
    expect(one.told()).toEqual(["take lock", "renew lock", "transfer lock"]);
    const resumed = await other.mutex(NAME).resume(token);
    expect(other.told()).toEqual(["consistent read lock", "transfer lock"]);
    await time.advance(15_000);
    expect(other.told()).toEqual(["renew lock"]);
    await resumed.handOff({ validForMs: MINUTE });
    expect(other.told()).toEqual(["transfer lock"]);
  });

  test("is not renewed in between, and renewed once it goes on", async () => {
    const { time, one, other } = hosts();
    const token = await (await one.mutex(NAME, { ttlMs: 1_000 }).lock()).handOff({ validForMs: MINUTE });
    one.told();
    await time.advance(10_000);
    expect(one.told()).toEqual([]);
    const resumed = await other.mutex(NAME, { ttlMs: 1_000 }).resume(token);
    await time.advance(10_000);
    expect(resumed.held).toBe(true);
  });

  test("is free when validForMs is over, and its token is of no use any more", async () => {
    const { time, one, other } = hosts();
    const mutex = other.mutex(NAME);
    const token = await (await one.mutex(NAME, { ttlMs: MINUTE }).lock()).handOff({ validForMs: 1_000 });
    await time.advance(1_000);
    expect(await mutex.tryLock()).toBeNull();
    await time.advance(1);
    await expect(mutex.resume(token)).rejects.toMatchObject({ code: "LOCK_LOST", reason: "expired" });
    await using lock = await mutex.tryLock();
    expect(lock?.held).toBe(true);
    await expect(one.mutex(NAME).resume(token)).rejects.toBeInstanceOf(LockLostError);
    expect(lock?.held).toBe(true);
  });

  test("goes to one of two that resume it, and the other has lost it", async () => {
    const { other, third, token } = await handedOff();
    const resuming = [other, third].map((host) => host.mutex(NAME).resume(token));
    const [first, second] = await Promise.allSettled(resuming);
    expect(first).toMatchObject({ status: "fulfilled", value: { held: true, owner: "other" } });
    expect(second).toMatchObject({ status: "rejected", reason: { code: "LOCK_LOST", reason: "stolen" } });
  });

  test("is not had a second time by the process that resumed it, nor after it was released", async () => {
    const { one, other, token } = await handedOff();
    const resumed = await other.mutex(NAME).resume(token);
    await expect(other.mutex(NAME).resume(token)).rejects.toMatchObject({ code: "LOCK_LOST", reason: "stolen" });
    expect(resumed.held).toBe(true);
    await resumed.unlock();
    await expect(other.mutex(NAME).resume(token)).rejects.toMatchObject({ code: "LOCK_LOST", reason: "deleted" });
    expect(one.row(NAME)).toBeUndefined();
  });

  test("may be handed off again by whoever goes on with it", async () => {
    const { one, other, third } = hosts();
    let token = await (await one.mutex(NAME).lock()).handOff({ validForMs: MINUTE });
    for (const host of [other, third, one]) {
      const resumed = await host.mutex(NAME).resume(token);
      expect(resumed.owner).toBe(host.session.owner);
      token = await resumed.handOff({ validForMs: MINUTE });
    }
    await (await other.mutex(NAME).resume(token)).unlock();
    expect(one.table.rows).toEqual([]);
  });

  test("is waited for by the callers behind it in its process", async () => {
    const { time, one, other } = hosts();
    const mutex = one.mutex(NAME);
    const lock = await mutex.lock();
    const waiting = mutex.lock();
    const watched = watch(waiting);
    const token = await lock.handOff({ validForMs: MINUTE });
    await time.advance(10_000);
    expect(watched.settled).toBe(false);
    const resumed = await other.mutex(NAME).resume(token);
    await time.advance(40_000);
    expect([watched.settled, resumed.held]).toEqual([false, true]);
    await resumed.unlock();
    await time.advanceUntil(() => watched.settled);
    expect((await waiting).held).toBe(true);
  });

  test("is waited for by those who watch by the stopwatch for as long as it may be resumed", async () => {
    const { time, one, other } = hosts();
    const lock = await one.mutex(NAME, { ttlMs: 1_000 }).lock();
    const waiting = other.mutex(NAME, { takeover: "unchanged" }).lock();
    const watched = watch(waiting);
    await time.advance(2_000);
    await lock.handOff({ validForMs: 20_000 });
    await time.advance(20_000);
    expect(watched.settled).toBe(false);
    await time.advanceUntil(() => watched.settled, { withinMs: 1_000 });
    expect((await waiting).held).toBe(true);
  });

  test("keeps its data, and since when it is held", async () => {
    const { time, one, other } = hosts();
    const lock = await one.mutex(NAME).lock({ data: { step: 1 } });
    await lock.replaceData({ step: 2 });
    const token = await lock.handOff({ validForMs: MINUTE });
    await time.advance(5_000);
    await using resumed = await other.mutex(NAME).resume(token);
    expect(resumed.data).toEqual({ step: 2 });
    expect(resumed.acquired).toEqual(lock.acquired);
    expect(other.row(NAME)?.data).toEqual({ step: 2 });
    await resumed.replaceData({ step: 3 });
    expect(other.row(NAME)?.data).toEqual({ step: 3 });
  });

  test("whose reply was lost, and whose time was over before the next copy, does not tell of a loss", async () => {
    const { time, one, other } = hosts();
    const lock = await one.mutex(NAME).lock();
    await lock.extend();
    let copies = 0;
    one.fate = (message) =>
      message.kind === "write" && message.write.kind === "transfer" && ++copies === 1 ? "reply lost" : "answered";
    const handing = lock.handOff({ validForMs: 100 }).catch((error: unknown) => error);
    const handed = watch(handing);
    await time.advance(200);
    await using theirs = await other.mutex(NAME).tryLock();
    expect(theirs?.held).toBe(true);
    await time.advanceUntil(() => handed.settled);
    expect(copies).toBe(2);
    expect(await handing).toMatchObject({ code: "LOCK_STORE" });
    await lock.unlock();
    expect(theirs?.held).toBe(true);
  });

  test("has no tick where its section was for none, although the section before was, which passed its lease on", async () => {
    const { one, other } = hosts();
    const first = await one.mutex(NAME).tryLock({ once: 7 });
    const waiting = one.mutex(NAME).lock();
    await first?.unlock();
    const next = await waiting;
    expect([next.uuid, next.tick]).toEqual([first?.uuid, undefined]);
    await using resumed = await other.mutex(NAME).resume(await next.handOff({ validForMs: 60_000 }));
    expect(resumed.tick).toBeUndefined();
  });

  test("keeps its tick, which its row remembers after the release", async () => {
    const { one, other } = hosts();
    const lock = (await one.mutex(NAME).tryLock({ once: 7 })) as TransferableLock;
    const resumed = await other.mutex(NAME).resume(await lock.handOff({ validForMs: MINUTE }));
    expect(resumed.tick).toBe(7);
    await resumed.unlock();
    expect(other.row(NAME)).toMatchObject({ tick: 7, uuid: undefined, expires: 0 });
    expect(await one.mutex(NAME).tryRun(() => 1, { once: 7 })).toMatchObject({ ran: false, reason: "done" });
  });

  test("keeps its holdAtLeastMs, counted from when it was taken", async () => {
    const { time, one, other, third } = hosts();
    const lock = await one.mutex(NAME).lock({ holdAtLeastMs: 20_000 });
    await time.advance(5_000);
    const token = await lock.handOff({ validForMs: MINUTE });
    await time.advance(5_000);
    await (await other.mutex(NAME).resume(token)).unlock();
    await time.advance(9_999);
    expect(await third.mutex(NAME).tryLock()).toBeNull();
    await time.advance(2);
    await using next = await third.mutex(NAME).tryLock();
    expect(next?.held).toBe(true);
  });

  test("stays taken until the end of a hold that is longer than validForMs, also where nobody goes on with it", async () => {
    const { time, one, other } = hosts();
    const lock = await one.mutex(NAME).lock({ holdAtLeastMs: 60_000 });
    await time.advance(10_000);
    const token = await lock.handOff({ validForMs: 1_000 });
    await time.advance(50_000);
    expect(await other.mutex(NAME).tryLock()).toBeNull();
    await time.advance(2);
    await using next = await other.mutex(NAME).tryLock();
    expect(next?.held).toBe(true);
    await expect(other.mutex(NAME).resume(token)).rejects.toBeInstanceOf(LockLostError);
  });

  test.each(["is aborted, and then answered", "is aborted, and never answered"])(
    "keeps its holdAtLeastMs where a resume() %s",
    async (how) => {
      const { time, one, other, third } = hosts();
      const lock = await one.mutex(NAME).lock({ holdAtLeastMs: 60_000 });
      const token = await lock.handOff({ validForMs: 5_000 });
      const reply = deferred<void>();
      let isReleased = false;
      other.fate = (message) => {
        if (isVacate(message) && !isReleased) return "lost";
        return isTransfer(message) && how.endsWith("never answered") ? "reply lost" : "answered";
      };
      other.hold = (message) => (isTransfer(message) ? reply.promise : undefined);
      const giveUp = new AbortController();
      const resumed = watch(other.mutex(NAME).resume(token, { signal: giveUp.signal }));
      await time.advanceUntil(() => other.row(NAME)?.owner === "other");
      giveUp.abort(new Error("the caller gave up"));
      reply.resolve();
      await time.advance(5_000);
      // Nor does a caller of its own process get it.
      const own = other.mutex(NAME).tryLock();
      await time.advance(1_000);
      expect(await own).toBeNull();
      isReleased = true;
      await time.advance(24_000);
      expect(resumed.settled).toBe(true);
      expect(other.row(NAME)?.uuid).toBeUndefined();
      expect(await third.mutex(NAME).tryLock()).toBeNull();
      await time.advance(31_000);
      expect(await third.mutex(NAME).tryLock()).not.toBeNull();
    },
  );

  test("that ends while it is handed off tells of it by the promise that the caller has, and by no other", async () => {
    // A rejection that nobody handles ends a thread as it ends a process.
    const thread = new Worker(compiled(new URL("./hosts/at-deadline.js", import.meta.url)));
    expect(await once(thread, "exit")).toEqual([0]);
  });

  test("may be ended by force in between, by the uuid that its row shows", async () => {
    const { other, token } = await handedOff();
    const mutex = other.mutex(NAME);
    const info = await mutex.inspect();
    expect(info).toMatchObject({ owner: "one", ttlMs: MINUTE });
    expect(await mutex.forceUnlock(info?.uuid ?? "", { now: true })).toBe(true);
    await expect(mutex.resume(token)).rejects.toBeInstanceOf(LockLostError);
    await using lock = await mutex.tryLock();
    expect(lock?.held).toBe(true);
  });

  test("is guarded by whoever goes on with it, and not by who had it", async () => {
    const { one, other } = hosts();
    const lock = await one.mutex(NAME).lock();
    const guard = await lock.guard();
    const resumed = await other.mutex(NAME).resume(await lock.handOff({ validForMs: MINUTE }));
    const writes = { items: [], token: "late" };
    const { uuid, after } = { uuid: lock.uuid, after: 0 };
    const at = { name: NAME, sort: "lock" };
    const late = one.table.transact({ ...writes, guard: { kind: "check", at, uuid, after, fence: undefined } });
    expect(late.kind).toBe("unguarded");
    expect(guard.ConditionCheck).toBeDefined();
    await resumed.transactWrite([{ Put: { TableName: "orders", Item: { id: { S: "1" } } } }]);
    expect(one.table.committed).toHaveLength(1);
  });

  test("cannot be handed off once it was lost", async () => {
    const { time, one } = hosts();
    const lock = await one.mutex(NAME, { ttlMs: 1_000 }).lock();
    one.table.plant({ name: NAME, sort: "lock" }, undefined);
    await time.advance(600);
    await expect(lock.handOff({ validForMs: MINUTE })).rejects.toBe(lock.signal.reason);
    expect(findLockLost(lock.signal.reason)?.reason).toBe("deleted");
  });

  test.each<readonly [string, MutexOptions, boolean]>([
    ["deleted", { ttlMs: 1_000 }, true],
    ["max-hold", { ttlMs: 10_000, maxHoldMs: 2_000 }, false],
    ["expired", { ttlMs: 1_000, autoRenew: false }, false],
  ])(
    "trap 46: that was lost ends its section all the same, tells of it, and leaves no row: %s",
    async (reason, options, isGone) => {
      const released = hear("dynamutex:released");
      const { time, one, other } = hosts();
      const lock = await one.mutex(NAME, options).lock();
      if (isGone) one.table.plant({ name: NAME, sort: "lock" }, undefined);
      await time.advanceUntil(() => lock.signal.aborted);
      expect([findLockLost(lock.signal.reason)?.reason, released.length]).toEqual([reason, 0]);
      await expect(lock.handOff({ validForMs: MINUTE })).rejects.toBe(lock.signal.reason);
      expect(released).toMatchObject([{ name: NAME, uuid: lock.uuid }]);
      expect(one.row(NAME)).toBeUndefined();
      expect(await other.mutex(NAME).tryLock()).not.toBeNull();
      await expect(lock.unlock()).rejects.toBe(lock.signal.reason);
      expect(released).toHaveLength(1);
    },
  );

  test("cannot be handed off where that finds the loss, and signal tells of it", async () => {
    const { one } = hosts();
    const lock = await one.mutex(NAME).lock();
    one.table.plant({ name: NAME, sort: "lock" }, undefined);
    await expect(lock.handOff({ validForMs: MINUTE })).rejects.toMatchObject({ code: "LOCK_LOST", reason: "deleted" });
    expect(lock.held).toBe(false);
    await expect(lock.unlock()).rejects.toMatchObject({ reason: "deleted" });
  });

  test.each([undefined, {}, { validForMs: 0 }, { validForMs: 1.5 }, { validForMs: Number.POSITIVE_INFINITY }])(
    "must say for how long: %j",
    async (options) => {
      const { one } = hosts();
      await using lock = await one.mutex(NAME).lock();
      await expect(lock.handOff(options as never)).rejects.toBeInstanceOf(LockConfigError);
      expect(lock.held).toBe(true);
    },
  );

  test("a member of a set goes on alone, and the set has it no more", async () => {
    const { one, other } = hosts();
    const set = await one.lockAll([NAME, "order-43"]);
    const member = set.locks.get(NAME) as TransferableLock;
    const token = await member.handOff({ validForMs: MINUTE });
    expect(set.held).toBe(false);
    expect(set.locks.get("order-43")?.held).toBe(true);
    const resumed = await other.mutex(NAME).resume(token);
    await set.unlock();
    expect(one.row("order-43")).toBeUndefined();
    expect(resumed.held).toBe(true);
    expect(other.row(NAME)).toMatchObject({ uuid: resumed.uuid });
    await resumed.unlock();
  });
});

describe("a permit that is handed off", () => {
  test("goes on with its number, and the other permits are free meanwhile", async () => {
    const { one, other } = hosts();
    const semaphore = one.semaphore(NAME, { permits: 2 });
    const held = [await semaphore.lock(), await semaphore.lock()] as [Permit, Permit];
    const token = await held[1].handOff({ validForMs: MINUTE });
    expect(await semaphore.tryLock()).toBeNull();
    await held[0].unlock();
    await using again = await semaphore.tryLock();
    expect(again?.permit).toBe(held[0].permit);
    await using resumed = await other.semaphore(NAME, { permits: 2 }).resume(token);
    expect(resumed.permit).toBe(held[1].permit);
    expect(other.permit(NAME, resumed.permit)).toMatchObject({ uuid: resumed.uuid, owner: "other" });
    expect(await semaphore.tryLock()).toBeNull();
  });

  test("in its own process leaves room for the next in line only when it is free again", async () => {
    const { time, one } = hosts();
    const semaphore = one.semaphore(NAME, { permits: 1 });
    const permit = await semaphore.lock();
    const waiting = semaphore.lock();
    const watched = watch(waiting);
    const token = await permit.handOff({ validForMs: MINUTE });
    const resumed = await semaphore.resume(token);
    await time.advance(10_000);
    expect(watched.settled).toBe(false);
    await resumed.unlock();
    await time.advanceUntil(() => watched.settled);
    expect((await waiting).permit).toBe(0);
  });

  test("may be one that the other host does not know of", async () => {
    const { one, other } = hosts();
    const semaphore = one.semaphore(NAME, { permits: 2 });
    await semaphore.lock();
    const second = await semaphore.lock();
    const token = await second.handOff({ validForMs: MINUTE });
    await using resumed = await other.semaphore(NAME, { permits: 1 }).resume(token);
    expect(resumed.permit).toBe(second.permit);
  });
});

describe("a fenced lock that is handed off", () => {
  test("draws the next number when it goes on", async () => {
    const { one, other, third } = hosts();
    const fenced = { fencing: true } as const;
    const lock = await one.mutex(NAME, fenced).lock();
    const token = await lock.handOff({ validForMs: MINUTE });
    const resumed = await other.mutex(NAME, fenced).resume(token);
    const numberOf = (held: unknown): bigint => (held as { fencingToken: bigint }).fencingToken;
    expect(numberOf(resumed)).toBe(numberOf(lock) + 1n);
    await resumed.unlock();
    const next = await third.mutex(NAME, fenced).lock();
    expect(numberOf(next)).toBe(numberOf(lock) + 2n);
  });

  test("keeps its number on the row where it goes on without fencing", async () => {
    const { one, other, third } = hosts();
    const lock = await one.mutex(NAME, { fencing: true }).lock();
    const number = one.row(NAME)?.fence as bigint;
    const resumed = await other.mutex(NAME).resume(await lock.handOff({ validForMs: MINUTE }));
    expect("fencingToken" in resumed).toBe(false);
    await resumed.unlock();
    expect(other.row(NAME)).toMatchObject({ fence: number, uuid: undefined });
    await third.mutex(NAME, { fencing: true }).lock();
    expect(third.row(NAME)?.fence).toBe(number + 1n);
  });

  test("is refused to a mutex with fencing where its row has no number, and can still go on without", async () => {
    const { other, token } = await handedOff();
    const resuming = other.mutex(NAME, { fencing: true }).resume(token);
    await expect(resuming).rejects.toMatchObject({ code: "LOCK_CONFIG", option: "fencing" });
    await using resumed = await other.mutex(NAME).resume(token);
    expect(resumed.held).toBe(true);
  });
});

describe("a token", () => {
  test.each<readonly [string, (host: MemoryHost, token: string) => Promise<unknown>]>([
    ["of another name", (host, token) => host.mutex("order-43").resume(token)],
    ["of another kind", (host, token) => host.semaphore(NAME, { permits: 2 }).resume(token)],
    ["that is cut short", (host, token) => host.mutex(NAME).resume(token.slice(0, -10))],
    ["that was changed", (host, token) => host.mutex(NAME).resume(token.replace(/.{5}$/, "!!!!!"))],
    ["that is none", (host) => host.mutex(NAME).resume("order-42")],
    ["that is empty", (host) => host.mutex(NAME).resume("")],
    ["that is no string", (host) => host.mutex(NAME).resume(undefined as never)],
    ["that only looks like one", (host) => host.mutex(NAME).resume(`dynamutex-2.${btoa('["locks",null]')}`)],
  ])("%s is refused, nothing is sent, and the lock is left alone", async (_, resume) => {
    const { other, token } = await handedOff();
    await expect(resume(other, token)).rejects.toMatchObject({ code: "LOCK_CONFIG", option: "token" });
    expect(other.told()).toEqual([]);
    await using resumed = await other.mutex(NAME).resume(token);
    expect(resumed.held).toBe(true);
  });

  test("of another table is refused, and says which it is for", async () => {
    const { time, one, token } = await handedOff();
    for (const tableId of [
      { tableName: "staging-locks", keyPrefix: "" },
      { tableName: "locks", keyPrefix: "staging/" },
    ]) {
      const elsewhere = new MemoryHost(time, { table: one.table, tableId });
      await expect(elsewhere.mutex(NAME).resume(token)).rejects.toThrow(/^token: .*in table locks/);
    }
  });

  test("of a permit is refused by a mutex of its name", async () => {
    const { one, other } = hosts();
    const token = await (await one.semaphore(NAME, { permits: 2 }).lock()).handOff({ validForMs: MINUTE });
    await expect(other.mutex(NAME).resume(token)).rejects.toMatchObject({ option: "token" });
  });

  test("counts for a host that names its table by the ARN", async () => {
    const { time, one, token } = await handedOff();
    const tableId = { tableName: "arn:aws:dynamodb:eu-west-1:123456789012:table/locks", keyPrefix: "" };
    const other = new MemoryHost(time, { owner: "other", table: one.table, tableId });
    await using resumed = await other.mutex(NAME).resume(token);
    expect(resumed.owner).toBe("other");
  });
});

describe("on a network that loses replies", () => {
  test("a hand-off whose reply was lost is recognised", async () => {
    const { time, one, other } = hosts();
    const lock = await one.mutex(NAME).lock();
    let lost = 0;
    one.fate = (message) => (isTransfer(message) && ++lost === 1 ? "reply lost" : "answered");
    const handing = lock.handOff({ validForMs: MINUTE });
    await time.settle(handing);
    expect(lost).toBe(2);
    await using resumed = await other.mutex(NAME).resume(await handing);
    expect(resumed.held).toBe(true);
  });

  test("a resume whose reply was lost is recognised, with its data and its number", async () => {
    const { time, one, other } = hosts();
    const fenced = { fencing: true } as const;
    const lock = await one.mutex(NAME, fenced).lock({ data: { step: 1 } });
    const number = one.row(NAME)?.fence as bigint;
    const token = await lock.handOff({ validForMs: MINUTE });
    let lost = 0;
    other.fate = (message) => (isTransfer(message) && ++lost === 1 ? "reply lost" : "answered");
    const resuming = other.mutex(NAME, fenced).resume(token);
    await time.settle(resuming);
    await using resumed = await resuming;
    expect(lost).toBe(2);
    expect(resumed).toMatchObject({
      held: true,
      data: { step: 1 },
      fencingToken: number + 1n,
      acquired: lock.acquired,
    });
  });

  test.each(["lost", "reply lost"] as const)(
    "a hand-off that gets no answer rejects, and releases the lock under either uuid: %s",
    async (fate) => {
      const { time, one, other } = hosts();
      const lock = await one.mutex(NAME, { ttlMs: MINUTE, releaseWithinMs: 5_000 }).lock();
      one.fate = (message) => (isTransfer(message) ? fate : "answered");
      expect(await time.outcome(lock.handOff({ validForMs: 3_600_000 }))).toMatchObject({
        code: "LOCK_STORE",
        transient: true,
      });
      expect(time.elapsed).toBeLessThanOrEqual(5_000);
      expect(one.row(NAME)).toBeUndefined();
      expect(one.sent.filter(isVacate).length).toBe(2);
      await lock.unlock();
      await using next = await other.mutex(NAME).tryLock();
      expect(next?.held).toBe(true);
    },
  );

  test.each(["lost", "reply lost"] as const)(
    "a hand-off during which the table goes silent rejects, and the lock is free at the latest after validForMs: %s",
    async (fate) => {
      const { time, one, other } = hosts();
      const lock = await one.mutex(NAME, { ttlMs: 10_000, releaseWithinMs: 2_000 }).lock();
      await lock.extend();
      one.fate = () => fate;
      expect(await time.outcome(lock.handOff({ validForMs: 30_000 }))).toMatchObject({ code: "LOCK_STORE" });
      expect(time.elapsed).toBeLessThanOrEqual(2_000);
      await time.advance(30_001);
      expect(time.timers).toBe(0);
      await using next = await other.mutex(NAME).tryLock();
      expect(next?.held).toBe(true);
    },
  );

  test("a hand-off that nobody got is released when the table answers again, long before validForMs", async () => {
    const { time, one, other } = hosts();
    const lock = await one.mutex(NAME, { ttlMs: 10_000, releaseWithinMs: 2_000 }).lock();
    await lock.extend();
    one.fate = () => "reply lost";
    const failed = time.outcome(lock.handOff({ validForMs: 14 * 24 * 60 * MINUTE }));
    await time.advance(1);
    one.fate = () => "lost";
    expect(await failed).toMatchObject({
      code: "LOCK_STORE",
      message: expect.stringContaining("goes on releasing it"),
    });
    // The lease itself ends meanwhile.
    await time.advance(20_000);
    expect(await other.mutex(NAME).tryLock()).toBeNull();
    one.fate = () => "answered";
    await time.advanceUntil(() => one.row(NAME) === undefined, { withinMs: 5_000 });
    await time.advance(5_000);
    expect(time.timers).toBe(0);
  });

  test("a hand-off that never arrived is released until the lease would have ended, though validForMs is shorter", async () => {
    const { time, one } = hosts();
    const lock = await one.mutex(NAME, { ttlMs: MINUTE, releaseWithinMs: 2_000 }).lock();
    await lock.extend();
    one.fate = () => "lost";
    expect(await time.outcome(lock.handOff({ validForMs: 1_000 }))).toMatchObject({ code: "LOCK_STORE" });
    await time.advance(20_000);
    one.fate = () => "answered";
    await time.advanceUntil(() => one.row(NAME) === undefined, { withinMs: 5_000 });
  });

  test("a hand-off that nobody got is released on, although the wall clock of its process is set forward", async () => {
    const { time, one } = hosts();
    const lock = await one.mutex(NAME, { ttlMs: 10_000, releaseWithinMs: 2_000 }).lock();
    await lock.extend();
    let forwardMs = 0;
    one.session.clock.atMost = () => time.elapsed + forwardMs;
    one.fate = (message) => (isTransfer(message) ? "reply lost" : "lost");
    const failed = time.outcome(lock.handOff({ validForMs: 5 * MINUTE }));
    await time.advanceUntil(() => one.sent.some(isRelease));
    forwardMs = 60 * MINUTE;
    expect(await failed).toMatchObject({ code: "LOCK_LOST" });
    await time.advance(2 * MINUTE);
    expect(one.row(NAME)).toMatchObject({ owner: "one" });
    one.fate = () => "answered";
    await time.advanceUntil(() => one.row(NAME) === undefined, { withinMs: 5_000 });
  });

  test("a close waits for the release of a hand-off that nobody got, within its bounds", async () => {
    const { time, one } = hosts();
    const lock = await one.mutex(NAME, { ttlMs: 10_000, releaseWithinMs: 2_000 }).lock();
    await lock.extend();
    one.fate = () => "reply lost";
    const failed = time.outcome(lock.handOff({ validForMs: 14 * 24 * 60 * MINUTE }));
    await time.advance(1);
    one.fate = () => "lost";
    await failed;
    await time.advance(20_000);
    const since = time.elapsed;
    await time.settle(one.session.close(0));
    expect(time.elapsed - since).toBe(2_000);
    await time.advance(MINUTE);
    expect(time.timers).toBe(0);
  });

  test.each<[string, (message: Message) => boolean, object]>([
    ["released", isTransfer, { code: "LOCK_STORE", message: expect.stringContaining("and it was released") }],
    [
      "not known",
      () => true,
      { code: "LOCK_STORE", message: expect.stringContaining("goes on releasing it for as long") },
    ],
  ])("a hand-off that gets no answer says what became of the row: %s", async (_, isLost, expected) => {
    const { time, one } = hosts();
    const lock = await one.mutex(NAME, { ttlMs: 10_000, releaseWithinMs: 2_000 }).lock();
    await lock.extend();
    one.fate = (message) => (isLost(message) ? "lost" : "answered");
    const error = await time.outcome(lock.handOff({ validForMs: MINUTE }));
    expect(error).toMatchObject({ ...expected, transient: true, cause: { code: "LOCK_STORE" } });
  });

  test("a hand-off that the table refuses to write says what became of the row, and why it was refused", async () => {
    const { time, one } = hosts();
    const lock = await one.mutex(NAME, { ttlMs: 10_000, releaseWithinMs: 2_000 }).lock();
    await lock.extend();
    const refused = new LockStoreError("dynamodb:UpdateItem is missing", { transient: false });
    one.fate = (message) => (isTransfer(message) ? Promise.reject(refused) : "answered");
    const error = await time.outcome(lock.handOff({ validForMs: MINUTE }));
    expect(error).toMatchObject({ code: "LOCK_STORE", transient: false, cause: refused });
    expect(String(error)).toMatch(/and it was released\. dynamodb:UpdateItem is missing/);
  });

  test("a resume that gets no answer rejects, and gives back what it has taken", async () => {
    const { time, other, third, token } = await handedOff();
    other.fate = (message) => (isTransfer(message) ? "reply lost" : "answered");
    expect(await time.outcome(other.mutex(NAME).resume(token))).toMatchObject({ code: "LOCK_STORE" });
    expect(time.elapsed).toBeLessThanOrEqual(10_000);
    await time.advanceUntil(() => other.row(NAME) === undefined);
    await using next = await third.mutex(NAME).tryLock();
    expect(next?.held).toBe(true);
  });

  test("a resume that never arrived leaves the token as it was", async () => {
    const { time, other, third, token } = await handedOff();
    other.fate = (message) => (isTransfer(message) ? "lost" : "answered");
    expect(await time.outcome(other.mutex(NAME).resume(token))).toMatchObject({ code: "LOCK_STORE" });
    await using resumed = await third.mutex(NAME).resume(token);
    await time.advance(20_000);
    expect(resumed.held).toBe(true);
  });

  test("a resume that arrives after its caller was told of a failure is given back", async () => {
    const { time, other, token } = await handedOff();
    const late = time.clock().sleep(12_150);
    other.fate = (message) => (isTransfer(message) ? late : "answered");
    expect(await time.outcome(other.mutex(NAME).resume(token))).toMatchObject({ code: "LOCK_STORE" });
    expect(other.row(NAME)?.owner).toBe("one");
    await time.advanceUntil(() => other.row(NAME)?.owner === "other");
    await time.advanceUntil(() => other.row(NAME) === undefined, { withinMs: 2_000 });
  });

  test("a late copy of the take does not bring back the uuid that was handed off", async () => {
    const { one, other } = hosts();
    const lock = await one.mutex(NAME).lock();
    const [take] = one.sent;
    const token = await lock.handOff({ validForMs: MINUTE });
    const transfer = one.sent.find(isTransfer) as Message;
    await (await other.mutex(NAME).resume(token)).unlock();
    answerOf(one.table, take as Message);
    answerOf(one.table, transfer);
    // The copy of the take is there, under its first stamp, and the copy of the transfer has asked for a later one.
    expect(one.row(NAME)?.uuid).toBe(lock.uuid);
    await expect(other.mutex(NAME).resume(token)).rejects.toBeInstanceOf(LockLostError);
  });
});

describe("a resume", () => {
  test("ends with the reason of its signal, and gives back what it takes after that", async () => {
    const { time, other, token } = await handedOff();
    const answered = time.clock().sleep(1_000);
    other.fate = (message) => (isTransfer(message) ? answered : "answered");
    const controller = new AbortController();
    const resuming = other.mutex(NAME).resume(token, { signal: controller.signal });
    await turn();
    controller.abort(new Error("enough"));
    await expect(resuming).rejects.toThrow("enough");
    await time.advance(1_000);
    await time.advanceUntil(() => other.row(NAME) === undefined);
  });

  test("of a table that is closed rejects, and the token still counts", async () => {
    const { other, third, token } = await handedOff();
    await other.session.close();
    await expect(other.mutex(NAME).resume(token)).rejects.toMatchObject({ code: "LOCK_CLOSED" });
    await using resumed = await third.mutex(NAME).resume(token);
    expect(resumed.held).toBe(true);
  });

  test("that is under way when its table closes rejects at once, and the close gives back what it has taken", async () => {
    const { time, other, token } = await handedOff();
    const answered = time.clock().sleep(1_000);
    other.fate = (message) => (isTransfer(message) ? answered : "answered");
    const resuming = other.mutex(NAME).resume(token);
    await turn();
    const closed = watch(other.session.close(0));
    await expect(resuming).rejects.toMatchObject({ code: "LOCK_CLOSED" });
    await time.advanceUntil(() => closed.settled);
    expect(other.row(NAME)).toBeUndefined();
  });

  test("is revoked by a close like any section", async () => {
    const { time, other, token } = await handedOff();
    const resumed = await other.mutex(NAME).resume(token);
    const closing = other.session.close(0).catch((error: unknown) => error);
    const closed = watch(closing);
    await turn();
    expect(findLockLost(resumed.signal.reason)?.reason).toBe("closed");
    await expect(resumed.unlock()).rejects.toMatchObject({ reason: "closed" });
    await time.advanceUntil(() => closed.settled);
    expect(other.row(NAME)).toBeUndefined();
  });
});

test("a close waits for a hand-off that is under way, and the lock goes on", async () => {
  const { time, one, other } = hosts();
  const lock = await one.mutex(NAME).lock();
  const answered = time.clock().sleep(1_000);
  one.fate = (message) => (isTransfer(message) ? answered : "answered");
  const handing = lock.handOff({ validForMs: MINUTE });
  await turn();
  const closed = watch(one.session.close(0));
  await time.advance(999);
  expect(closed.settled).toBe(false);
  await time.advanceUntil(() => closed.settled);
  await using resumed = await other.mutex(NAME).resume(await handing);
  expect(resumed.held).toBe(true);
});

test("a section that handed its lock off within run() ends without an error, and the lock goes on", async () => {
  const { one, other } = hosts();
  const token = await one.mutex(NAME).run((lock) => lock.handOff({ validForMs: MINUTE }));
  await using resumed = await other.mutex(NAME).resume(token);
  expect(resumed.held).toBe(true);
});

test("a hand-off waits for a renewal that is in flight", async () => {
  const { time, one, other } = hosts();
  const lock = await one.mutex(NAME, { ttlMs: 1_000 }).lock();
  const answered = time.clock().sleep(550);
  let renewals = 0;
  one.fate = (message) =>
    message.kind === "write" && message.write.kind === "renew" && ++renewals === 1 ? answered : "answered";
  await time.advance(500);
  const handing = lock.handOff({ validForMs: MINUTE });
  await time.settle(handing);
  expect(one.told()).toEqual(["take lock", "renew lock", "transfer lock"]);
  await using resumed = await other.mutex(NAME).resume(await handing);
  expect(resumed.held).toBe(true);
});

describe("on DynamoDB", () => {
  const scene = useScene();

  test("a hand-off is two updates, and a resume a read and an update, between the take and the release", async () => {
    const one = scene.host({ tag: "one", owner: "one", clock: systemClock() });
    const other = scene.host({ tag: "other", owner: "other", clock: systemClock() });
    const lock = await one.mutex(scene.name).lock({ data: { step: 1 } });
    const token = await lock.handOff({ validForMs: MINUTE });
    expect(await scene.row()).toMatchObject({ owner: "one", ttlMs: MINUTE, data: { step: 1 } });
    const resumed = await other.mutex(scene.name).resume(token);
    expect(await scene.row()).toMatchObject({ owner: "other", uuid: resumed.uuid, ttlMs: 30_000, data: { step: 1 } });
    await resumed.unlock();
    expect(await scene.row()).toBeUndefined();
    expect(scene.proxy.requests.map(({ client, operation }) => `${client} ${operation}`)).toEqual([
      "one PutItem",
      "one UpdateItem",
      "one UpdateItem",
      "other GetItem",
      "other UpdateItem",
      "other DeleteItem",
    ]);
    expect(scene.proxy.units()).toEqual({ read: 1, write: 5 });
  });

  test("a token says which table it is for", async () => {
    const token = await (await scene.host().mutex(scene.name).lock()).handOff({ validForMs: MINUTE });
    const prefixed = scene.host({ keyPrefix: "staging/" });
    const resuming = prefixed.mutex(scene.name).resume(token);
    await expect(resuming).rejects.toThrow(new RegExp(`^token: .*in table ${scene.tableName}`));
  });

  test("a fenced lock goes on with the next number, and of two that resume it one wins", async () => {
    const [one, other, third] = ["one", "other", "third"].map((tag) =>
      scene.host({ tag, clock: systemClock() }).mutex(scene.name, { fencing: true }),
    );
    const lock = await one?.lock();
    const token = (await lock?.handOff({ validForMs: MINUTE })) ?? "";
    const outcomes = await Promise.allSettled([other, third].map((mutex) => mutex?.resume(token)));
    const won = outcomes.flatMap((outcome) => (outcome.status === "fulfilled" ? [outcome.value] : []));
    expect(won).toHaveLength(1);
    expect(won[0]?.fencingToken).toBeGreaterThan(lock?.fencingToken ?? 0n);
    expect(outcomes.find(({ status }) => status === "rejected")).toMatchObject({ reason: { code: "LOCK_LOST" } });
    await won[0]?.unlock();
  });
});

test.each([4_200, 4_600, 5_200])(
  "a hand-off without an answer leaves nothing on the row, when the table answers again after %i ms",
  async (silentMs) => {
    const time = new ManualTime();
    const host = new MemoryHost(time);
    const lock = await host.mutex("silent", { ttlMs: 12_000, releaseWithinMs: 5_000 }).lock();
    await time.advance(7_000);
    const from = time.elapsed;
    host.fate = () => (time.elapsed - from < silentMs ? "lost" : "answered");
    const failed = time.outcome(lock.handOff({ validForMs: 3_600_000 }));
    await time.advance(6_000);
    expect(await failed).toMatchObject({ code: "LOCK_STORE" });
    await time.advance(4_000);
    expect(host.row("silent")?.uuid).toBeUndefined();
  },
);
