import { describe, expect, test } from "@jest/globals";
import type { Lock } from "../../../lib/index.js";
import type { MutexOptions } from "../../../lib/options/mutex.js";
import { lockAt } from "../../../lib/protocol/addresses.js";
import { hear } from "../../support/diagnostics.js";
import { turn, watch } from "../../support/eventually.js";
import { deferred } from "../../support/fault-proxy/deferred.js";
import { ManualTime } from "../../support/manual-time.js";
import { type Fate, inWords, isRelease, MemoryHost } from "../../support/memory-host.js";
import type { Message } from "../../support/message.js";

const TTL_MS = 10_000;
const RELEASE_WITHIN_MS = 500;

const isRenewal = (message: Message): boolean => inWords(message).startsWith("renew");
const isReissue = (message: Message): boolean => inWords(message).startsWith("reissue");
const isLook = ({ kind }: Message): boolean => kind === "read" || kind === "query";

/** The uuids of which the releases among these messages were. */
const released = (messages: readonly Message[]): readonly string[] =>
  messages.flatMap((message) =>
    message.kind === "write" && message.write.kind === "vacate" ? message.write.uuid : [],
  );

function scene() {
  const time = new ManualTime();
  const host = new MemoryHost(time);
  const other = new MemoryHost(time, { owner: "other", table: host.table });
  const of = (options: MutexOptions = {}) => ({ ttlMs: TTL_MS, releaseWithinMs: RELEASE_WITHIN_MS, ...options });
  const mutex = (options: MutexOptions = {}) => host.mutex("job", of(options));
  const others = other.mutex("job", of());
  /** How long its caller waits for it, in ms. */
  const lasts = async (work: Promise<unknown>): Promise<number> => {
    const since = time.elapsed;
    const watched = watch(work);
    await turn();
    await time.advanceUntil(() => watched.settled, { stepMs: 10 });
    return time.elapsed - since;
  };
  /** From here on these messages have this fate, and all others are answered. */
  const fate = (which: (message: Message) => boolean, what: Fate = "lost"): void => {
    host.fate = (message) => (which(message) ? what : "answered");
  };
  const heal = (): void => fate(() => false);
  /** A lock whose renewal is in flight, and gets no answer. */
  const renewing = async (isLost: (message: Message) => boolean = isRenewal) => {
    const lock = await mutex().lock();
    fate(isLost);
    await time.advance(TTL_MS / 2);
    expect(host.sent.filter(isRenewal)).toHaveLength(1);
    return lock;
  };
  /** Somebody else has taken the row, which this process does not know yet. */
  const steal = (): void => {
    const theirs = { format: 1, uuid: "theirs", owner: "third", ttlMs: TTL_MS, acquired: time.now };
    host.table.plant(lockAt("job"), { ...theirs, expires: time.now + TTL_MS });
  };
  return { time, host, mutex, others, lasts, fate, heal, renewing, steal };
}

const everything = (): boolean => true;
const failureOf = (work: Promise<unknown>): Promise<unknown> => work.catch((error: unknown) => error);

// An attempt of this renewal may take 2.5 s, and docs/guides/lambda.md reserves 1 s for what follows a section.
describe("a renewal in flight that gets no answer", () => {
  test("takes no time of the release", async () => {
    const { time, host, lasts, renewing } = scene();
    const lock = await renewing();
    expect(await lasts(lock.unlock())).toBe(0);
    expect(host.row("job")).toBeUndefined();
    await time.advance(3_000);
    expect([host.sent.filter(isRenewal).length, host.sent.filter(isRelease).length, time.timers]).toEqual([1, 1, 0]);
  });

  test("is refused if it is applied after the release", async () => {
    const { time, host, lasts, renewing } = scene();
    const lock = await renewing();
    const [late] = host.sent.filter(isRenewal);
    await lasts(lock.unlock());
    if (late?.kind === "write") host.table.write(late.write);
    await time.advance(1);
    expect(host.row("job")).toBeUndefined();
  });

  test("does not hide that the lock was lost, which is told at once", async () => {
    const { time, lasts, renewing, steal } = scene();
    const lock = await renewing();
    steal();
    const outcome = failureOf(lock.unlock());
    expect(await lasts(outcome)).toBe(0);
    expect(await outcome).toMatchObject({ code: "LOCK_LOST", reason: "stolen" });
    expect(lock.signal.reason).toBe(await outcome);
    await time.advance(3_000);
    expect(time.timers).toBe(0);
  });

  test.each(["before", "after"])(
    "that is applied %s the release, and answered after it, tells nobody anything",
    async (when) => {
      const { time, host, mutex, fate } = scene();
      const [renewed, lost] = [hear("dynamutex:renewed"), hear("dynamutex:lost")];
      const lock = await mutex().lock();
      const answer = deferred<void>();
      if (when === "after") fate(isRenewal, answer.promise);
      host.hold = (message) => (isRenewal(message) ? answer.promise : undefined);
      await time.advance(TTL_MS / 2);
      await lock.unlock();
      answer.resolve();
      await time.advance(1);
      expect([renewed, lost, lock.signal.aborted, host.row("job")]).toEqual([[], [], false, undefined]);
    },
  );

  test("of new data is waited for by nobody: replaceData() says that the lock has been unlocked", async () => {
    const { mutex, lasts, fate } = scene();
    const lock = await mutex().lock();
    fate(isRenewal);
    const replacing = failureOf(lock.replaceData({ step: 2 }));
    await turn();
    expect(await lasts(lock.unlock())).toBe(0);
    await lasts(replacing);
    expect(await replacing).toMatchObject({ code: "LOCK_RELEASED" });
  });
});

describe("on a silent table, unlock() is answered after releaseWithinMs", () => {
  test("of a section that nobody follows, of which a renewal is in flight", async () => {
    const { time, lasts, renewing } = scene();
    const lock = await renewing(everything);
    const failures = hear("dynamutex:release-failed");
    expect(await lasts(lock.unlock())).toBe(RELEASE_WITHIN_MS);
    expect(failures).toEqual([
      { name: "job", uuid: lock.uuid, cause: expect.objectContaining({ code: "LOCK_STORE" }) },
    ]);
    await time.advance(TTL_MS);
    expect(time.timers).toBe(0);
  });

  // What each of them asks of the table before the lease could pass to the next caller of the process.
  test.each<[string, MutexOptions, number]>([
    ["draws a token", { fencing: true }, 200],
    ["looks, and draws a token", { fencing: true, handOverMs: 100 }, 200],
    ["renews, as half of the lease is gone", { autoRenew: false }, 6_000],
    ["waits for the renewal in flight, and draws a token", { fencing: true }, TTL_MS / 2],
  ])("of a section that %s for the next caller, who then asks the table", async (_, options, heldMs) => {
    const { time, host, mutex, lasts, fate, heal } = scene();
    const lock = await mutex(options).lock();
    const next = mutex(options).lock();
    await time.advance(heldMs - 1);
    fate(everything);
    await time.advance(1);
    const before = host.sent.length;
    expect(await lasts(lock.unlock())).toBe(RELEASE_WITHIN_MS);
    expect(released(host.sent.slice(before))).toContain(lock.uuid);
    heal();
    await lasts(next);
    expect((await next).held).toBe(true);
    await (await next).unlock();
  });

  test.each<MutexOptions>([{}, { fair: true }])(
    "or sooner, where the lease passes on without a look that got no answer: %j",
    async (options) => {
      const { time, mutex, lasts, fate } = scene();
      const lock = await mutex({ ...options, handOverMs: 100 }).lock();
      const next = mutex({ ...options, handOverMs: 100 }).lock();
      await time.advance(200);
      fate(everything);
      expect(await lasts(lock.unlock())).toBe(RELEASE_WITHIN_MS / 2);
      expect((await next).uuid).toBe(lock.uuid);
    },
  );

  test("of a lock that is handed off: the lock is released in half of that time", async () => {
    const { time, host, mutex, lasts, fate } = scene();
    const lock = await mutex().lock();
    fate(everything);
    const outcome = failureOf(lock.handOff({ validForMs: 60_000 }));
    await time.advance(RELEASE_WITHIN_MS / 2);
    expect(released(host.sent)).toContain(lock.uuid);
    expect(await lasts(outcome)).toBe(RELEASE_WITHIN_MS / 2);
    await time.advance(60_000);
    expect(time.timers).toBe(0);
  });

  test("of a lease that has expired", async () => {
    const { time, host, mutex, lasts, fate } = scene();
    const lock = await mutex({ autoRenew: false }).lock();
    await time.advance(TTL_MS - 500);
    fate(everything);
    const outcome = failureOf(lock.unlock());
    expect(await lasts(outcome)).toBe(RELEASE_WITHIN_MS);
    expect(await outcome).toMatchObject({ code: "LOCK_LOST", reason: "expired" });
    expect(released(host.sent)).toContain(lock.uuid);
  });

  test.each<[string, MutexOptions]>([
    ["expired", { autoRenew: false }],
    ["max-hold", { maxHoldMs: TTL_MS - 600 }],
  ])("and tells of a loss: %s", async (reason, options) => {
    const { time, mutex, lasts, fate } = scene();
    const lock = await mutex(options).lock();
    await time.advance(TTL_MS - 500);
    fate(everything);
    const outcome = failureOf(lock.unlock());
    expect(await lasts(outcome)).toBe(RELEASE_WITHIN_MS);
    expect(await outcome).toMatchObject({ code: "LOCK_LOST", reason });
    expect(lock.signal.reason).toBe(await outcome);
  });

  test("and tells of a loss by a close", async () => {
    const { time, host, mutex, lasts, fate } = scene();
    const lock = await mutex().lock();
    const closing = failureOf(host.session.close(0));
    await time.advance(1);
    fate(everything);
    const outcome = failureOf(lock.unlock());
    expect(await lasts(outcome)).toBe(RELEASE_WITHIN_MS);
    expect(await outcome).toMatchObject({ code: "LOCK_LOST", reason: "closed" });
    await lasts(closing);
  });

  test("whose lease would have passed on, had not a close begun meanwhile", async () => {
    const { time, host, mutex, lasts, fate } = scene();
    const lock = await mutex({ handOverMs: 100 }).lock();
    const next = failureOf(mutex({ handOverMs: 100 }).lock());
    await time.advance(200);
    fate(everything);
    const unlocked = lock.unlock();
    await time.advance(100);
    const closing = host.session.close(0);
    expect(await lasts(unlocked)).toBe(RELEASE_WITHIN_MS - 100);
    expect(await next).toMatchObject({ code: "LOCK_CLOSED" });
    await lasts(closing);
  });
});

describe("a section that has lost its lock, on a table that is silent at its end", () => {
  const lose = async (time: ManualTime): Promise<void> => await time.advance(TTL_MS);

  test("shares no value", async () => {
    const { time, host, mutex, lasts, fate, heal } = scene();
    const flying = failureOf(mutex({ autoRenew: false }).singleFlight(() => time.clock().sleep(TTL_MS)));
    await turn();
    const joined = mutex({ autoRenew: false }).singleFlight(() => "fresh");
    fate(everything);
    await lose(time);
    expect(await lasts(flying)).toBeLessThanOrEqual(RELEASE_WITHIN_MS);
    expect(await flying).toMatchObject({ code: "LOCK_LOST" });
    heal();
    await lasts(joined);
    expect(await joined).toBe("fresh");
    expect(host.table.rows.filter(({ sort }) => sort === "flight")).toHaveLength(1);
  });

  test("ends a term and not the election", async () => {
    const { time, mutex, lasts, fate, heal } = scene();
    const events = hear("dynamutex:election");
    const led: Lock[] = [];
    const election = mutex({ autoRenew: false }).elect(async (lock) => {
      led.push(lock);
      await time.clock().sleep(TTL_MS);
    });
    await turn();
    fate(everything);
    await lose(time);
    await time.advance(RELEASE_WITHIN_MS);
    heal();
    await time.advanceUntil(() => led.length === 2, { stepMs: 10 });
    const stopped = events.find(({ event }) => event === "stopped");
    expect(stopped).toMatchObject({ uuid: led[0]?.uuid, cause: { code: "LOCK_LOST" } });
    await lasts(election.resign());
  });
});

describe("a release that got no answer in time", () => {
  async function unanswered(options: MutexOptions = {}) {
    const all = scene();
    const lock = await all.mutex(options).lock();
    all.fate(everything);
    await all.lasts(lock.unlock());
    return { ...all, lock };
  }

  test("goes on in the background: the lock is free as soon as the table answers again", async () => {
    const { time, host, others, heal } = await unanswered();
    await time.advance(3_000);
    expect(await others.tryLock()).toBeNull();
    heal();
    await time.advanceUntil(() => host.row("job") === undefined, { stepMs: 10, withinMs: 5_000 });
    await time.advance(3_000);
    expect([time.timers, (await others.tryLock())?.held]).toEqual([0, true]);
  });

  test("goes on until the lease ends, and no longer", async () => {
    const { time, host } = await unanswered();
    await time.advance(TTL_MS - 1_000);
    const before = host.sent.length;
    expect(time.timers).toBeGreaterThan(0);
    await time.advance(1_000);
    expect(host.sent.length).toBeGreaterThanOrEqual(before);
    expect(time.timers).toBe(0);
  });

  test("lets others in from when it is answered: the next caller of its process stands back for them", async () => {
    const { time, mutex, others, fate, heal, host, lasts } = scene();
    const lock = await mutex({ handOverMs: 100 }).lock();
    const theirs = watch(others.lock());
    await time.advance(3_000);
    const next = watch(mutex().lock());
    await time.advance(TTL_MS / 2);
    fate(everything);
    await lasts(failureOf(lock.unlock()));
    // The turn that they were given at the end is over by now, and the row was never free.
    await time.advance(2_000);
    heal();
    await time.advanceUntil(() => host.row("job")?.uuid !== lock.uuid);
    await time.advanceUntil(() => theirs.settled || next.settled);
    expect([theirs.settled, next.settled]).toEqual([true, false]);
  });

  test("tells nobody what it finds: its section has had its answer", async () => {
    const { time, steal, heal, lock, host } = await unanswered();
    const [lost, failed] = [hear("dynamutex:lost"), hear("dynamutex:release-failed")];
    steal();
    heal();
    await time.advance(TTL_MS);
    expect([lost, failed, lock.signal.aborted, time.timers]).toEqual([[], [], false, 0]);
    expect(host.row("job")).toMatchObject({ uuid: "theirs" });
  });

  test("keeps no process alive: it waits by alarms, and does not sleep", async () => {
    const { time, host } = await unanswered();
    const [sleeps, sent] = [time.sleeps.length, host.sent.length];
    await time.advance(TTL_MS);
    expect(host.sent.length).toBeGreaterThan(sent + 1);
    expect(time.sleeps.length).toBe(sleeps);
  });

  test("is told once, though it is never answered", async () => {
    const failures = hear("dynamutex:release-failed");
    const { time } = await unanswered();
    await time.advance(TTL_MS);
    expect(failures).toHaveLength(1);
  });

  test("is waited for by a close, within its bounds", async () => {
    const { time, host, heal } = await unanswered();
    const closing = watch(host.session.close(0));
    await time.advance(RELEASE_WITHIN_MS - 1);
    expect([closing.settled, host.closed]).toEqual([false, 0]);
    await time.advance(1);
    expect(closing.settled).toBe(true);
    heal();
    const before = host.sent.length;
    await time.advance(TTL_MS);
    expect([host.sent.length, host.closed]).toEqual([before, 1]);
  });

  test("leaves a row with a hold taken for that hold", async () => {
    const { time, host, mutex, lasts, fate, heal } = scene();
    const lock = await mutex().lock();
    void lock;
    await lock.unlock();
    const held = await mutex().tryLock({ holdAtLeastMs: 8_000 });
    const until = time.now + 8_000;
    fate(everything);
    await lasts(held?.unlock() as Promise<void>);
    heal();
    await time.advanceUntil(() => host.row("job")?.uuid === undefined, { stepMs: 10 });
    expect(host.row("job")?.expires).toBe(until);
  });
});

describe("a lease that may have either of two uuids", () => {
  /** A lease that was to pass on, whose new uuid is on the row or not: the reply was lost. */
  async function reissuing(what: Fate) {
    const all = scene();
    const lock = await all.mutex({ fencing: true }).lock();
    const next = new AbortController();
    const waiting = failureOf(all.mutex({ fencing: true }).lock({ signal: next.signal }));
    await all.time.advance(200);
    return { ...all, lock, what, next, waiting };
  }

  test.each(["lost", "reply lost"] as const)("is released under both in time: %s", async (what) => {
    const { time, host, lasts, fate, lock, next, waiting } = await reissuing(what);
    fate(isReissue, what);
    next.signal.throwIfAborted();
    const unlocking = lock.unlock();
    await time.advance(1);
    next.abort(new Error("gone"));
    expect(await lasts(unlocking)).toBeLessThan(RELEASE_WITHIN_MS);
    expect([host.row("job")?.uuid, new Set(released(host.sent)).size]).toEqual([undefined, 2]);
    await waiting;
  });

  test("has one release of each in time, though the first gets no answer", async () => {
    const { time, host, lasts, lock, next, waiting } = await reissuing("reply lost");
    host.fate = (message) => {
      if (isReissue(message)) return "reply lost";
      return released([message]).includes(lock.uuid) ? "lost" : "answered";
    };
    const unlocking = lock.unlock();
    await time.advance(1);
    next.abort(new Error("gone"));
    expect(await lasts(unlocking)).toBeLessThan(RELEASE_WITHIN_MS);
    expect(host.row("job")?.uuid).toBeUndefined();
    await waiting;
  });

  test("is released by a close once that write is answered", async () => {
    const { time, host, lasts, lock, waiting } = await reissuing("answered");
    const answer = deferred<void>();
    host.hold = (message) => (isReissue(message) ? answer.promise : undefined);
    const unlocking = lock.unlock();
    await time.advance(1);
    const closing = host.session.close(0);
    await time.advance(1);
    expect(host.sent.filter(isRelease)).toEqual([]);
    answer.resolve();
    await lasts(Promise.all([unlocking, closing, waiting]));
    expect(host.row("job")?.uuid).toBeUndefined();
  });

  test("is not taken for released if the uuid that had no answer is still there", async () => {
    const { time, host, heal, lasts, lock, next, waiting } = await reissuing("lost");
    host.fate = (message) => (isReissue(message) || released([message]).includes(lock.uuid) ? "lost" : "answered");
    const unlocking = lock.unlock();
    await time.advance(1);
    next.abort(new Error("gone"));
    await lasts(unlocking);
    expect(host.row("job")?.uuid).toBe(lock.uuid);
    heal();
    await time.advanceUntil(() => host.row("job")?.uuid === undefined, { stepMs: 10, withinMs: 3_000 });
    await waiting;
  });
});

test("a process that was frozen after unlock() does not count its own dead lease as the holder", async () => {
  const { time, mutex, heal, fate } = scene();
  const lock = await mutex().lock();
  fate(isRelease);
  const unlocking = lock.unlock();
  await turn();
  // As Lambda does after the handler has returned: no timer rings.
  time.skip(5 * 60_000);
  heal();
  const next = await mutex().tryLock();
  expect(next?.held).toBe(true);
  await time.advance(1);
  await unlocking;
  expect(next?.held).toBe(true);
});

test("a look that is answered too late passes nothing on", async () => {
  const { time, host, mutex, lasts, fate, heal } = scene();
  const lock = await mutex({ handOverMs: 100 }).lock();
  const next = mutex({ handOverMs: 100 }).lock();
  await time.advance(200);
  const late = deferred<void>();
  fate(isLook, late.promise);
  expect(await lasts(lock.unlock())).toBeLessThanOrEqual(RELEASE_WITHIN_MS / 2);
  heal();
  await lasts(next);
  late.resolve();
  await time.advance(1);
  expect([(await next).held, host.row("job")?.uuid]).toEqual([true, (await next).uuid]);
});

test("the release of a section that has outlasted maxHoldMs is tried for as long as any other", async () => {
  const { time, host, mutex, lasts } = scene();
  const releaseWithinMs = 5_000;
  const lock = await mutex({ maxHoldMs: 2_000, releaseWithinMs }).lock();
  await time.advance(2_000);
  expect(lock.held).toBe(false);
  const endsAt = time.elapsed + releaseWithinMs - 1_500;
  host.fate = (message) =>
    isRelease(message) && time.elapsed < endsAt ? Promise.reject(new Error("reset")) : "answered";
  const outcome = failureOf(lock.unlock());
  expect(await lasts(outcome)).toBeLessThan(releaseWithinMs);
  expect(await outcome).toMatchObject({ code: "LOCK_LOST", reason: "max-hold" });
  expect(host.row("job")).toBeUndefined();
});
