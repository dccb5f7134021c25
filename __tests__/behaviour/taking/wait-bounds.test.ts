import { describe, expect, test } from "@jest/globals";
import { LockStoreError, LockTimeoutError } from "../../../lib/errors.js";
import { lockAt, permitAt, writerAt } from "../../../lib/protocol/addresses.js";
import { LONGEST_ATTEMPT_MS } from "../../../lib/session/retry.js";
import { turn, watch } from "../../support/eventually.js";
import type { ManualTime } from "../../support/manual-time.js";
import { hosts, inWords, isTake, type MemoryHost } from "../../support/memory-host.js";
import { takeWith } from "../../support/store-cases.js";

/** Each kind of call that takes a `waitMs`, for locks of the name `a`. */
const CALLS: readonly [string, (host: MemoryHost, waitMs: number) => Promise<unknown>][] = [
  ["lock()", (host, waitMs) => host.mutex("a").lock({ waitMs })],
  ["run()", (host, waitMs) => host.mutex("a").run((lock) => lock.unlock(), { waitMs })],
  ["lock() of a fenced mutex", (host, waitMs) => host.mutex("a", { fencing: true }).lock({ waitMs })],
  ["lock() of a fair mutex", (host, waitMs) => host.mutex("a", { fair: true }).lock({ waitMs })],
  ["lock() by watching alone", (host, waitMs) => host.mutex("a", { takeover: "unchanged" }).lock({ waitMs })],
  ["lock() with a short lease", (host, waitMs) => host.mutex("a", { ttlMs: 800 }).lock({ waitMs })],
  ["lock() of a semaphore", (host, waitMs) => host.semaphore("a", { permits: 2 }).lock({ waitMs })],
  ["lock() of all permits", (host, waitMs) => host.semaphore("a", { permits: 2 }).lock({ waitMs, permits: 2 })],
  ["lock() of a fair semaphore", (host, waitMs) => host.semaphore("a", { permits: 2, fair: true }).lock({ waitMs })],
  ["lock() of the exclusive side", (host, waitMs) => host.sharedMutex("a").exclusive.lock({ waitMs })],
  ["lock() of the shared side", (host, waitMs) => host.sharedMutex("a").shared.lock({ waitMs })],
  ["lockAll()", (host, waitMs) => host.lockAll(["a", "b"], { waitMs })],
  ["singleFlight()", (host, waitMs) => host.mutex("a").singleFlight(() => "own", { waitMs })],
];

const WAITS = [0, 1, 100] as const;

/** A network whose answers take so long, which is longer than any wait here. */
function distant(time: ManualTime, host: MemoryHost, ms = 150): void {
  const { sleep } = time.clock();
  host.fate = () => sleep(ms);
}

/** When each request of a call has left. What looks for a claim that nobody waits for reads. */
function departures(time: ManualTime, host: MemoryHost): number[] {
  const all: number[] = [];
  const { fate } = host;
  host.fate = (message) => {
    if (message.kind !== "read") all.push(time.elapsed);
    return fate(message);
  };
  return all;
}

/** Whoever has every lock of the name `a`, for a minute. */
function takeAll(time: ManualTime, { table }: MemoryHost): void {
  const lease = { uuid: "theirs", owner: "host-9", expires: time.now + 60_000, ttlMs: 60_000 };
  for (const at of [lockAt("a"), permitAt("a", 0), permitAt("a", 1), writerAt("a")])
    table.apply(takeWith({ ...lease, at }));
}

describe("a free lock is never called busy", () => {
  const cases = CALLS.flatMap(([name, call]) => WAITS.map((waitMs) => [name, waitMs, call] as const));

  test.each(cases)("trap 54: %s that waits for %d ms gets it, however far the table is", async (_, waitMs, call) => {
    const { time, one } = hosts();
    distant(time, one);
    expect(await time.outcome(call(one, waitMs))).not.toBeInstanceOf(Error);
    expect(time.elapsed).toBeGreaterThan(waitMs);
  });

  const SLOW_MS = [500, 650, 800] as const;
  const LATE_CALLS: readonly [string, (host: MemoryHost, waitMs: number) => Promise<unknown>][] = [
    ["lock()", (host, waitMs) => host.mutex("a", { ttlMs: 1_000 }).lock({ waitMs })],
    ["lockAll()", (host, waitMs) => host.lockAll(["a", "b"], { ttlMs: 1_000, waitMs })],
    [
      "lock() of several permits",
      (host, waitMs) => host.semaphore("a", { permits: 2, ttlMs: 1_000 }).lock({ waitMs, permits: 2 }),
    ],
  ];
  test.each(
    LATE_CALLS.flatMap(([name, call]) =>
      SLOW_MS.flatMap((slowMs) => [0, 100].map((waitMs) => [name, waitMs, slowMs, call] as const)),
    ),
  )(
    "%s that waits for %d ms gets it where answers take %d of the 1 000 ms of its lease",
    async (_, waitMs, slowMs, call) => {
      const { time, one } = hosts();
      distant(time, one, slowMs);
      expect(await time.outcome(call(one, waitMs))).not.toBeInstanceOf(Error);
    },
  );

  test.each(cases)("%s that waits for %d ms names who has it, after one try", async (_, waitMs, call) => {
    const { time, one } = hosts();
    takeAll(time, one);
    distant(time, one);
    const failure = await time.outcome(call(one, waitMs));
    expect(failure).toBeInstanceOf(LockTimeoutError);
    expect(failure).toMatchObject({ holder: { uuid: "theirs", owner: "host-9" } });
    // A look and a claim at the most, and no pause.
    expect(time.elapsed).toBeLessThanOrEqual(2 * 150);
  });

  test("also if its holder let go of it just before waitMs passed", async () => {
    const { time, one, other } = hosts();
    const held = await other.mutex("a").lock();
    const waiting = watch(one.mutex("a").lock({ waitMs: 2_000 }));
    await time.advance(1_000);
    await held.unlock();
    // The answer to the claim comes after waitMs.
    const { sleep } = time.clock();
    one.fate = (message) => (isTake(message) ? sleep(1_500) : "answered");
    await time.advance(1_000);
    expect(waiting.settled).toBe(false);
    await time.advance(1_000);
    expect(waiting).toMatchObject({ settled: true });
    expect(one.row("a")?.owner).toBe("one");
  });
});

describe("a table that is silent is no lock that is busy", () => {
  const cases = CALLS.flatMap(([name, call]) => [...WAITS, 5_000].map((waitMs) => [name, waitMs, call] as const));

  test.each(cases)("trap 54: %s that waits for %d ms ends after one timeout", async (_, waitMs, call) => {
    const { time, one } = hosts();
    one.fate = () => "lost";
    const left = departures(time, one);
    const failure = await time.outcome(call(one, waitMs));
    expect(failure).toBeInstanceOf(LockStoreError);
    expect(failure).toMatchObject({ transient: true, answered: false });
    expect(String(failure)).toMatch(/No answer from the table .*within \d+ ms/);
    expect(time.elapsed).toBeLessThanOrEqual(waitMs + LONGEST_ATTEMPT_MS);
    expect(left.filter((at) => at > 0 && at >= waitMs)).toEqual([]);
  });

  test.each(cases)("%s that waits for %d ms sends nothing after that to one that refuses", async (_, waitMs, call) => {
    const { time, one } = hosts();
    one.fate = () => Promise.reject(new LockStoreError("connect ECONNREFUSED", { transient: true, answered: false }));
    const left = departures(time, one);
    expect(await time.outcome(call(one, waitMs))).toMatchObject({ code: "LOCK_STORE" });
    expect(time.elapsed).toBeLessThanOrEqual(waitMs + 1);
    expect(left.filter((at) => at > 0 && at >= waitMs)).toEqual([]);
  });

  test.each(cases)("%s that waits for %d ms waits 3 s longer for its turn among requests", async (_, waitMs, call) => {
    const { time, one } = hosts();
    Object.defineProperty(one.session.scheduler, "width", { value: 0 });
    const error = await time.outcome(call(one, waitMs));
    expect(error).toMatchObject({ code: "LOCK_STORE", transient: true });
    expect((error as Error).message).toMatch(/^Not sent within \d+ ms: 0 requests of this process were under way/);
    expect(time.elapsed).toBe(waitMs + LONGEST_ATTEMPT_MS);
    expect(one.sent).toEqual([]);
  });

  test("a singleFlight() goes on with its look where a shorter one that shares it got no turn", async () => {
    const { time, one } = hosts();
    Object.defineProperty(one.session.scheduler, "width", { value: 0, configurable: true });
    const long = one.mutex("a").singleFlight(() => "own", { waitMs: 5_000 });
    const short = one.mutex("a").singleFlight(() => "other", { waitMs: 1 });
    expect(await time.outcome(short)).toMatchObject({ code: "LOCK_STORE" });
    Reflect.deleteProperty(one.session.scheduler, "width");
    // As it is answered, those that wait have its slot.
    await one.session.scheduler.run({ kind: "renewal", until: () => Number.POSITIVE_INFINITY }, async () => undefined);
    expect(await time.outcome(long)).toBe("own");
    expect(one.sent.filter(({ kind }) => kind === "query")).toHaveLength(1);
  });

  test("a singleFlight() whose look is sure to leave too late asks for another after pauses, until its own time is over", async () => {
    const { time, one } = hosts();
    Object.defineProperty(one.session.scheduler, "width", { value: 0 });
    one.session.scheduler.quickMs = 20_000;
    const others = Array.from({ length: 48 }, (_, number) => one.mutex(`other-${number}`).lock({ waitMs: 6_000 }));
    for (const other of others) other.catch(() => undefined);
    const error = await time.outcome(one.mutex("a").singleFlight(() => "own", { waitMs: 1_000 }));
    expect(error).toMatchObject({ code: "LOCK_STORE", transient: true });
    expect((error as Error).message).toContain("48 requests of this process wait to be sent first");
    expect(time.elapsed).toBeLessThanOrEqual(1_000 + LONGEST_ATTEMPT_MS);
    await Promise.allSettled(others.map((other) => time.outcome(other)));
  });

  test("an attempt that may be the last waits longer for its answer than one that is repeated", async () => {
    const { time, one } = hosts();
    distant(time, one, 80);
    // The first attempt of such a lease is repeated after 50 ms otherwise.
    const lock = await time.outcome(one.mutex("a", { ttlMs: 200 }).lock({ waitMs: 20 }));
    expect(lock).toMatchObject({ held: true });
    expect(one.sent.filter(isTake)).toHaveLength(1);
  });

  /** Locks whose take is answered so late that they have to be renewed first. */
  const LATE: readonly [what: string, takenMs: number, call: (host: MemoryHost) => Promise<unknown>][] = [
    ["a mutex", 2_500, (host) => host.mutex("a", { ttlMs: 4_000 }).lock({ waitMs: 100 })],
    ["a mutex with a short lease", 1_500, (host) => host.mutex("a", { ttlMs: 2_000 }).lock({ waitMs: 100 })],
    ["a set", 2_500, (host) => host.lockAll(["a", "b"], { ttlMs: 4_000, waitMs: 100 })],
    ["the exclusive side", 2_500, (host) => host.sharedMutex("a", { ttlMs: 4_000 }).exclusive.lock({ waitMs: 100 })],
    ["the shared side", 2_500, (host) => host.sharedMutex("a", { ttlMs: 4_000 }).shared.lock({ waitMs: 100 })],
  ];

  test.each(LATE)(
    "one that falls silent after a slow take of %s ends the call by the renewal that it needs",
    async (...args) => {
      const [, takenMs, call] = args;
      const { time, one } = hosts();
      const { sleep } = time.clock();
      let taken = 0;
      one.fate = (message) => {
        if (message.kind !== "writeAll" && message.kind !== "write") return "answered";
        if (message.kind === "write" && !isTake(message)) return "lost";
        taken += 1;
        return sleep(takenMs);
      };
      const failure = await time.outcome(call(one));
      expect(failure).toMatchObject({ code: "LOCK_STORE", answered: false });
      // The answer to the take, and one timeout: nothing else is asked for.
      expect(time.elapsed).toBeLessThanOrEqual(takenMs + LONGEST_ATTEMPT_MS);
      expect(taken).toBe(1);
    },
  );

  test.each(LATE)(
    "a process that stands still as %s is renewed after a slow take gets it all the same",
    async (...args) => {
      const [, takenMs, call] = args;
      const { time, one } = hosts();
      const { sleep } = time.clock();
      let isRenewing = false;
      let answer: () => void = () => undefined;
      const answered = new Promise<void>((resolve) => {
        answer = resolve;
      });
      one.fate = (message) => {
        if (message.kind === "writeAll" || isTake(message)) return isRenewing ? "answered" : sleep(takenMs);
        if (message.kind !== "write" || message.write.kind !== "renew") return "answered";
        isRenewing = true;
        return answered;
      };
      const calling = call(one);
      const watched = watch(calling);
      await time.advanceUntil(() => isRenewing, { stepMs: 10 });
      time.skip(10_000);
      answer();
      await turn();
      await time.advanceUntil(() => watched.settled, { stepMs: 10 });
      await expect(calling).resolves.toBeDefined();
    },
  );

  test("one that fell silent behind a holder ends the wait, and says who was seen, and for how long nothing answered", async () => {
    const { time, one } = hosts();
    takeAll(time, one);
    const failing = time.outcome(one.mutex("a").lock({ waitMs: 9_000 }));
    await time.advance(1_000);
    one.fate = () => "lost";
    const failure = await failing;
    expect(failure).toMatchObject({ code: "LOCK_STORE", answered: false, cause: { code: "LOCK_STORE" } });
    expect(String(failure)).toMatch(
      /no answer from the table for [78]\d\d\d ms; before that, it was last seen held by host-9/,
    );
    expect(time.elapsed).toBe(9_000);
  });

  test("one lost request is no silence: others were answered since", async () => {
    const { time, one } = hosts();
    takeAll(time, one);
    const failing = one.mutex("a").lock({ waitMs: 9_000 });
    const watched = watch(failing);
    await time.advance(5_500);
    one.fate = (message) => (message.kind === "read" && message.at.name === "a" ? "lost" : "answered");
    await time.advance(3_400);
    await (await one.mutex("b").lock()).unlock();
    await time.advance(100);
    expect(watched.settled).toBe(true);
    await expect(failing).rejects.toMatchObject({ code: "LOCK_TIMEOUT", holder: { owner: "host-9" } });
  });
});

describe("a call behind another one of its process shares that one's try", () => {
  const BEHIND: readonly [string, (host: MemoryHost, waitMs?: number) => Promise<unknown>][] = [
    ["mutex", (host, waitMs) => host.mutex("a").lock({ waitMs })],
    ["fair mutex", (host, waitMs) => host.mutex("a", { fair: true }).lock({ waitMs })],
    ["semaphore", (host, waitMs) => host.semaphore("a", { permits: 1 }).lock({ waitMs })],
    ["exclusive side", (host, waitMs) => host.sharedMutex("a").exclusive.lock({ waitMs })],
    ["single flight", (host, waitMs) => host.mutex("a").singleFlight(() => new Promise(() => undefined), { waitMs })],
  ];
  const cases = BEHIND.flatMap(([name, call]) => WAITS.map((waitMs) => [name, waitMs, call] as const));

  test.each(cases)(
    "of a %s, for %d ms: it names the section of its process that gets the lock",
    async (_, waitMs, call) => {
      const { time, one } = hosts();
      distant(time, one);
      const first = call(one);
      await turn();
      const failure = await time.outcome(call(one, waitMs));
      expect(failure).toMatchObject({ code: "LOCK_TIMEOUT", holder: { owner: "one" } });
      expect(String(failure)).toContain("held by a section of this process");
      await Promise.race([first, turn()]);
    },
  );

  test.each(cases)("of a %s, for %d ms: it names the holder that the one ahead finds", async (_, waitMs, call) => {
    const { time, one } = hosts();
    takeAll(time, one);
    distant(time, one);
    const first = watch(call(one));
    await turn();
    expect(await time.outcome(call(one, waitMs))).toMatchObject({ code: "LOCK_TIMEOUT", holder: { owner: "host-9" } });
    expect(first.settled).toBe(false);
  });

  test.each(cases)(
    "of a %s, for %d ms: no answer ends it after one timeout, and the one ahead goes on",
    async (_, waitMs, call) => {
      const { time, one } = hosts();
      // The table answers others, so that the first call waits for as long as it takes.
      one.fate = (message) =>
        inWords(message).includes("tickets") || JSON.stringify(message).includes('"a"') ? "lost" : "answered";
      const first = watch(call(one));
      await turn();
      await (await one.mutex("b").lock()).unlock();
      const failure = await time.outcome(call(one, waitMs));
      expect(failure).toMatchObject({ code: "LOCK_STORE", answered: false });
      expect(String(failure)).toMatch(/No answer from the table .*within \d+ ms/);
      expect(time.elapsed).toBeLessThanOrEqual(waitMs + LONGEST_ATTEMPT_MS);
      expect(first.settled).toBe(false);
    },
  );

  test.each(cases)(
    "of a %s, for %d ms: it waits 3 s longer for that one's turn among requests, and the one ahead goes on",
    async (_, waitMs, call) => {
      const { time, one } = hosts();
      Object.defineProperty(one.session.scheduler, "width", { value: 0 });
      const first = watch(call(one));
      await turn();
      const failure = await time.outcome(call(one, waitMs));
      expect(failure).toMatchObject({ code: "LOCK_STORE", transient: true, answered: false });
      expect((failure as Error).message).toMatch(/^Not sent within \d+ ms: 0 requests of this process were under way/);
      expect(time.elapsed).toBe(waitMs + LONGEST_ATTEMPT_MS);
      expect(first.settled).toBe(false);
    },
  );

  test.each([0, 100])(
    "a singleFlight() for %d ms waits 3 s longer for the claim of the one that asks for all",
    async (waitMs) => {
      const { time, one } = hosts();
      one.fate = ({ kind }) => {
        if (kind === "query") Object.defineProperty(one.session.scheduler, "width", { value: 0 });
        return "answered";
      };
      const calls = [9_000, waitMs].map((ms) => one.mutex("a").singleFlight(() => "own", { waitMs: ms }));
      const first = watch(calls[0] as Promise<unknown>);
      const failure = await time.outcome(calls[1] as Promise<unknown>);
      expect(one.sent.map(({ kind }) => kind)).toEqual(["query"]);
      expect((failure as Error).message).toMatch(/^Not sent within \d+ ms: 0 requests of this process were under way/);
      expect(time.elapsed).toBe(waitMs + LONGEST_ATTEMPT_MS);
      expect(first.settled).toBe(false);
    },
  );

  test("a call behind one that waits for a slot goes on for as long as its own waitMs", async () => {
    const { time, one } = hosts();
    Object.defineProperty(one.session.scheduler, "width", { value: 0, configurable: true });
    const calls = [20_000, 1, 8_000].map((waitMs) => one.mutex("a").run((lock) => lock.name, { waitMs }));
    const watched = calls.map(watch);
    await time.advance(7_900);
    expect(watched.map(({ settled }) => settled)).toEqual([false, true, false]);
    Reflect.deleteProperty(one.session.scheduler, "width");
    await one.session.scheduler.run({ kind: "renewal", until: () => Number.POSITIVE_INFINITY }, async () => undefined);
    await time.settle(Promise.allSettled(calls));
    expect(await Promise.allSettled(calls)).toMatchObject([{ value: "a" }, { status: "rejected" }, { value: "a" }]);
  });

  test("readers of one process get in with the one ahead", async () => {
    const { time, one } = hosts();
    distant(time, one);
    const { shared } = one.sharedMutex("a");
    const both = Promise.all([shared.lock(), shared.lock({ waitMs: 10 })]);
    expect(await time.outcome(both)).toMatchObject([{ held: true }, { held: true }]);
  });

  test("if the one ahead goes, it has a try of its own", async () => {
    const { time, one } = hosts();
    distant(time, one);
    const giveUp = new AbortController();
    const gone = one
      .mutex("a")
      .lock({ signal: giveUp.signal })
      .catch((error: unknown) => error);
    await turn();
    const waiting = [0, 10].map((waitMs) => one.mutex("a").run((lock) => lock.uuid, { waitMs }));
    await time.advance(1);
    giveUp.abort(new Error("the caller gave up"));
    await gone;
    await time.settle(Promise.allSettled(waiting));
    // One of them has it; the other is told so.
    const outcomes = await Promise.allSettled(waiting);
    expect(outcomes.filter(({ status }) => status === "fulfilled").length).toBeGreaterThan(0);
    for (const outcome of outcomes)
      if (outcome.status === "rejected")
        expect(outcome.reason).toMatchObject({ code: "LOCK_TIMEOUT", holder: { owner: "one" } });
  });
});
