import { describe, expect, test } from "@jest/globals";
import type { FencedLock, Mutex } from "../../../lib/index.js";
import { tableClockOn } from "../../../lib/time/table-clock.js";
import { hear } from "../../support/diagnostics.js";
import { eventually, turn } from "../../support/eventually.js";
import type { RecordedRequest } from "../../support/fault-proxy/recorded-request.js";
import { duplicate, hang, hangAfter, resetAfter, transactionConflict } from "../../support/fault-proxy.js";
import { ManualTime } from "../../support/manual-time.js";
import { isReissue } from "../../support/reissue.js";
import { rowOf, useScene } from "../../support/scene.js";
import { afterSleeps } from "../../support/settled.js";

const scene = useScene();

const FENCED = { fencing: true } as const;
const TTL_MS = 30_000;

/** A mutex of a process of its own. */
function fenced(time?: ManualTime, tag = ""): Mutex<FencedLock> {
  const clock = time === undefined ? {} : { clock: time.clock() };
  return scene.host({ tag, ...clock }).mutex(scene.name, { ...FENCED, ttlMs: TTL_MS });
}

async function tokenOf(mutex: Mutex<FencedLock>): Promise<bigint> {
  return await mutex.run((lock) => lock.fencingToken);
}

async function fenceInRow(): Promise<unknown> {
  return BigInt(String((await scene.row())?.fence));
}

describe("the type of a lock", () => {
  test("has a token exactly where the mutex is fenced", async () => {
    const plain = scene.host().mutex(scene.name);
    await plain.run(async (lock) => {
      // @ts-expect-error: a plain lock has no token
      expect(lock.fencingToken).toBeUndefined();
      expect("fencingToken" in lock).toBe(false);
    });
    const mutex = scene.host().mutex(scene.name, { fencing: true });
    const held: FencedLock = await mutex.lock();
    const token: bigint = held.fencingToken;
    expect(await mutex.tryLock()).toBeNull();
    await held.unlock();
    const ran = await mutex.tryRun((lock): bigint => lock.fencingToken);
    const next: bigint = ran.ran ? ran.value : 0n;
    expect(next).toBeGreaterThan(token);
    const tried: FencedLock | null = await mutex.tryLock();
    expect(tried?.fencingToken).toBeGreaterThan(next);
    await tried?.unlock();
  });

  test("a whole table cannot be fenced, because its mutexes would have a type that they are not of", () => {
    // @ts-expect-error: an option of mutexes
    expect(() => scene.host({ fencing: true })).toThrow(/^fencing: is an option of each mutex/);
  });
});

describe("what a fenced lock costs", () => {
  test("an uncontended cycle is two requests, and the row stays, free", async () => {
    const mutex = fenced(new ManualTime());
    const lock = await mutex.lock();
    expect(await scene.row()).toMatchObject({ uuid: lock.uuid, fence: Number(lock.fencingToken) });
    await lock.unlock();
    expect(scene.proxy.counts()).toEqual({ UpdateItem: 2 });
    expect(scene.proxy.units()).toEqual({ read: 0, write: 2 });
    const row = await scene.row();
    expect(row).toMatchObject({ expires: 0, fence: Number(lock.fencingToken) });
    expect(row).not.toHaveProperty("uuid");
    for (const _round of [1, 2, 3]) await tokenOf(mutex);
    expect(scene.proxy.counts()).toEqual({ UpdateItem: 8 });
  });

  test("so is one of a name that this process has never seen, free or new, and of sections that follow one another", async () => {
    const time = new ManualTime();
    await tokenOf(fenced(time));
    await time.advance(10_000);
    scene.proxy.reset();
    const other = fenced(time, "other");
    await tokenOf(other);
    expect(scene.proxy.counts()).toEqual({ UpdateItem: 2 });
    for (const pauseMs of [0, 0, 1, 2, 1_000, 0]) {
      await time.advance(pauseMs);
      await tokenOf(other);
    }
    expect(scene.proxy.counts()).toEqual({ UpdateItem: 14 });
  });

  test("a process that does not know the table's time reads it first, once", async () => {
    const mutex = fenced();
    const before = BigInt(Date.now());
    const token = await tokenOf(mutex);
    expect(scene.proxy.counts()).toEqual({ GetItem: 1, UpdateItem: 2 });
    expect(scene.proxy.requests[0]?.body.ConsistentRead).toBe(true);
    expect(token).toBeGreaterThan(before);
    await tokenOf(mutex);
    expect(scene.proxy.counts()).toEqual({ GetItem: 1, UpdateItem: 4 });
  });

  test("and again when it has heard nothing for so long that it knows the time only roughly", async () => {
    const host = new ManualTime();
    const { atLeast, sleep, alarm } = host.clock();
    const clock = tableClockOn({ time: { monotonic: atLeast, wall: () => host.now }, sleep, alarm });
    const mutex = scene.host({ clock }).mutex(scene.name, FENCED);
    const silence = async (ms: number): Promise<void> => {
      await host.advance(ms);
      const { elapsed } = host;
      scene.proxy.rewriteDate(() => new Date(Date.now() + elapsed).toUTCString());
    };
    await tokenOf(mutex);
    await silence(10 * 60_000);
    await tokenOf(mutex);
    expect(scene.proxy.counts()).toEqual({ GetItem: 1, UpdateItem: 4 });
    await silence(60 * 60_000);
    await tokenOf(mutex);
    expect(scene.proxy.counts()).toEqual({ GetItem: 2, UpdateItem: 6 });
  });
});

describe("tokens grow by the order of holding", () => {
  test("through releases, from one process to another", async () => {
    const time = new ManualTime();
    const [one, other] = [fenced(time, "one"), fenced(time, "other")];
    const first = await tokenOf(one);
    expect([await tokenOf(other), await tokenOf(one), await tokenOf(other)]).toEqual([
      first + 1n,
      first + 2n,
      first + 3n,
    ]);
  });

  test("through a takeover from a holder that is gone", async () => {
    const time = new ManualTime();
    const gone = await fenced(time, "gone").lock();
    scene.proxy.partition("gone");
    await time.advance(TTL_MS + 1);
    expect(await tokenOf(fenced(time))).toBe(BigInt(time.now));
    scene.proxy.heal("gone");
    await expect(gone.unlock()).rejects.toMatchObject({ reason: "expired" });
  });

  test("through plain use of the same name, which leaves the token where it is", async () => {
    const time = new ManualTime();
    const token = await tokenOf(fenced(time));
    const plain = scene.host({ clock: time.clock() }).mutex(scene.name, { ttlMs: TTL_MS });
    for (const _round of [1, 2]) {
      await using lock = await plain.lock();
      await lock.extend();
      expect(await scene.row()).toMatchObject({ uuid: lock.uuid, fence: Number(token) });
    }
    expect(await fenceInRow()).toBe(token);
    expect(await tokenOf(fenced(time))).toBe(token + 1n);
  });

  test("trap 10: after the row was deleted, because time has gone on further than any run of acquisitions", async () => {
    const time = new ManualTime();
    const [fast, slow] = [1_000, -1_000].map((aheadMs) =>
      scene.host({ clock: time.clock({ aheadMs, maxSkewMs: 1_000 }) }).mutex(scene.name, FENCED),
    ) as [Mutex<FencedLock>, Mutex<FencedLock>];
    let last = 0n;
    for (let round = 0; round < 40; round += 1) last = await tokenOf(fast);
    await scene.remove();
    await time.advance(5_000);
    const next = await tokenOf(slow);
    expect(next).toBeGreaterThan(last);
    // The latest time that its clock may show, and one.
    expect(next).toBe(BigInt(time.now) + 1n);
    await tokenOf(fast);
    expect(await fenceInRow()).toBe(next + 1n);
  });
});

describe("a table that was restored from a backup", () => {
  /** A row with a token, and the greatest one that was drawn after the backup. */
  async function restored(time: ManualTime, mutex: Mutex<FencedLock>): Promise<bigint> {
    await tokenOf(mutex);
    const backup = await scene.row();
    for (const _round of [1, 2, 3]) {
      await time.advance(10);
      await tokenOf(mutex);
    }
    const last = await tokenOf(mutex);
    await time.advance(5_000);
    await scene.put({ ...backup });
    scene.proxy.reset();
    return last;
  }

  test.each([
    ["a process that has drawn tokens before", false],
    ["another process", true],
  ])("repeats no token: the next one is the time, for one request, in %s", async (_which, isOther) => {
    const time = new ManualTime();
    const mutex = fenced(time);
    const last = await restored(time, mutex);
    const token = await tokenOf(isOther ? fenced(time, "other") : mutex);
    expect(token).toBe(BigInt(time.now));
    expect(token).toBeGreaterThan(last);
    expect(scene.proxy.counts()).toEqual({ UpdateItem: 2 });
  });

  test("nor does one with a tick", async () => {
    const time = new ManualTime();
    const mutex = fenced(time);
    const last = await restored(time, mutex);
    const lock = await mutex.tryLock({ once: 1 });
    expect(lock?.fencingToken).toBe(BigInt(time.now));
    expect(lock?.fencingToken).toBeGreaterThan(last);
    await lock?.unlock();
  });

  test("nor where the lock is passed on in its process: the backup was made in the section before", async () => {
    const time = new ManualTime();
    const mutex = fenced(time);
    await tokenOf(mutex);
    await time.advance(1_000);
    const [first, second] = [await mutex.lock(), mutex.lock()];
    await turn();
    await scene.put({ ...(await scene.row()), fence: 7 });
    await time.advance(100);
    await first.unlock();
    const next = await second;
    expect(next.fencingToken).toBe(BigInt(time.now));
    await next.unlock();
  });
});

describe("a counter that is ahead of the time", () => {
  test("stays as it is: each lock counts it up, for one request", async () => {
    const time = new ManualTime();
    const ahead = BigInt(time.now) + 3_600_000n;
    const { uuid: _, ...free } = rowOf({ expires: 0, fence: Number(ahead) });
    await scene.put(free);
    const mutex = fenced(time);
    expect(await tokenOf(mutex)).toBe(ahead + 1n);
    scene.proxy.reset();
    for (const more of [2n, 3n]) {
      await time.advance(1_000);
      expect(await tokenOf(mutex)).toBe(ahead + more);
    }
    expect(scene.proxy.counts()).toEqual({ UpdateItem: 4 });
  });
});

describe("a request of a fenced lock that fails", () => {
  test("trap 1: a take whose reply is lost gets the token that the row shows", async () => {
    const time = new ManualTime();
    const before = await tokenOf(fenced(time));
    const lost = scene.proxy.on("UpdateItem", resetAfter());
    const locking = fenced(time).lock();
    await lost.done;
    const lock = await afterSleeps(time, locking);
    expect(lock.fencingToken).toBe(before + 1n);
    expect(await scene.row()).toMatchObject({ uuid: lock.uuid, fence: Number(lock.fencingToken) });
    await lock.unlock();
    expect(await tokenOf(fenced(time))).toBe(BigInt(time.now));
  });

  test("a late duplicate of a take that counts the token up skips a token", async () => {
    const time = new ManualTime();
    const mutex = fenced(time);
    const first = await tokenOf(mutex);
    const copy = duplicate();
    scene.proxy.on("UpdateItem", copy);
    expect(await tokenOf(mutex)).toBe(first + 1n);
    expect((await copy.deliver()).status).toBe(200);
    expect(await fenceInRow()).toBe(first + 2n);
    expect(await mutex.tryLock()).toBeNull();
    await time.advance(TTL_MS + 1);
    expect(await tokenOf(mutex)).toBe(BigInt(time.now));
  });

  test("a late duplicate of a take that draws its token from the time is refused, also after the release", async () => {
    const time = new ManualTime();
    const mutex = fenced(time);
    await tokenOf(mutex);
    await time.advance(10_000);
    const copy = duplicate();
    scene.proxy.on("UpdateItem", copy);
    const token = await tokenOf(mutex);
    expect((await copy.deliver()).status).toBe(400);
    expect(await scene.row()).toMatchObject({ expires: 0, fence: Number(token) });
  });

  test("a take that is sent in both forms is recognised if the reply to the second one is lost", async () => {
    const time = new ManualTime();
    await tokenOf(fenced(time));
    scene.proxy.reset();
    // Of a process that has not seen the token: the first form is refused, and the second one is applied.
    const isSecondForm = (request: RecordedRequest): boolean => `${request.body.UpdateExpression}`.includes(":one");
    const lost = scene.proxy.on(isSecondForm, resetAfter());
    const locking = fenced(time).lock();
    await lost.done;
    const lock = await afterSleeps(time, locking);
    expect(await scene.row()).toMatchObject({ uuid: lock.uuid, fence: Number(lock.fencingToken) });
    await lock.unlock();
  });

  test("trap 20: a conflict with a transaction is met by trying again", async () => {
    const time = new ManualTime();
    const mutex = fenced(time);
    scene.proxy.on("UpdateItem", transactionConflict());
    const lock = await afterSleeps(time, mutex.lock());
    scene.proxy.on("UpdateItem", transactionConflict());
    await afterSleeps(time, lock.extend());
    scene.proxy.on("UpdateItem", transactionConflict());
    await afterSleeps(time, lock.unlock());
    expect(scene.proxy.counts()).toEqual({ UpdateItem: 6 });
  });
});

describe("sections of one process", () => {
  /** The lock of a section, and the promise of the next one, which waits in the same process. */
  async function twoSections(time: ManualTime) {
    const mutex = fenced(time);
    const first = await mutex.lock();
    const second = mutex.lock();
    await turn();
    return { first, second };
  }

  test("each has a token and a uuid of its own, for one write", async () => {
    const time = new ManualTime();
    const mutex = fenced(time);
    const seen: { readonly token: bigint; readonly uuid: string }[] = [];
    const section = (lock: FencedLock) => seen.push({ token: lock.fencingToken, uuid: lock.uuid });
    await Promise.all([1, 2, 3].map(() => mutex.run(section)));
    const first = seen[0]?.token ?? 0n;
    expect(seen.map(({ token }) => token)).toEqual([first, first + 1n, first + 2n]);
    expect(new Set(seen.map(({ uuid }) => uuid)).size).toBe(3);
    expect(scene.proxy.counts()).toEqual({ UpdateItem: 4 });
    expect(scene.proxy.count(isReissue)).toBe(2);
    expect(await fenceInRow()).toBe(first + 2n);
  });

  test("a late copy of the write that passed the lease on changes nothing", async () => {
    const { first, second } = await twoSections(new ManualTime());
    const copy = duplicate();
    scene.proxy.on(isReissue, copy);
    await first.unlock();
    const next = await second;
    const row = await scene.row();
    expect((await copy.deliver()).status).toBe(400);
    expect(await scene.row()).toEqual(row);
    await next.unlock();
    expect((await copy.deliver().catch((error) => error)).message).toMatch(/every copy/);
  });

  test("trap 2: a lost reply to that write is recognised by the fresh uuid", async () => {
    const time = new ManualTime();
    const { first, second } = await twoSections(time);
    const lost = scene.proxy.on(isReissue, resetAfter());
    const unlocking = first.unlock();
    await lost.done;
    await afterSleeps(time, unlocking);
    const next = await second;
    expect(next.fencingToken).toBe(first.fencingToken + 1n);
    expect(await scene.row()).toMatchObject({ uuid: next.uuid, fence: Number(next.fencingToken) });
    expect(scene.proxy.count(isReissue)).toBe(2);
    await next.unlock();
  });

  test("the lease of the next section is counted from that write", async () => {
    const time = new ManualTime();
    const { first, second } = await twoSections(time);
    await time.advance(10_000);
    await first.unlock();
    const next = await second;
    expect(next.remainingMs).toBe(TTL_MS * 0.9);
    await time.advance(TTL_MS / 2 - 1);
    const renewals = scene.proxy.count("UpdateItem");
    await time.advance(1);
    await eventually(() => next.expires.getTime() === time.now + TTL_MS);
    expect(scene.proxy.count("UpdateItem")).toBe(renewals + 1);
    await next.unlock();
  });

  test.each([
    ["was applied", hangAfter],
    ["never arrived", hang],
  ])(
    "where that write gets no answer and %s, the next section takes the lock for itself, and the one before had ended in time",
    async (_what, fault) => {
      const time = new ManualTime();
      const losses = hear("dynamutex:lost");
      const { first, second } = await twoSections(time);
      scene.proxy.on(isReissue, fault(), { times: 20 });
      const unlocking = first.unlock();
      // It has half of the time of the release: an attempt has two thirds of that, and the next one what is left of it.
      await eventually(() => scene.proxy.count(isReissue) === 1);
      await time.advance(1_700);
      await time.advance(100);
      await eventually(() => scene.proxy.count(isReissue) === 2);
      await time.advance(700);
      await afterSleeps(time, unlocking);
      const next = await afterSleeps(time, second);
      expect(next.fencingToken).toBeGreaterThan(first.fencingToken);
      expect(await scene.row()).toMatchObject({ uuid: next.uuid, fence: Number(next.fencingToken) });
      expect([losses, first.signal.aborted, time.elapsed < TTL_MS]).toEqual([[], false, true]);
      await next.unlock();
    },
  );

  test("a lease that ends between two sections is reported as lost to neither", async () => {
    const time = new ManualTime();
    const losses = hear("dynamutex:lost");
    const mutex = scene.host({ clock: time.clock() }).mutex(scene.name, { ...FENCED, ttlMs: TTL_MS, autoRenew: false });
    const first = await mutex.lock();
    const second = mutex.lock();
    await time.advance(TTL_MS * 0.9 - 1_000);
    const hung = scene.proxy.on(isReissue, hang(), { times: 20 });
    const unlocking = first.unlock();
    await eventually(() => hung.used === 1);
    await time.advance(1_000);
    await afterSleeps(time, unlocking);
    const next = await afterSleeps(time, second);
    expect(next.fencingToken).toBeGreaterThan(first.fencingToken);
    expect([losses, first.signal.aborted]).toEqual([[], false]);
    await next.unlock();
  });

  test("a lock that was stolen shows when it is passed on: the section hears of it, and the next one waits", async () => {
    const time = new ManualTime();
    const { first, second } = await twoSections(time);
    await scene.put(rowOf({ expires: time.now + 1_000, fence: 7 }));
    await expect(first.unlock()).rejects.toMatchObject({ reason: "stolen" });
    const next = await afterSleeps(time, second);
    expect(next.fencingToken).toBe(BigInt(time.now));
    await next.unlock();
  });
});
