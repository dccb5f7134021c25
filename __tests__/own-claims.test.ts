import { expect, test } from "@jest/globals";
import { LockStoreError } from "../lib/errors.js";
import type { Lock } from "../lib/lock.js";
import { Mutex } from "../lib/mutex.js";
import type { LockOptions } from "../lib/options/calls.js";
import { type MutexOptions, mutexSettings } from "../lib/options/mutex.js";
import { lockAt } from "../lib/protocol/addresses.js";
import { Sections } from "../lib/queues/sections.js";
import { Session } from "../lib/session/session.js";
import { lockAll } from "../lib/sets/lock-all.js";
import type { LockSet } from "../lib/sets/lock-set.js";
import { hear } from "./support/diagnostics.js";
import { turn, watch } from "./support/eventually.js";
import { lossyStore } from "./support/lossy-store.js";
import { ManualTime } from "./support/manual-time.js";
import { takeWith } from "./support/store-cases.js";

const TTL_MS = 1_000;
/** What a claim is tried for: its lease, less the margin. */
const NINE_TENTHS_MS = 900;
const STEP_MS = 10;
/** The longest that a call may take more than that: a refusal, a poll, a claim. */
const SOON_MS = 100;

/** A table whose replies can be lost, and hosts of it. */
function world() {
  const time = new ManualTime();
  const { table, store, lost } = lossyStore();
  const host = (owner = "host") => {
    const clock = time.clock();
    const session = new Session({ store, clock, owner, random: () => 0.5 });
    const sections = new Sections(session);
    const settings = (options: MutexOptions) => mutexSettings({ ttlMs: TTL_MS, ...options });
    return {
      session,
      mutex: (options: MutexOptions = {}) => new Mutex(sections, "name", settings(options)),
      lockAll: (names: readonly string[], options: LockOptions) => lockAll(session, names, settings({}), options),
    };
  };
  /** Loses the replies to takes that are applied, for so long. */
  const loseRepliesFor = (ms: number): void => {
    lost.take = () => time.elapsed < ms;
  };
  /** Waits for a call while time passes, in steps: what a step sets in motion comes before the next. */
  async function settled<T>(call: Promise<T>): Promise<T> {
    const watched = watch(call);
    while (!watched.settled) await time.advance(STEP_MS);
    return await call;
  }
  return { time, table, lost, host, loseRepliesFor, settled };
}

type World = ReturnType<typeof world>;
type Host = ReturnType<World["host"]>;

const CALLS: readonly [string, (host: Host) => Promise<Lock | LockSet | null>][] = [
  ["tryLock", (host) => host.mutex().tryLock()],
  ["tryLock of a fair mutex", (host) => host.mutex({ fair: true }).tryLock()],
  ["tryLock with a token", (host) => host.mutex({ fencing: true }).tryLock()],
  ["tryLock that trusts no clock", (host) => host.mutex({ takeover: "unchanged" }).tryLock()],
  ["lock with waitMs 0", (host) => host.mutex().lock({ waitMs: 0 })],
  ["lock", (host) => host.mutex().lock()],
  ["lock of a fair mutex", (host) => host.mutex({ fair: true }).lock()],
  ["lockAll with waitMs 0", (host) => host.lockAll(["name", "other"], { waitMs: 0 })],
  ["lockAll", (host) => host.lockAll(["name", "other"], {})],
];

test.each(CALLS)(
  "trap 36: %s whose replies are lost for nine tenths of a lease gets the lock, and does not wait for its own claim",
  async (_, call) => {
    const { time, table, host, loseRepliesFor, settled } = world();
    loseRepliesFor(NINE_TENTHS_MS);
    const acquired = hear("dynamutex:acquired");
    const lock = await settled(call(host()));
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

test.each(CALLS.filter(([name]) => name.includes("try") || name.endsWith("0")))(
  "trap 36: %s whose replies are lost to the end fails with the cause, and names no holder",
  async (_, call) => {
    const { host, loseRepliesFor, settled } = world();
    loseRepliesFor(60_000);
    const failure = await settled(call(host())).catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(LockStoreError);
    expect(failure).toMatchObject({ transient: true });
    const { message, cause } = failure as LockStoreError;
    expect(`${message} ${cause}`).toContain("No answer from the table");
  },
);

test("trap 36: a wait that times out on its own claim names no holder, and has the cause", async () => {
  const { host, loseRepliesFor, settled } = world();
  loseRepliesFor(60_000);
  const failure = await settled(host().mutex().lock({ waitMs: 2_500 })).catch((error: unknown) => error);
  expect(failure).toMatchObject({ code: "LOCK_TIMEOUT", holder: undefined, cause: { code: "LOCK_STORE" } });
});

test("trap 36: a try whose host was suspended beside its own claim fails with the cause of that, and names no holder", async () => {
  const { lost, host, settled } = world();
  const { session, mutex } = host();
  const { clock } = session;
  const { atMost } = clock;
  // The first claim gets no answer, and the refusal of the next one is heard after the 10 s of a try.
  lost.take = () => {
    if (lost.takes[0]?.uuid === lost.takes.at(-1)?.uuid) return true;
    return turn().then(() => {
      clock.atMost = () => atMost() + 20_000;
    });
  };
  const failure = await settled(mutex().tryLock()).catch((error: unknown) => error);
  expect(failure).toMatchObject({ code: "LOCK_STORE", transient: true, cause: { code: "LOCK_STORE" } });
  expect(String(failure)).toContain("an earlier claim of this process got no answer");
});

test("trap 36: a claim for the next period takes over the one for the period before, whose reply was lost", async () => {
  const { time, host, loseRepliesFor, settled } = world();
  await time.advance(500);
  loseRepliesFor(500 + NINE_TENTHS_MS);
  const result = await settled(
    host()
      .mutex()
      .tryRun((lock) => lock.tick, { everyMs: 1_000 }),
  );
  expect(result).toEqual({ ran: true, value: time.now - (time.now % 1_000) });
});

test("trap 36: a claim for the same tick fails, because the tick may be the earlier claim's: it is not done, nor held", async () => {
  const { host, loseRepliesFor, settled } = world();
  loseRepliesFor(NINE_TENTHS_MS);
  const failure = await settled(
    host()
      .mutex()
      .tryRun(() => "ran", { once: 7 }),
  ).catch((error: unknown) => error);
  expect(failure).toMatchObject({ code: "LOCK_STORE", transient: true });
});

test("trap 36: a tick that was taken by a late copy of a refused claim of the same call is not done, nor held", async () => {
  const { time, table, lost, host, settled } = world();
  const held = takeWith({ at: lockAt("name"), uuid: "other", expires: time.now + 50 });
  table.apply(held);
  // While the refusal is under way, the other's lease ends, is released, and the network delivers the claim once more.
  lost.take = () => {
    if (lost.takes.length > 1) return false;
    return time
      .clock()
      .sleep(100)
      .then(() => {
        table.apply({ kind: "vacate", at: held.at, uuid: "other", leaves: { kind: "free" }, remembers: "nothing" });
        for (const copy of lost.takes) table.apply(copy);
      });
  };
  const failure = await settled(
    host()
      .mutex()
      .tryRun(() => "ran", { once: 7 }),
  ).catch((error: unknown) => error);
  expect(lost.takes.length).toBe(2);
  expect(failure).toMatchObject({ code: "LOCK_STORE", message: expect.stringContaining("nothing has run for it") });
});

test("trap 36: a lock that came too late and cannot be given back is not in the way of the call that it came to", async () => {
  const { time, lost, host, settled } = world();
  // The take is answered when half of its lease is over; the reply to its renewal is lost, and no release gets through.
  const { clock } = host().session;
  const answeredAt = 700;
  lost.take = () => time.elapsed < 300 || (time.elapsed < answeredAt && clock.sleep(answeredAt - time.elapsed));
  lost.renew = () => time.elapsed < answeredAt + NINE_TENTHS_MS;
  lost.vacate = () => "before";
  const lock = await settled(host().mutex().tryLock());
  expect(lock?.held).toBe(true);
  expect(time.elapsed).toBeLessThan(answeredAt + NINE_TENTHS_MS + SOON_MS);
});

test("a row of somebody else's is held, whatever became of the call's own claims", async () => {
  const { table, host, loseRepliesFor, settled } = world();
  loseRepliesFor(60_000);
  const trying = host()
    .mutex()
    .tryRun(() => "ran");
  await turn();
  expect(table.row(lockAt("name"))?.owner).toBe("host");
  table.plant(lockAt("name"), undefined);
  table.apply(takeWith({ at: lockAt("name"), uuid: "theirs", owner: "elsewhere", expires: 2 ** 42 }));
  expect(await settled(trying)).toMatchObject({ ran: false, because: "held", row: { uuid: "theirs" } });
});

test("of a set, the row of somebody else's is named, and not that of the own claim", async () => {
  const { time, table, host, loseRepliesFor, settled } = world();
  loseRepliesFor(60_000);
  const failing = settled(host().lockAll(["name", "other"], { waitMs: 0 })).catch((error: unknown) => error);
  await turn();
  for (const name of ["name", "other"]) expect(table.row(lockAt(name))?.owner).toBe("host");
  table.plant(lockAt("name"), undefined);
  table.apply(takeWith({ at: lockAt("name"), uuid: "theirs", owner: "elsewhere", expires: 2 ** 42 }));
  expect(await failing).toMatchObject({ code: "LOCK_TIMEOUT", holder: { uuid: "theirs" } });
  expect(time.elapsed).toBeLessThan(NINE_TENTHS_MS + SOON_MS);
});

test("a claim that one call has given up is free for the next call of its process, and held for other processes", async () => {
  const { table, lost, host, settled } = world();
  const first = host();
  const other = host("other");
  lost.take = () => true;
  // Not found in the background either: that is not what this is about.
  lost.read = () => "before";
  const giveUp = new AbortController();
  const waiting = first.mutex().lock({ signal: giveUp.signal });
  waiting.catch(() => undefined);
  await turn();
  expect(table.row(lockAt("name"))?.owner).toBe("host");
  giveUp.abort(new Error("the caller gave up"));
  await expect(waiting).rejects.toThrow("the caller gave up");
  // The attempt in flight is given up by its own timeout.
  await settled(first.session.clock.sleep(TTL_MS / 4));
  lost.take = () => false;
  expect(await settled(other.mutex().tryLock())).toBeNull();
  const lock = await settled(first.mutex().tryLock());
  expect(lock?.held).toBe(true);
  expect(await settled(other.mutex().tryLock())).toBeNull();
  await settled(lock?.unlock() ?? Promise.resolve());
});

test("a late copy of a claim that was given up is refused while the next lock of its process is held", async () => {
  const { table, host, loseRepliesFor, settled, lost } = world();
  loseRepliesFor(NINE_TENTHS_MS);
  const lock = await settled(host().mutex().tryLock());
  const [early] = lost.takes;
  if (early === undefined) throw new Error("no take was sent");
  expect(early.uuid).not.toBe(lock?.uuid);
  expect(table.apply(early).kind).toBe("refused");
  expect(table.row(lockAt("name"))?.uuid).toBe(lock?.uuid);
});
