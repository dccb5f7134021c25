import { describe, expect, test } from "@jest/globals";
import type { Election } from "../../../lib/election.js";
import { LockConfigError } from "../../../lib/errors.js";
import type { Lock } from "../../../lib/lock.js";
import { hear, useWarnings } from "../../support/diagnostics.js";
import { turn, watch } from "../../support/eventually.js";
import { createGate } from "../../support/fault-proxy/gate.js";
import { ManualTime } from "../../support/manual-time.js";
import { MemoryHost } from "../../support/memory-host.js";

const NAME = "leader";
const TTL_MS = 10_000;
const CLOSED = { code: "LOCK_CLOSED" };
/** Pauses are three quarters of the longest: a host of these tests draws 0.5 each time. */
const PAUSES_MS = [750, 1_500, 3_000, 6_000, 12_000, 22_500, 22_500];

const warnings = useWarnings();

/** A leader that ends when it is told to, as `ends` has it. */
class Lead {
  readonly locks: Lock[] = [];
  /** How many run at present. */
  running = 0;
  readonly #ends: (lock: Lock) => Promise<unknown>;

  constructor(ends: (lock: Lock) => Promise<unknown> = aborted) {
    this.#ends = ends;
  }

  readonly lead = async (lock: Lock): Promise<void> => {
    this.locks.push(lock);
    this.running += 1;
    try {
      await this.#ends(lock);
    } finally {
      this.running -= 1;
    }
  };
}

const aborted = ({ signal }: Lock): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve();
    signal.addEventListener("abort", () => resolve(), { once: true });
  });

function setUp() {
  const time = new ManualTime();
  const host = new MemoryHost(time);
  const other = new MemoryHost(time, { owner: "other", table: host.table });
  const [mutex, others] = [host.mutex(NAME, { ttlMs: TTL_MS }), other.mutex(NAME, { ttlMs: TTL_MS })];
  const events = hear("dynamutex:election");
  const told = () => events.map(({ owner, event }) => (owner === "host" ? event : `${owner}: ${event}`));
  return { time, host, other, mutex, others, events, told };
}

describe("a candidate", () => {
  test("leads with the lock of the mutex, and the election is over when `lead` returns", async () => {
    const { time, host, mutex, told, events } = setUp();
    const work = createGate();
    const lead = new Lead(() => work.released);
    const election = mutex.elect(lead.lead, { data: { url: "http://a" } });
    expect([election.name, election.isLeader, election.lock]).toEqual([NAME, false, undefined]);
    await turn();
    expect([election.isLeader, election.lock]).toEqual([true, lead.locks[0]]);
    expect(host.row(NAME)).toMatchObject({ uuid: lead.locks[0]?.uuid, data: { url: "http://a" } });
    await time.advance(5 * TTL_MS);
    expect(election.isLeader).toBe(true);
    work.release();
    await election.done;
    expect([election.isLeader, election.lock, host.row(NAME), time.timers]).toEqual([false, undefined, undefined, 0]);
    expect(told()).toEqual(["campaigning", "leading", "stopped", "over"]);
    const { uuid } = lead.locks[0] as Lock;
    expect(events.map((event) => event.uuid)).toEqual([undefined, uuid, uuid, undefined]);
    expect(events.map(({ cause }) => cause)).toEqual([undefined, undefined, undefined, undefined]);
  });

  test("waits for as long as somebody else leads, whatever the `waitMs` of its mutex", async () => {
    const { time, host, others, told } = setUp();
    const [first, second] = [new Lead(), new Lead()];
    const theirs = others.elect(first.lead);
    await turn();
    const own = host.mutex(NAME, { ttlMs: TTL_MS, waitMs: 1_000 }).elect(second.lead);
    await time.advance(100_000);
    expect([first.running, second.running, told()]).toEqual([
      1,
      0,
      ["other: campaigning", "other: leading", "campaigning"],
    ]);
    await theirs.resign();
    await time.advance(1_000);
    expect([first.running, second.running, own.isLeader]).toEqual([0, 1, true]);
    await own.resign();
  });

  test.each([
    ["lead", undefined, {}],
    ["nap", () => undefined, { nap: 1 }],
    ["signal", () => undefined, { signal: "no" }],
    ["waitMs", () => undefined, { waitMs: 1 }],
    ["data", () => undefined, { data: [] }],
  ])("is refused at once for a bad argument: %s", async (option, lead, options) => {
    const { host, mutex, told } = setUp();
    const elect = () => mutex.elect(lead as () => void, options as object);
    expect(elect).toThrow(LockConfigError);
    expect(elect).toThrow(expect.objectContaining({ option }));
    expect([host.sent, told()]).toEqual([[], []]);
  });
});

describe("the end of a candidacy", () => {
  /** The moments at which it may end, and how many times `lead` has begun by then. */
  const MOMENTS = {
    "before its first request is answered": 0,
    "while it waits for the lock": 0,
    "when it is granted the lock": 0,
    "while it leads": 1,
    "while it pauses": 1,
  };

  test.each(
    Object.keys(MOMENTS).flatMap((moment) => [
      [moment, "resign()"],
      [moment, "its signal"],
    ]),
  )("%s, by %s: it leads no more, nothing is left, and `done` resolves", async (moment, how) => {
    const { time, host, other, mutex, told } = setUp();
    const stopping = new AbortController();
    const reason = new Error("stopping");
    let election: Election | undefined;
    const end = (): void => (how === "resign()" ? void election?.resign() : stopping.abort(reason));
    const isPausing = moment === "while it pauses";
    const lead = new Lead(isPausing ? () => Promise.reject(new Error("broken")) : aborted);
    const blocker = moment === "while it waits for the lock" ? await other.mutex(NAME).lock() : undefined;
    if (moment === "when it is granted the lock") hear("dynamutex:acquired", end);
    const late = createGate();
    if (moment === "before its first request is answered") host.fate = () => late.released;
    election = mutex.elect(lead.lead, { signal: stopping.signal });
    await turn();
    if (moment === "while it waits for the lock") await time.advance(700);
    if (isPausing) await time.advance(100);
    end();
    await turn();
    late.release();
    await election.done;
    expect([lead.locks.length, lead.running]).toEqual([MOMENTS[moment as keyof typeof MOMENTS], 0]);
    if (moment === "while it leads") {
      const expected = how === "resign()" ? expect.objectContaining({ code: "LOCK_RESIGNED" }) : reason;
      expect(lead.locks[0]?.signal.reason).toEqual(expected);
    }
    // What was on its way is taken back.
    await blocker?.unlock();
    await time.advance(1_000);
    expect([host.row(NAME), time.timers, told().at(-1)]).toEqual([undefined, 0, "over"]);
    await time.advance(100_000);
    expect([lead.locks.length, told().filter((event) => event === "over").length]).toEqual([
      MOMENTS[moment as keyof typeof MOMENTS],
      1,
    ]);
    await election.resign();
  });

  test("before it has begun: with a signal that has aborted, nothing is sent", async () => {
    const { host, mutex, told } = setUp();
    const lead = new Lead();
    await mutex.elect(lead.lead, { signal: AbortSignal.abort() }).done;
    expect([host.sent, lead.locks, told()]).toEqual([[], [], ["over"]]);
  });

  test("waits for `lead`: the lock is held and renewed until that has ended, and nobody else leads", async () => {
    const { time, host, mutex, others } = setUp();
    const [windingDown, next] = [createGate(), new Lead()];
    const lead = new Lead(() => windingDown.released);
    const election = mutex.elect(lead.lead);
    await turn();
    const theirs = others.elect(next.lead);
    const resigning = watch(election.resign());
    await time.advance(3 * TTL_MS);
    const [lock] = lead.locks;
    expect([lock?.signal.aborted, lock?.held, election.isLeader, resigning.settled]).toEqual([true, true, true, false]);
    expect([next.running, host.row(NAME)?.owner]).toEqual([0, "host"]);
    windingDown.release();
    await time.advance(1_000);
    expect([resigning.settled, next.running]).toEqual([true, 1]);
    await theirs.resign();
  });
});

describe("a leader that has lost the lock", () => {
  test("is awaited before anything else: meanwhile it asks for nothing, and the next one leads", async () => {
    const { time, host, mutex, others, told, events } = setUp();
    const [deaf, next] = [createGate(), new Lead()];
    const lead = new Lead(() => deaf.released);
    const election = mutex.elect(lead.lead);
    await turn();
    const theirs = others.elect(next.lead);
    host.fate = () => "lost";
    await time.advance(2 * TTL_MS);
    expect([election.isLeader, election.lock?.held, next.running]).toEqual([false, false, 1]);
    const sent = host.sent.length;
    host.fate = () => "answered";
    await time.advance(10 * TTL_MS);
    expect([host.sent.length - sent, lead.running]).toEqual([0, 1]);
    deaf.release();
    await turn();
    const lost = expect.objectContaining({ code: "LOCK_LOST", reason: "expired" });
    const stopped = events.find(({ event, owner }) => event === "stopped" && owner === "host");
    // It has run for long: the next campaign follows after a short pause.
    expect(stopped).toMatchObject({ uuid: lead.locks[0]?.uuid, cause: lost, pauseMs: PAUSES_MS[0] });
    await theirs.resign();
    await time.advance(2_000);
    expect(lead.locks.length).toBe(2);
    await election.resign();
    expect(told().filter((event) => !event.startsWith("other"))).toEqual([
      "campaigning",
      "leading",
      "stopped",
      "campaigning",
      "leading",
      "stopped",
      "over",
    ]);
    expect(warnings).toEqual([]);
  });

  test("and returns without knowing, has not led to the end: it campaigns again", async () => {
    const { time, host, mutex, events } = setUp();
    const work = createGate();
    let terms = 0;
    const election = mutex.elect(async () => {
      terms += 1;
      await work.released;
    });
    await turn();
    const { uuid } = election.lock as Lock;
    await host.mutex(NAME).inspect();
    host.table.plant({ name: NAME, sort: "lock" }, undefined);
    work.release();
    await turn();
    const deleted = expect.objectContaining({ code: "LOCK_LOST", reason: "deleted" });
    expect(events.at(-1)).toMatchObject({ event: "stopped", uuid, cause: deleted, pauseMs: PAUSES_MS[0] });
    await time.advance(1_000);
    await election.done;
    expect(terms).toBe(2);
  });

  test("by `maxHoldMs` lets others lead first: so leaders rotate", async () => {
    const { time, host, other } = setUp();
    const options = { ttlMs: TTL_MS, maxHoldMs: 40_000 };
    const order: string[] = [];
    const elections = [host, other].map((candidate) =>
      candidate.mutex(NAME, options).elect(async (lock) => {
        order.push(lock.owner);
        await aborted(lock);
      }),
    );
    await time.advance(150_000);
    expect(order).toEqual(["host", "other", "host", "other"]);
    await Promise.all(elections.map((election) => election.resign()));
  });
});

describe("an error of `lead`", () => {
  test("is told, and followed by pauses that grow, and are short again after a long leadership", async () => {
    const { time, host, mutex, events } = setUp();
    const broken = new Error("broken");
    let runsMs = 0;
    const election = mutex.elect(async () => {
      if (runsMs > 0) await time.clock().sleep(runsMs);
      throw broken;
    });
    const stopped = () => events.filter(({ event }) => event === "stopped");
    const pauses = () => stopped().map(({ pauseMs }) => pauseMs);
    for (const count of PAUSES_MS.keys()) await time.advanceUntil(() => stopped().length > count);
    expect(pauses()).toEqual(PAUSES_MS);
    expect(stopped().every(({ cause }) => cause === broken)).toBe(true);
    // Not long enough, and long enough.
    for (const [ranMs, pauseMs] of [
      [29_000, 22_500],
      [30_000, 750],
      [0, 1_500],
    ] as const) {
      runsMs = ranMs;
      const count = stopped().length;
      await time.advanceUntil(() => stopped().length > count, { withinMs: 60_000, stepMs: 100 });
      expect(pauses().at(-1)).toBe(pauseMs);
    }
    expect(warnings.length).toBe(stopped().length);
    expect(warnings[0]).toBe('Election "leader": `lead` has failed, the next campaign begins in 750 ms: broken');
    expect(host.row(NAME)).toBeUndefined();
    await election.resign();
  });

  test.each<readonly [string, (lock: Lock) => Promise<unknown>, boolean]>([
    ["the reason of the signal", ({ signal }) => Promise.reject(signal.reason), true],
    ["an AbortError", () => Promise.reject(new DOMException("The operation was aborted", "AbortError")), true],
    [
      "an error with the reason as its cause",
      ({ signal }) => Promise.reject(new Error("x", { cause: signal.reason })),
      true,
    ],
    ["a loss", async (lock) => lock.assertHeld(2 ** 30), true],
    ["something else", () => Promise.reject(new Error("disk full")), false],
    ["nothing at all", () => Promise.reject(undefined), false],
    ["what is no error and has no text", () => Promise.reject(Object.create(null)), false],
  ])("that it ends with when it is told to: %s", async (_, ends, obeys) => {
    const { mutex, events } = setUp();
    const lead = new Lead(async (lock) => {
      await aborted(lock);
      await ends(lock);
    });
    const election = mutex.elect(lead.lead);
    await turn();
    await election.resign();
    await election.done;
    const stopped = events.find(({ event }) => event === "stopped");
    expect([stopped?.cause === undefined, warnings.length]).toEqual(obeys ? [true, 0] : [expect.any(Boolean), 1]);
  });
});

describe("a campaign that fails", () => {
  test("because the table does not answer is told, and followed by another", async () => {
    const { time, host, mutex, events, told } = setUp();
    host.fate = () => "lost";
    const lead = new Lead();
    const election = mutex.elect(lead.lead);
    await time.advanceUntil(() => events.length > 1);
    const failed = expect.objectContaining({ code: "LOCK_STORE", transient: true });
    expect(events[1]).toMatchObject({ event: "failed", uuid: undefined, cause: failed, pauseMs: PAUSES_MS[0] });
    expect(warnings[0]).toMatch(/a campaign has failed, the next campaign begins in 750 ms: No answer from the table/);
    host.fate = () => "answered";
    await time.advance(1_000);
    expect([lead.running, told()]).toEqual([1, ["campaigning", "failed", "campaigning", "leading"]]);
    await election.resign();
  });
});

describe("the close of the table", () => {
  test("ends a campaign at once: `done` rejects, and nobody has to handle that", async () => {
    const { time, host, other, mutex, events } = setUp();
    await using _theirs = await other.mutex(NAME).lock();
    const [election, unhandled] = [mutex.elect(() => undefined), mutex.elect(() => undefined)];
    await time.advance(1_000);
    await host.session.close();
    await expect(election.done).rejects.toMatchObject(CLOSED);
    await Promise.all([election.resign(), unhandled.resign()]);
    expect(events.at(-1)).toMatchObject({ event: "over", cause: expect.objectContaining(CLOSED) });
    expect([time.elapsed, warnings]).toEqual([1_000, []]);
  });

  test("ends a pause at once", async () => {
    const { host, mutex, time } = setUp();
    const election = mutex.elect(() => Promise.reject(new Error("broken")));
    await turn();
    await host.session.close();
    await expect(election.done).rejects.toMatchObject(CLOSED);
    expect([time.elapsed, time.timers]).toEqual([0, 0]);
  });

  test("tells a leader at once, and lets it end while it drains: nothing is revoked", async () => {
    const { time, host, mutex, other } = setUp();
    const lead = new Lead(async (lock) => {
      await aborted(lock);
      await time.clock().sleep(3_000);
      lock.assertHeld();
    });
    const election = mutex.elect(lead.lead);
    await turn();
    const closing = host.session.close(20_000);
    await turn();
    expect([lead.locks[0]?.signal.aborted, lead.locks[0]?.held]).toEqual([true, true]);
    await time.advance(2_999);
    expect(await other.mutex(NAME).tryLock()).toBeNull();
    await time.advance(1);
    await closing;
    expect([time.elapsed, host.row(NAME), time.timers, warnings]).toEqual([3_000, undefined, 0, []]);
    await expect(election.done).rejects.toMatchObject(CLOSED);
  });

  test("revokes a leader that does not end, beside which nobody leads", async () => {
    const { time, host, mutex, other } = setUp();
    const deaf = createGate();
    const lead = new Lead(() => deaf.released);
    const election = mutex.elect(lead.lead);
    await turn();
    const closing = host.session.close(2_000).catch((error: unknown) => error);
    await time.advance(2_000);
    expect([election.isLeader, await other.mutex(NAME).tryLock()]).toEqual([false, null]);
    await time.advance(5_000);
    expect(await closing).toMatchObject({ errors: [{ code: "LOCK_LOST", reason: "closed" }] });
    deaf.release();
    await expect(election.done).rejects.toMatchObject(CLOSED);
    expect(host.row(NAME)).toBeUndefined();
  });
});

describe("what it costs in ten minutes", () => {
  test.each([
    ["by default", {}, 40, 1_500],
    ["with slow polls and short leases", { ttlMs: 10_000, poll: { minMs: 1_000, maxMs: 5_000 } }, 120, 120],
  ])("%s: a leader renews, a candidate polls, and marks the row", async (_, options, renewals, polls) => {
    const time = new ManualTime();
    const leader = new MemoryHost(time);
    const candidate = new MemoryHost(time, { owner: "other", table: leader.table });
    const elections = [leader.mutex(NAME, options).elect(new Lead().lead)];
    await turn();
    elections.push(candidate.mutex(NAME, options).elect(new Lead().lead));
    await time.advance(60_000);
    for (const host of [leader, candidate]) host.told();
    await time.advance(600_000);
    const counts = [leader, candidate].map((host) => count(host.told()));
    expect(counts).toEqual([{ "renew lock": renewals }, { "read lock": polls, "want lock": 10 }]);
    await Promise.all(elections.map((election) => election.resign()));
  });
});

function count(words: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const word of words) counts[word] = (counts[word] ?? 0) + 1;
  return counts;
}
