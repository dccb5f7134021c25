import { expect, test } from "@jest/globals";
import { LockStoreError } from "../../../lib/errors.js";
import type { Lock } from "../../../lib/lock.js";
import type { Mutex } from "../../../lib/mutex.js";
import type { MutexOptions } from "../../../lib/options/mutex.js";
import { lockAt } from "../../../lib/protocol/addresses.js";
import type { Take } from "../../../lib/protocol/writes.js";
import { LONGEST_ATTEMPT_MS } from "../../../lib/session/retry.js";
import type { LockSet } from "../../../lib/sets/lock-set.js";
import type { MemoryTable } from "../../../lib/testing/memory-table.js";
import { hear } from "../../support/diagnostics.js";
import { turn, watch } from "../../support/eventually.js";
import { createGate } from "../../support/fault-proxy/gate.js";
import { hosts, isRelease, isTake, type MemoryHost } from "../../support/memory-host.js";
import type { Message } from "../../support/message.js";
import { takeWith } from "../../support/store-cases.js";

const TTL_MS = 1_000;
/** What a claim is tried for: its lease, less the margin. */
const NINE_TENTHS_MS = 900;
/** The longest that a call may take more than that: a refusal, a poll, a claim. */
const SOON_MS = 100;

const isClaim = (message: Message): boolean => isTake(message) || message.kind === "writeAll";
const isRenewal = (message: Message): boolean => message.kind === "write" && message.write.kind === "renew";

/** A host whose claims are applied, and not answered for so long; that a row is somebody else's, it hears. */
function world(unansweredMs: number) {
  const { time, one: host, other } = hosts();
  const isOfAnother = () => host.table.rows.some(({ owner }) => owner !== "one");
  host.fate = (message) => {
    return isClaim(message) && time.elapsed < unansweredMs && !isOfAnother() ? "reply lost" : "answered";
  };
  /** Waits for a call while time passes. */
  const settled = async <T>(call: Promise<T>): Promise<T> => {
    await time.settle(call);
    return await call;
  };
  const claims = () => host.sent.flatMap((it) => (it.kind === "write" && it.write.kind === "take" ? [it.write] : []));
  return { time, host, other, table: host.table, settled, claims };
}

const claimsOf = (host: MemoryHost): number => host.sent.filter(isTake).length;
const mutexOf = (host: MemoryHost, options: MutexOptions = {}) => host.mutex("name", { ttlMs: TTL_MS, ...options });
const lockAll = (host: MemoryHost, options: MutexOptions = {}) =>
  host.lockAll(["name", "other"], { ttlMs: TTL_MS, ...options });

/** Somebody else gets the lock in the place of the host's own claim. */
function giveAway(table: MemoryTable): void {
  table.plant(lockAt("name"), undefined);
  table.apply(takeWith({ at: lockAt("name"), uuid: "theirs", owner: "elsewhere", expires: 2 ** 42 }));
}

const CALLS: readonly [string, (host: MemoryHost) => Promise<Lock | LockSet | null>][] = [
  ["tryLock", (host) => mutexOf(host).tryLock()],
  ["tryLock of a fair mutex", (host) => mutexOf(host, { fair: true }).tryLock()],
  ["tryLock with a token", (host) => mutexOf(host, { fencing: true }).tryLock()],
  ["tryLock that trusts no clock", (host) => mutexOf(host, { takeover: "unchanged" }).tryLock()],
  ["lock with waitMs 0", (host) => mutexOf(host).lock({ waitMs: 0 })],
  ["lock", (host) => mutexOf(host).lock()],
  ["lock of a fair mutex", (host) => mutexOf(host, { fair: true }).lock()],
  ["lockAll with waitMs 0", (host) => lockAll(host, { waitMs: 0 })],
  ["lockAll", (host) => lockAll(host)],
];

const DOES_NOT_WAIT = CALLS.filter(([name]) => name.endsWith("waitMs 0"));

test.each(CALLS.filter((call) => !DOES_NOT_WAIT.includes(call)))(
  "trap 36: %s whose replies are lost for nine tenths of a lease gets the lock, and does not wait for its own claim",
  async (_, call) => {
    const { time, table, host, settled } = world(NINE_TENTHS_MS);
    const acquired = hear("dynamutex:acquired");
    const lock = await settled(call(host));
    expect(lock?.held).toBe(true);
    expect(time.elapsed).toBeLessThan(NINE_TENTHS_MS + SOON_MS);
    const uuid = lock !== null && "uuid" in lock ? lock.uuid : lock?.locks.get("name")?.uuid;
    expect(table.row(lockAt("name"))?.uuid).toBe(uuid);
    // It was nobody else's before.
    expect(acquired.map(({ takeover }) => takeover)).toEqual(acquired.map(() => undefined));
    await settled(lock?.unlock() ?? Promise.resolve());
    expect(table.row(lockAt("name"))?.uuid).toBeUndefined();
  },
);

test.each(DOES_NOT_WAIT)(
  "trap 36: %s whose reply is lost repeats nothing, says that nothing answered, and leaves no row behind",
  async (_, call) => {
    const { time, host, table, claims } = world(NINE_TENTHS_MS);
    const failure = await time.outcome(call(host));
    expect(failure).toMatchObject({
      code: "LOCK_STORE",
      transient: true,
      message: expect.stringContaining("No answer"),
    });
    expect(time.elapsed).toBe(NINE_TENTHS_MS);
    expect(claims().length).toBeLessThanOrEqual(1);
    await time.settle(host.session.close(0));
    expect(table.rows).toEqual([]);
  },
);

test("trap 36: the row of an own claim is taken over at once, also where the background can neither read nor remove it", async () => {
  const { time, host, settled } = world(NINE_TENTHS_MS);
  const { fate } = host;
  host.fate = (message) => (message.kind === "read" || isRelease(message) ? "lost" : fate(message));
  const lock = await settled(mutexOf(host).tryLock());
  expect(lock?.held).toBe(true);
  expect(time.elapsed).toBeLessThan(NINE_TENTHS_MS + SOON_MS);
  expect(host.row("name")?.uuid).toBe(lock?.uuid);
});

test.each(CALLS.filter(([name]) => name.includes("try") || name.endsWith("0")))(
  "trap 36: %s whose replies are lost to the end fails with the cause, and names no holder",
  async (_, call) => {
    const { time, host } = world(60_000);
    const failure = await time.outcome(call(host));
    expect(failure).toBeInstanceOf(LockStoreError);
    expect(failure).toMatchObject({ transient: true });
    const { message, cause } = failure as LockStoreError;
    expect(`${message} ${cause}`).toContain("No answer from the table");
  },
);

test("trap 36: a wait for the answer to its own claim is no wait for others", async () => {
  const { time, host } = world(60_000);
  const failure = await time.outcome(mutexOf(host).lock({ waitMs: 2_500 }));
  expect(failure).toMatchObject({ code: "LOCK_STORE", message: expect.stringContaining("No answer from the table") });
});

test("trap 36: a call whose own claim stays in its way says that the lock is not held", async () => {
  const { time, host } = world(0);
  host.fate = (message) => (isTake(message) && claimsOf(host) === 1 ? "reply lost" : "answered");
  const giveUp = new AbortController();
  const gone = mutexOf(host).lock({ signal: giveUp.signal });
  await turn();
  giveUp.abort(new Error("the caller gave up"));
  await expect(gone).rejects.toThrow("the caller gave up");
  // Until then, the next call would share that attempt.
  await time.advance(TTL_MS / 4);
  const { write } = host.session.store;
  const row = host.row("name");
  host.session.store.write = async (it, signal) =>
    it.kind === "take" ? { kind: "refused", row, retried: false } : await write.call(host.session.store, it, signal);
  const failure = await time.outcome(mutexOf(host).lock({ waitMs: 10 }));
  expect(failure).toMatchObject({ code: "LOCK_STORE", transient: true });
  expect(String(failure)).toContain("is not held: an earlier claim of this process got no answer");
});

test("trap 36: a try whose host was suspended beside its own claim fails with the cause of that, and names no holder", async () => {
  const { time, host, claims } = world(0);
  const { clock } = host.session;
  const { atMost } = clock;
  // The first claim gets no answer, and the refusal of the next one is heard after the 10 s of a try.
  const isFirst = () => claims().every(({ uuid }) => uuid === claims()[0]?.uuid);
  host.fate = (message) => (isTake(message) && isFirst() ? "reply lost" : "answered");
  host.hold = async () => {
    await turn();
    if (!isFirst()) clock.atMost = () => atMost() + 20_000;
  };
  const failure = await time.outcome(mutexOf(host).tryLock());
  expect(failure).toMatchObject({ code: "LOCK_STORE", transient: true, cause: { code: "LOCK_STORE" } });
  expect(String(failure)).toContain("an earlier claim of this process got no answer");
});

test("trap 36: a claim for the next period takes over the one for the period before, whose reply was lost", async () => {
  const { time, host } = world(500 + NINE_TENTHS_MS);
  await time.advance(500);
  const result = await time.outcome(mutexOf(host).tryRun((lock) => lock.tick, { everyMs: 1_000 }));
  expect(result).toEqual({ ran: true, value: time.now - (time.now % 1_000) });
});

test("trap 36: a claim for the same tick fails, because the tick may be the earlier claim's: it is not done, nor held", async () => {
  const { time, host } = world(NINE_TENTHS_MS);
  const failure = await time.outcome(mutexOf(host).tryRun(() => "ran", { once: 7 }));
  expect(failure).toMatchObject({ code: "LOCK_STORE", transient: true });
});

test("trap 36: a tick that was taken by a late copy of a refused claim of the same call is not done, nor held", async () => {
  const { time, table, host, claims } = world(0);
  const held = takeWith({ at: lockAt("name"), uuid: "other", expires: time.now + 50 });
  table.apply(held);
  // While the refusal is under way, the other's lease ends, is released, and the network delivers the claim once more.
  const deliverAgain = async (): Promise<void> => {
    await time.clock().sleep(100);
    table.apply({ kind: "vacate", at: held.at, uuid: "other", leaves: { kind: "free" }, remembers: "nothing" });
    for (const copy of claims()) table.apply(copy);
  };
  host.hold = (message) => (isTake(message) && claims().length === 1 ? deliverAgain() : undefined);
  const failure = await time.outcome(mutexOf(host).tryRun(() => "ran", { once: 7 }));
  expect(claims()).toHaveLength(2);
  expect(failure).toMatchObject({ code: "LOCK_STORE", message: expect.stringContaining("nothing has run for it") });
});

test("trap 36: a lock that came too late and cannot be given back is not in the way of the call that it came to", async () => {
  const { time, host, settled } = world(0);
  // The take is answered when half of its lease is over; the reply to its renewal is lost, and no release gets through.
  const answeredAt = 700;
  host.fate = (message) => {
    if (isRelease(message)) return "lost";
    const isLost = time.elapsed < (isTake(message) ? 300 : isRenewal(message) ? answeredAt + NINE_TENTHS_MS : 0);
    return isLost ? "reply lost" : "answered";
  };
  host.hold = (message) => {
    return isTake(message) && time.elapsed < answeredAt ? time.clock().sleep(answeredAt - time.elapsed) : undefined;
  };
  const lock = await settled(mutexOf(host).tryLock());
  expect(lock?.held).toBe(true);
  expect(time.elapsed).toBeLessThan(answeredAt + NINE_TENTHS_MS + SOON_MS);
});

test("a row of somebody else's is held, whatever became of the call's own claims", async () => {
  const { host, settled } = world(60_000);
  const trying = mutexOf(host).tryRun(() => "ran");
  await turn();
  expect(host.row("name")?.owner).toBe("one");
  giveAway(host.table);
  expect(await settled(trying)).toMatchObject({ ran: false, reason: "held", holder: { uuid: "theirs" } });
});

test("of a set, the row of somebody else's is named, and not that of the own claim", async () => {
  const { time, host } = world(60_000);
  const failing = time.outcome(lockAll(host, { waitMs: 500 }));
  await turn();
  for (const name of ["name", "other"]) expect(host.row(name)?.owner).toBe("one");
  giveAway(host.table);
  expect(await failing).toMatchObject({ code: "LOCK_TIMEOUT", holder: { uuid: "theirs" } });
  expect(time.elapsed).toBeLessThan(NINE_TENTHS_MS + SOON_MS);
});

test("a claim that one call has given up is free for the next call of its process, and held for other processes", async () => {
  const { time, host, other, settled } = world(0);
  // Not found in the background either: that is not what this is about.
  host.fate = (message) => (isTake(message) ? "reply lost" : message.kind === "read" ? "lost" : "answered");
  const giveUp = new AbortController();
  const waiting = mutexOf(host).lock({ signal: giveUp.signal });
  await turn();
  expect(host.row("name")?.owner).toBe("one");
  giveUp.abort(new Error("the caller gave up"));
  await expect(waiting).rejects.toThrow("the caller gave up");
  // The attempt in flight is given up by its own timeout.
  await time.advance(TTL_MS / 4);
  host.fate = (message) => (message.kind === "read" ? "lost" : "answered");
  expect(await settled(mutexOf(other).tryLock())).toBeNull();
  const lock = await settled(mutexOf(host).tryLock());
  expect(lock?.held).toBe(true);
  expect(time.elapsed).toBeLessThan(TTL_MS);
  expect(await settled(mutexOf(other).tryLock())).toBeNull();
  await settled(lock?.unlock() ?? Promise.resolve());
});

const GIVEN_UP: readonly [string, (mutex: Mutex, signal: AbortSignal) => Promise<Lock | null>][] = [
  ["lock", (mutex, signal) => mutex.lock({ signal })],
  ["lock with waitMs 0", (mutex, signal) => mutex.lock({ signal, waitMs: 0 })],
];

test.each(GIVEN_UP)(
  "a %s that was given up while its claim is under way is not in the way of a try of its process",
  async (_, call) => {
    const { time, host, claims, settled } = world(0);
    host.fate = (message) => (isTake(message) && claims().length === 1 ? "lost" : "answered");
    const giveUp = new AbortController();
    const first = call(mutexOf(host), giveUp.signal);
    await turn();
    // Its caller still waits, and may get the lock.
    expect(await mutexOf(host).tryLock()).toBeNull();
    expect(claims()).toHaveLength(1);
    giveUp.abort(new Error("the caller gave up"));
    const lock = await mutexOf(host).tryLock();
    await expect(first).rejects.toThrow("the caller gave up");
    expect(host.row("name")?.uuid).toBe(lock?.uuid);
    expect([lock?.held, claims().length, time.elapsed]).toEqual([true, 2, 0]);
    await settled(lock?.unlock() ?? Promise.resolve());
  },
);

/** A process whose `lock()` has ended before its claim was answered, which is when `answer` is called. */
async function abandoned(options: MutexOptions = {}) {
  const { time, one, other } = hosts();
  const mutex = mutexOf(one, options);
  const { released, release: answer } = createGate();
  one.hold = (message) => (isTake(message) && claimsOf(one) === 1 ? released : undefined);
  const giveUp = new AbortController();
  const gone = mutex.lock({ signal: giveUp.signal });
  await time.advance(1);
  giveUp.abort(new Error("the caller gave up"));
  await expect(gone).rejects.toThrow("the caller gave up");
  return { time, one, other, mutex, answer };
}

test.each([false, true])(
  "a claim whose release gets no answer keeps nobody of its process out (fair: %s)",
  async (fair) => {
    const { time, one, other, mutex, answer } = await abandoned({ fair });
    one.fate = (message) => (isRelease(message) ? "lost" : "answered");
    answer();
    await time.advance(1);
    const begunAt = time.elapsed;
    const lock = await time.outcome(mutex.lock());
    expect(lock).toMatchObject({ held: true });
    expect(time.elapsed - begunAt).toBeLessThan(TTL_MS / 2);
    // For all others it is the holder until then.
    expect(await time.outcome(mutexOf(other, { fair }).tryLock())).toBeNull();
  },
);

test.each(["before", "others"])(
  "a set names the holder of %s, beside a claim that its process has given up",
  async (theirs) => {
    const { time, one, other, answer } = await abandoned();
    one.fate = (message) => (isRelease(message) ? "lost" : "answered");
    answer();
    await time.outcome(other.mutex(theirs).lock());
    expect(await time.outcome(one.lockAll([theirs, "name"], { ttlMs: TTL_MS, waitMs: 0 }))).toMatchObject({
      code: "LOCK_TIMEOUT",
      holder: { name: theirs, owner: "other" },
    });
  },
);

test("a late copy of a claim that was given up is refused while the next lock of its process is held", async () => {
  const { table, host, settled, claims } = world(NINE_TENTHS_MS);
  const lock = await settled(mutexOf(host).tryLock());
  const [early] = claims() as [Take];
  expect(early.uuid).not.toBe(lock?.uuid);
  expect(table.apply(early).kind).toBe("refused");
  expect(table.row(lockAt("name"))?.uuid).toBe(lock?.uuid);
});

test("a try with an abandoned claim of its process in its way ends after 10 s, however long its polls are", async () => {
  const { time, one } = hosts();
  const options = { ttlMs: 60_000, poll: { minMs: 60_000, maxMs: 60_000 } };
  await (await one.mutex("warm").lock()).unlock();
  // The claim is applied and its caller goes; nothing tells this process of it, until the next one is refused.
  one.fate = (message) => (isTake(message) ? "reply lost" : "lost");
  const gone = one.mutex("job", { ...options, waitMs: 100 }).lock();
  const ended = expect(gone).rejects.toMatchObject({ code: "LOCK_STORE" });
  await time.advance(LONGEST_ATTEMPT_MS);
  await ended;
  one.fate = (message) => (isTake(message) ? "answered" : "lost");
  await time.advance(4_000);
  const trying = watch(one.mutex("job", options).tryLock());
  await time.advance(10_000);
  expect(trying.settled).toBe(true);
});
