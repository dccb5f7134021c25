import { describe, expect, jest, test } from "@jest/globals";
import { LockStoreError, LockTable } from "../../lib/index.js";
import { resultAt } from "../../lib/protocol/addresses.js";
import { purgeAt } from "../../lib/protocol/rules.js";
import { hear } from "../support/diagnostics.js";
import { turn, watch } from "../support/eventually.js";
import { deferred } from "../support/fault-proxy/deferred.js";
import { createGate } from "../support/fault-proxy/gate.js";
import { ManualTime } from "../support/manual-time.js";
import { hosts, isRelease, isTake, MemoryHost } from "../support/memory-host.js";
import type { Message } from "../support/message.js";

const NAME = "token";
const FLIGHT = ["take lock", "put-result flight", "vacate lock"];

/** A function that runs until it is told what it comes to, and how often it has begun. */
function slow() {
  const { promise, resolve: end, reject: fail } = deferred<string>();
  const work = {
    runs: 0,
    end,
    fail,
    fn: () => {
      work.runs += 1;
      return promise;
    },
  };
  return work;
}

describe("a flight", () => {
  test("is a look and three writes: the take, the value, the release", async () => {
    const { one, other } = hosts();
    expect(await one.mutex(NAME).singleFlight(() => "first")).toBe("first");
    expect(one.told()).toEqual(["consistent query flight", ...FLIGHT]);
    // The row is kept, and so is what it says of the flight, which is over: the next call runs again.
    expect(await other.mutex(NAME).singleFlight(() => "second")).toBe("second");
    expect(other.told()).toEqual(["consistent query flight", ...FLIGHT]);
  });

  test("that is younger than asked for costs one query, and one that is older is flown again", async () => {
    const { time, one, other } = hosts();
    await one.mutex(NAME).singleFlight(async () => {
      await time.advance(100);
      return "first";
    });
    await time.advance(900);
    expect(await other.mutex(NAME).singleFlight(() => "second", { freshMs: 1_000 })).toBe("first");
    expect(other.told()).toEqual(["query flight"]);
    expect(await other.mutex(NAME).singleFlight(() => "second", { freshMs: 999 })).toBe("second");
    expect(other.told()).toEqual(["query flight", ...FLIGHT]);
  });

  test("is as old as it may be by clocks that are not exact, on both hosts", async () => {
    const time = new ManualTime();
    const one = new MemoryHost(time, { owner: "one", maxSkewMs: 400 });
    const other = new MemoryHost(time, { owner: "other", table: one.table, maxSkewMs: 400 });
    await one.mutex(NAME).singleFlight(() => "first");
    await time.advance(200);
    expect(await other.mutex(NAME).singleFlight(() => "second", { freshMs: 1_000 })).toBe("first");
    await time.advance(1);
    expect(await other.mutex(NAME).singleFlight(() => "second", { freshMs: 1_000 })).toBe("second");
  });

  test("is shared by those who wait on other hosts, and read when its release shows", async () => {
    const { time, one, other, third } = hosts();
    const each = [one, other, third];
    const work = slow();
    const calls = each.map((host) => host.mutex(NAME).singleFlight(work.fn));
    await time.advance(300);
    work.end("once");
    await time.advance(1_000);
    expect(await Promise.all(calls)).toEqual(["once", "once", "once"]);
    expect(work.runs).toBe(1);
    const told = each.map((host) => host.told());
    const writes = told.flat().filter((line) => !/read|query/.test(line));
    expect(writes.filter((line) => line !== "take lock").sort()).toEqual(FLIGHT.slice(1));
  });

  test("is nobody's if its function throws: the next in line runs", async () => {
    const { time, one, other } = hosts();
    const [bad, good] = [slow(), slow()];
    const failing = one.mutex(NAME).singleFlight(bad.fn);
    await turn();
    const behind = [one.mutex(NAME).singleFlight(good.fn), other.mutex(NAME).singleFlight(good.fn)];
    await time.advance(100);
    bad.fail(new Error("no"));
    await expect(failing).rejects.toThrow("no");
    await time.advance(1_000);
    good.end("yes");
    await time.advance(1_000);
    expect(await Promise.all(behind)).toEqual(["yes", "yes"]);
    expect([bad.runs, good.runs]).toEqual([1, 1]);
  });

  test("that was over before the call is not taken, whatever brings its writes back", async () => {
    const { time, one, third: old, other } = hosts();
    const { table } = one;
    await one.mutex(NAME).singleFlight(() => "first");
    const late = one.sent.flatMap((message) => (message.kind === "write" ? message.write : []));
    // A process that does not know of flights has used the lock: its put and its delete leave nothing of the result.
    table.plant({ name: NAME, sort: "lock" }, undefined);
    const work = slow();
    const holder = await old.mutex(NAME).lock();
    const call = other.mutex(NAME).singleFlight(work.fn);
    await turn();
    await holder.unlock();
    table.plant({ name: NAME, sort: "lock" }, undefined);
    // Late copies of the first flight: its lock and its result are back.
    for (const write of late) if (write.kind !== "put-result") table.apply(write);
    expect(table.row({ name: NAME, sort: "lock" })?.result?.id).toBeDefined();
    await time.advanceUntil(() => work.runs === 1);
    work.end("second");
    expect(await call).toBe("second");
  });

  test("that a late copy of its take brings back is refused once another has ended", async () => {
    const { one, other } = hosts();
    const { sent, table } = one;
    await one.mutex(NAME).singleFlight(() => "first");
    await other.mutex(NAME).singleFlight(() => "second");
    const before = table.row({ name: NAME, sort: "lock" });
    for (const message of sent) if (message.kind === "write") table.apply(message.write);
    expect(table.row({ name: NAME, sort: "lock" })).toEqual(before);
    expect(before?.result?.id).not.toBe(table.row(resultAt(NAME))?.uuid);
  });

  test("is not flown again by a take that left before it ended: that is refused, and its caller has the result", async () => {
    const { time, one, other } = hosts();
    // The row remembers a result already, so that no other condition of the take refuses it.
    await one.mutex(NAME).singleFlight(() => 0);
    const arrival = createGate();
    other.fate = (message) => (isTake(message) ? arrival.released : "answered");
    let runs = 0;
    const late = other.mutex(NAME).singleFlight(() => ++runs);
    await turn();
    expect(await one.mutex(NAME).singleFlight(() => ++runs)).toBe(1);
    arrival.release();
    await time.advance(1_000);
    expect([await late, runs]).toEqual([1, 1]);
  });

  test("of a fair mutex is shared by those who stand in its queue", async () => {
    const { time, one, other, third } = hosts();
    const work = slow();
    const calls = [one, other, third].map((host) => host.mutex(NAME, { fair: true }).singleFlight(work.fn));
    await time.advance(500);
    work.end("once");
    await time.advance(5_000);
    expect(work.runs).toBe(1);
    expect(await Promise.all(calls)).toEqual(["once", "once", "once"]);
  });

  test.each([
    // It draws no ticket.
    [
      true,
      [
        "consistent query lock",
        "take lock",
        "consistent query flight",
        "vacate lock",
        "consistent query lock",
        ...FLIGHT,
      ],
    ],
    [false, ["take lock", "consistent query flight", "vacate lock", ...FLIGHT]],
  ])("takes the lock that a claim of its own process has just given back, with fair: %s", async (fair, told) => {
    const { time, one } = hosts();
    const mutex = one.mutex(NAME, { fair, fencing: true });
    const [claimed, looked, work] = [createGate(), createGate(), slow()];
    one.hold = (message) => {
      if (isTake(message) && one.sent.filter(isTake).length === 1) return claimed.released;
      return message.kind === "query" && message.query.first.startsWith("flight") ? looked.released : undefined;
    };
    const giveUp = new AbortController();
    const gone = mutex.lock({ signal: giveUp.signal });
    await time.advance(1);
    giveUp.abort(new Error("the caller gave up"));
    await expect(gone).rejects.toThrow("the caller gave up");
    work.end("built");
    const built = mutex.singleFlight(work.fn, { waitMs: 50 });
    await time.advance(1);
    looked.release();
    await time.advance(1);
    claimed.release();
    await time.advance(1);
    expect(work.runs).toBe(1);
    expect(await built).toBe("built");
    expect(one.told()).toEqual(told);
  });

  test("of a fair mutex takes the lock that its look at the queue shows free, whatever the older look of the flight has shown", async () => {
    const { time, one, other } = hosts();
    const lock = await other.mutex(NAME, { fair: true }).lock();
    const looked = createGate();
    one.hold = (message) =>
      message.kind === "query" && message.query.first.startsWith("flight") ? looked.released : undefined;
    const built = one.mutex(NAME, { fair: true }).singleFlight(() => "built", { waitMs: 0 });
    await time.advance(1);
    await lock.unlock();
    looked.release();
    expect(await time.outcome(built)).toBe("built");
  });

  test("keeps both of its rows for a week after its caller would call it fresh", async () => {
    const { time, one } = hosts();
    const freshMs = 30 * 24 * 60 * 60 * 1_000;
    await one.mutex(NAME).singleFlight(() => "kept", { freshMs });
    for (const sort of ["lock", resultAt(NAME).sort]) {
      expect(one.table.item({ name: NAME, sort })).toMatchObject({ purge: purgeAt(time.now + freshMs) });
    }
  });

  test("keeps the row of a tick for ever", async () => {
    const { one } = hosts();
    const mutex = one.mutex(NAME);
    await mutex.tryRun(() => undefined, { once: 1 });
    await mutex.singleFlight(() => "kept");
    const item = one.table.item({ name: NAME, sort: "lock" });
    expect(item).toMatchObject({ tick: 1, result: expect.anything() });
    expect(item).not.toHaveProperty("purge");
  });

  test("whose lease is lost rejects, and is nobody's result", async () => {
    const { time, one, other } = hosts();
    const work = slow();
    const call = one.mutex(NAME, { ttlMs: 1_000 }).singleFlight(work.fn);
    await turn();
    one.fate = () => "lost";
    const rejected = expect(call).rejects.toMatchObject({ code: "LOCK_LOST" });
    await time.advance(2_000);
    work.end("late");
    await time.advance(10_000);
    await rejected;
    expect(one.table.row(resultAt(NAME))).toBeUndefined();
    expect(await other.mutex(NAME).singleFlight(() => "mine", { freshMs: 60_000 })).toBe("mine");
  });

  test("that has lost its lock keeps nobody of its process waiting, however long its function goes on", async () => {
    const { time, one, other } = hosts();
    const mutex = one.mutex(NAME, { ttlMs: 3_000, maxHoldMs: 2_000 });
    const [endless, next] = [slow(), slow()];
    const lost = mutex.singleFlight(endless.fn);
    await turn();
    const joined = mutex.singleFlight(next.fn);
    await time.advanceUntil(() => next.runs === 1);
    const behind = [mutex, other.mutex(NAME)].map((each) => each.singleFlight(next.fn));
    await time.advance(100);
    // The end of the lost one is not that of the one that runs.
    endless.end("late");
    await expect(lost).rejects.toMatchObject({ code: "LOCK_LOST", reason: "max-hold" });
    const last = mutex.singleFlight(next.fn);
    await turn();
    next.end("shared");
    await time.advance(1_000);
    expect(next.runs).toBe(1);
    expect(await Promise.all([joined, ...behind, last])).toEqual(["shared", "shared", "shared", "shared"]);
  });

  test("that has unlocked its lock is nobody's result: it did not run alone to its end", async () => {
    const { one, other } = hosts();
    const heard = hear("dynamutex:not-shared");
    expect(await one.mutex(NAME).singleFlight((lock) => lock.unlock().then(() => "own"))).toBe("own");
    expect(heard).toEqual([]);
    expect(one.table.row(resultAt(NAME))).toBeUndefined();
    expect(await other.mutex(NAME).singleFlight(() => "next", { freshMs: 60_000 })).toBe("next");
  });

  test("does not hand its lock off, and neither takes over nor passes on the lease of a section", async () => {
    const { one } = hosts();
    const mutex = one.mutex(NAME);
    await expect(mutex.singleFlight((lock) => lock.handOff({ validForMs: 1_000 }))).rejects.toMatchObject({
      code: "LOCK_CONFIG",
    });
    const uuids: string[] = [];
    const first = await mutex.lock();
    const flight = mutex.singleFlight((lock) => void uuids.push(lock.uuid));
    await turn();
    const after = mutex.run((lock) => void uuids.push(lock.uuid));
    await first.unlock();
    await Promise.all([flight, after]);
    expect(new Set([first.uuid, ...uuids]).size).toBe(3);
  });
});

describe("the calls of one process", () => {
  test("share one flight, and what each of them gets is its own", async () => {
    const { one } = hosts();
    let runs = 0;
    const fn = () => ({ list: [++runs] });
    const values = await Promise.all(Array.from({ length: 32 }, () => one.mutex(NAME).singleFlight(fn)));
    expect(values).toEqual(values.map(() => ({ list: [1] })));
    expect(new Set(values.map(({ list }) => list)).size).toBe(32);
    expect(one.told()).toEqual(["consistent query flight", ...FLIGHT]);
  });

  test("share the one that runs without a request, until its function has ended", async () => {
    const { one } = hosts();
    const work = slow();
    const mutex = one.mutex(NAME);
    const first = mutex.singleFlight(work.fn);
    await turn();
    one.told();
    const joining = mutex.singleFlight(() => "own");
    await turn();
    expect(one.told()).toEqual([]);
    const reply = createGate();
    one.hold = (message) => (isRelease(message) ? reply.released : undefined);
    work.end("shared");
    await turn();
    // Its release was applied: it is over before this call.
    const late = mutex.singleFlight(() => "own");
    await turn();
    reply.release();
    expect([await first, await joining, await late]).toEqual(["shared", "shared", "own"]);
  });

  test("with freshMs share the one that runs only if it is young enough", async () => {
    const { time, one } = hosts();
    const work = slow();
    const mutex = one.mutex(NAME);
    const first = mutex.singleFlight(work.fn, { freshMs: 500 });
    await turn();
    await time.advance(400);
    const young = mutex.singleFlight(() => "own", { freshMs: 500 });
    await time.advance(200);
    const old = mutex.singleFlight(() => "own", { freshMs: 500 });
    await turn();
    work.end("shared");
    await time.advance(1_000);
    expect([await first, await young, await old]).toEqual(["shared", "shared", "own"]);
  });

  test("with freshMs find what is there at once, although others of the process wait for the lock", async () => {
    const { time, one, other } = hosts();
    await other.mutex(NAME).singleFlight(() => "there");
    const holder = await other.mutex(NAME).lock();
    const waiting = one.mutex(NAME).singleFlight(() => "own");
    await time.advance(100);
    expect(await one.mutex(NAME).singleFlight(() => "own", { freshMs: 60_000 })).toBe("there");
    await holder.unlock();
    await time.advance(1_000);
    expect(await waiting).toBe("own");
  });

  test("that waited before another of them looked have what that look shows, and do not run again", async () => {
    const { time, one, other } = hosts();
    const work = slow();
    const flight = other.mutex(NAME).singleFlight(work.fn);
    await turn();
    const waiting = one.mutex(NAME).singleFlight(() => "own");
    await time.advance(300);
    work.end("shared");
    await flight;
    const late = one.mutex(NAME).singleFlight(() => "own");
    await time.advance(1_000);
    expect([await waiting, await late]).toEqual(["shared", "own"]);
  });

  test("wait for no query that is lost: a later one serves those before it as well", async () => {
    const { time, one, other } = hosts();
    const mutex = one.mutex(NAME);
    await mutex.singleFlight(() => "there");
    const queries = (): number => one.sent.filter(({ kind }) => kind === "query").length;
    const before = queries();
    one.fate = (message) => (message.kind === "query" && queries() === before + 1 ? "lost" : "answered");
    const fresh = { freshMs: 60_000 };
    const lost = mutex.singleFlight(() => "own", fresh);
    await time.advance(10);
    const late = [mutex.singleFlight(() => "own", fresh), mutex.singleFlight(() => "own", fresh)];
    const served = Promise.all([lost, ...late]);
    await time.settle(served, { withinMs: 100 });
    expect(await served).toEqual(["there", "there", "there"]);
    expect(queries()).toBe(before + 2);
    expect(await other.mutex(NAME).singleFlight(() => "own", fresh)).toBe("there");
  });

  test("run their function although a query was lost, if a later one shows no result", async () => {
    const { time, one } = hosts();
    let queries = 0;
    one.fate = (message) => (message.kind === "query" && ++queries === 1 ? "lost" : "answered");
    const first = one.mutex(NAME).singleFlight(() => "first");
    await time.advance(100);
    const second = one.mutex(NAME).singleFlight(() => "second");
    const served = Promise.all([first, second]);
    await time.settle(served, { withinMs: 200 });
    expect(await served).toEqual(["first", "first"]);
    expect(queries).toBe(2);
  });

  test("go by the last query that was answered, also if an earlier one is answered after it", async () => {
    const { time, one, other } = hosts();
    await other.mutex(NAME).singleFlight(() => "old");
    // An answer tells how soon others are to be expected.
    await one.mutex("another").singleFlight(() => "any");
    const reply = createGate();
    let queries = 0;
    one.hold = (message) => (message.kind === "query" && ++queries === 1 ? reply.released : undefined);
    const end = new AbortController();
    const early = one.mutex(NAME).singleFlight(() => "early", { signal: end.signal });
    await turn();
    await other.mutex(NAME).singleFlight(() => "new");
    await time.advance(100);
    const holder = await other.mutex(NAME).lock();
    const waiting = one.mutex(NAME).singleFlight(() => "waiting");
    await time.advance(100);
    reply.release();
    await time.advance(100);
    one.told();
    end.abort(new Error("enough"));
    await expect(early).rejects.toThrow("enough");
    await holder.unlock();
    await time.settle(waiting);
    expect(await waiting).toBe("waiting");
    // No claim named the old result, which the table would have refused.
    expect(one.told().filter((told) => told === "take lock")).toHaveLength(1);
    expect(queries).toBe(2);
  });

  test("take nothing from a query that was under way when an earlier one told which flights had ended", async () => {
    const { time, one, other, third } = hosts();
    await other.mutex(NAME).singleFlight(() => "old");
    // An answer tells how soon others are to be expected.
    await one.mutex("another").singleFlight(() => "any");
    const [request, reply] = [createGate(), createGate()];
    const queries: Message[] = [];
    one.fate = (message) => {
      if (message.kind === "query") queries.push(message);
      return message === queries[0] ? request.released : "answered";
    };
    one.hold = (message) => (message === queries[1] ? reply.released : undefined);
    const call = one.mutex(NAME).singleFlight(() => "own");
    await time.advance(100);
    // Its query overtakes the first one, and shows the flight that ended before both calls.
    const late = one.mutex(NAME).singleFlight(() => "late");
    await time.advance(100);
    expect(queries).toHaveLength(2);
    await other.mutex(NAME).singleFlight(() => "new");
    const holder = await third.mutex(NAME).lock();
    request.release();
    await turn();
    reply.release();
    await time.advance(100);
    await holder.unlock();
    const served = Promise.all([call, late]);
    await time.settle(served);
    expect(await served).toEqual(["own", "new"]);
  });

  test("that come one after the other share few queries, while each of these is answered", async () => {
    const { time, one } = hosts();
    const mutex = one.mutex(NAME);
    await mutex.singleFlight(() => "there");
    one.hold = () => one.session.clock.sleep(20);
    one.told();
    const calls: Promise<string>[] = [];
    for (let count = 0; count < 100; count += 1) {
      calls.push(mutex.singleFlight(() => "own", { freshMs: 60_000 }));
      await time.advance(1);
    }
    const served = Promise.all(calls);
    await time.settle(served);
    expect(new Set(await served)).toEqual(new Set(["there"]));
    expect(one.told()).toHaveLength(6);
  });

  test("send few queries while none is answered, however many come", async () => {
    const { time, one } = hosts();
    one.fate = () => "lost";
    const calls: Promise<unknown>[] = [];
    for (let count = 0; count < 250; count += 1) {
      calls.push(
        one
          .mutex(NAME)
          .singleFlight(() => "own", { freshMs: 60_000 })
          .catch((error: unknown) => error),
      );
      await time.advance(10);
    }
    // At 0, 250, 750 and 1 750 ms, before the first of them is sent again.
    expect(one.told()).toHaveLength(4);
    await time.settle(Promise.all(calls), { stepMs: 100 });
    for (const outcome of await Promise.all(calls)) expect(outcome).toBeInstanceOf(LockStoreError);
  });

  test("whose leader gives up go on without it", async () => {
    const { time, one, other } = hosts();
    const holder = await other.mutex(NAME).lock();
    const end = new AbortController();
    const leader = one.mutex(NAME).singleFlight(() => "leader", { signal: end.signal });
    const behind = one.mutex(NAME).singleFlight(() => "behind");
    await time.advance(100);
    end.abort(new Error("enough"));
    await expect(leader).rejects.toThrow("enough");
    await holder.unlock();
    await time.advance(1_000);
    expect(await behind).toBe("behind");
  });

  test("give up after waitMs, and at once with waitMs 0, each for itself", async () => {
    const { time, one, other } = hosts();
    const holder = await other.mutex(NAME).lock();
    const calls = [0, 200, 10_000].map((waitMs) => one.mutex(NAME).singleFlight(() => waitMs, { waitMs }));
    const settled = Promise.allSettled(calls);
    await time.advance(300);
    await holder.unlock();
    await time.advance(1_000);
    const [zero, short, long] = await settled;
    const timeout = { status: "rejected", reason: { code: "LOCK_TIMEOUT", holder: { owner: "other" } } };
    expect([zero, short]).toMatchObject([timeout, timeout]);
    expect(long).toMatchObject({ status: "fulfilled", value: 10_000 });
    expect(await one.mutex(NAME).singleFlight(() => "free", { waitMs: 0 })).toBe("free");
  });

  test("with waitMs 0 wait neither for a run of their process nor for its turn, and take what is there", async () => {
    const { time, one, other } = hosts();
    const mutex = one.mutex(NAME);
    const tries = async (): Promise<unknown[]> => {
      const calls = [0, 60_000].map((freshMs) => mutex.singleFlight(() => "own", { waitMs: 0, freshMs }));
      const seen = calls.map((call) => watch(call));
      const settled = Promise.allSettled(calls);
      await time.advance(100);
      expect(seen).toEqual([{ settled: true }, { settled: true }]);
      return (await settled).map((call) => (call.status === "fulfilled" ? call.value : call.reason.code));
    };
    await mutex.singleFlight(() => "there");
    const holder = await other.mutex(NAME).lock();
    const work = slow();
    const waiting = mutex.singleFlight(work.fn);
    await time.advance(100);
    expect(await tries()).toEqual(["LOCK_TIMEOUT", "there"]);
    await holder.unlock();
    await time.advanceUntil(() => work.runs === 1);
    expect(await tries()).toEqual(["LOCK_TIMEOUT", "there"]);
    work.end("new");
    expect(await waiting).toBe("new");
    expect(await mutex.singleFlight(() => "free", { waitMs: 0 })).toBe("free");
  });

  test("with waitMs 0 end after 10 s on a table that does not answer, however many there are", async () => {
    const { time, one } = hosts();
    await (await one.mutex("warm").lock()).unlock();
    one.fate = () => "lost";
    const took: number[] = [];
    const told: string[] = [];
    for (let index = 0; index < 12; index += 1) {
      const began = time.elapsed;
      void one
        .mutex(NAME)
        .singleFlight(() => "no", { waitMs: 0 })
        .catch((error) => {
          took.push(error.code === "LOCK_STORE" ? time.elapsed - began : Number.NaN);
          told.push(error.message);
        });
      await time.advance(700);
    }
    await time.advanceUntil(() => took.length === 12, { stepMs: 100 });
    expect(Math.max(...took)).toBeLessThanOrEqual(10_000);
    // That its own requests were given up is no cause.
    expect(told.filter((message) => !/: check its region/.test(message))).toEqual([]);
  });

  test("with waitMs 0 say that a table has throttled them for 10 s", async () => {
    const { time, one } = hosts();
    await (await one.mutex("warm").lock()).unlock();
    one.fate = () =>
      Promise.reject(new LockStoreError("slow down", { transient: true, answered: true, throttled: true }));
    const flight = expect(one.mutex(NAME).singleFlight(() => "no", { waitMs: 0 })).rejects.toThrow("slow down");
    await time.advance(10_000);
    await flight;
  });

  test("that wait outlast a table which throttles every request for longer than 10 s", async () => {
    const { time, one } = hosts();
    await (await one.mutex("warm").lock()).unlock();
    const throttled = { transient: true, answered: true, throttled: true };
    one.fate = () => Promise.reject(new LockStoreError("slow down", throttled));
    const flight = one.mutex(NAME).singleFlight(() => "ran");
    const watched = watch(flight);
    await time.advance(30_000);
    expect(watched.settled).toBe(false);
    one.fate = () => "answered";
    await time.advanceUntil(() => watched.settled);
    expect(await flight).toBe("ran");
  });

  test("leave nothing behind of a lock, however they end", async () => {
    const { time, one, other } = hosts();
    const failure = new Error("no");
    const failing = () => Promise.reject(failure);
    await one.mutex("ran").singleFlight(() => "ran");
    await one.mutex("ran").singleFlight(() => "ran", { freshMs: 60_000 });
    await expect(one.mutex("failed").singleFlight(failing)).rejects.toBe(failure);
    const holder = await other.mutex("held").lock();
    const waiting = one.mutex("held").singleFlight(failing, { waitMs: 500 });
    await expect(one.mutex("held").singleFlight(failing, { waitMs: 0 })).rejects.toMatchObject({
      code: "LOCK_TIMEOUT",
    });
    const timedOut = expect(waiting).rejects.toMatchObject({ code: "LOCK_TIMEOUT" });
    expect(one.flights.size).toBe(1);
    await time.advance(1_000);
    await timedOut;
    await holder.unlock();
    await turn();
    expect(one.flights.size).toBe(0);
  });

  test("end with the table, but for the one that runs", async () => {
    const { one } = hosts();
    const work = slow();
    const first = one.mutex(NAME).singleFlight(work.fn);
    await turn();
    const joined = one.mutex(NAME).singleFlight(work.fn);
    await turn();
    const closing = one.session.close();
    await expect(joined).rejects.toMatchObject({ code: "LOCK_CLOSED" });
    work.end("done");
    expect(await first).toBe("done");
    await closing;
    await expect(one.mutex(NAME).singleFlight(work.fn)).rejects.toMatchObject({ code: "LOCK_CLOSED" });
  });

  test("all get an error if the table cannot be used", async () => {
    const { time, one } = hosts();
    one.fate = () => "lost";
    const calls = Promise.allSettled([1, 2].map(() => one.mutex(NAME).singleFlight(() => "never")));
    await time.advance(20_000);
    for (const call of await calls) {
      expect(call).toMatchObject({ status: "rejected", reason: expect.any(LockStoreError) });
    }
  });
});

function argumentsOf(..._: unknown[]): IArguments {
  // biome-ignore lint/complexity/noArguments: what is tested
  return arguments;
}

describe("the value of a flight", () => {
  const SHARED: readonly unknown[] = [
    ...["text", "", 5, 1.5, 1e-7, 0, true, false, null, undefined, 2n ** 60n],
    ...[new Uint8Array([1, 2]), new Set(["a", "b"]), new Set([1, 2])],
    { list: [1, "a", null, { deep: [true] }], map: {} },
    // Without a prototype, as GraphQL's and JSON's parsers make them.
    Object.assign(Object.create(null), { a: [1] }),
  ];
  test.each(SHARED)("comes back as it went in: %p", async (value) => {
    const { one, other } = hosts();
    await one.mutex(NAME).singleFlight(() => value);
    expect(await other.mutex(NAME).singleFlight(() => "own", { freshMs: 1_000 })).toEqual(value);
  });

  const OWN: readonly (readonly [string, unknown, string])[] = [
    ["a date", { at: new Date() }, "data.value.at"],
    ["a function", () => 1, "data.value"],
    ["a small bigint", [5n], "data.value.0"],
    ["a large number", 2 ** 60, "data.value"],
    ["a number that is written with an exponent", -1.5e21, "data.value"],
    ["a set of small bigints", new Set([5n]), "data.value (a member)"],
    ["-0", { at: [-0] }, "data.value.at.0"],
    ["a match of a RegExp, an array with properties", /(?<b>b)/.exec("abc"), "data.value"],
    ["a set with a property", Object.assign(new Set(["a"]), { more: 1 }), "data.value"],
    ["a property under a symbol", { in: { [Symbol("key")]: 1 } }, "data.value.in"],
    ["a subclass of Array", { list: new (class Rows extends Array {})() }, "data.value.list"],
    ["a subclass of Set", new (class Names extends Set {})(["a"]), "data.value"],
    ["a subclass of Uint8Array", { bytes: Buffer.from("abc") }, "data.value.bytes"],
    ["arguments", argumentsOf("a"), "data.value"],
    ["more than 350 KB", "x".repeat(350 * 1_024), "value"],
  ];
  test.each(OWN)("that cannot be shared, %s, goes to its own caller, and a channel says so", async (_, value, path) => {
    const warn = jest.spyOn(process, "emitWarning").mockImplementation(() => undefined);
    const heard = hear("dynamutex:not-shared");
    const { one, other } = hosts();
    const calls = [one.mutex(NAME).singleFlight(() => value), one.mutex(NAME).singleFlight(() => "own")];
    expect(await Promise.all(calls)).toEqual([value, "own"]);
    expect(heard).toMatchObject([{ name: NAME, cause: { code: "LOCK_CONFIG" } }]);
    expect(String(heard[0]?.cause)).toContain(path);
    expect(await other.mutex(NAME).singleFlight(() => "other", { freshMs: 60_000 })).toBe("own");
    expect(warn.mock.calls).toEqual([[expect.stringContaining(path), "DynamutexWarning"]]);
    warn.mockRestore();
  });

  test("is not shared if the table does not take it, and the call has it all the same", async () => {
    const { time, one, other } = hosts();
    one.fate = (message) => (message.kind === "write" && message.write.kind === "put-result" ? "lost" : "answered");
    const heard = hear("dynamutex:not-shared");
    const call = one.mutex(NAME, { ttlMs: 2_000, maxHoldMs: 5_000 }).singleFlight(() => "own");
    const settled = call.catch((error) => error);
    await time.advance(20_000);
    expect(await settled).toMatchObject({ code: "LOCK_LOST" });
    expect(heard).toHaveLength(1);
    expect(await other.mutex(NAME).singleFlight(() => "next", { freshMs: 60_000 })).toBe("next");
  });
});

describe("a value whose row alone is throttled", () => {
  const throttled = () => new LockStoreError("slow down", { transient: true, throttled: true });
  const putsValue = (message: Message): boolean => message.kind === "write" && message.write.kind === "put-result";

  test.each([
    ["as long as a release", 2_000, { ttlMs: 6_000 }, 5_000],
    ["until the lease as it was would end", 2_000, { ttlMs: 30_000 }, 25_000],
  ])("is tried for %s, and then goes to its own caller alone", async (_, runMs, options, triedMs) => {
    const { time, one, other } = hosts();
    one.fate = (message) => (putsValue(message) ? Promise.reject(throttled()) : "answered");
    const heard = hear("dynamutex:not-shared");
    const mutex = one.mutex(NAME, options);
    const call = mutex.singleFlight(async () => {
      await one.session.clock.sleep(runMs);
      return "own";
    });
    const next = other.mutex(NAME, options).singleFlight(() => "next");
    await time.settle(call, { stepMs: 50, withinMs: 60_000 });
    expect(await call).toBe("own");
    expect(heard).toHaveLength(1);
    expect(time.elapsed).toBeGreaterThan(runMs + triedMs - 1_000);
    expect(time.elapsed).toBeLessThanOrEqual(runMs + triedMs + 50);
    expect(one.row(NAME)?.uuid).toBeUndefined();
    await time.settle(next, { stepMs: 50 });
    expect(await next).toBe("next");
  });
});

test("a flight is refused where it cannot work", async () => {
  const locks = new LockTable({ tableName: "flat", keys: { sort: null } });
  await expect(locks.mutex(NAME).singleFlight(() => 1)).rejects.toMatchObject({ option: "keys.sort" });
  const mutex = hosts().one.mutex(NAME);
  await expect(mutex.singleFlight(1 as never)).rejects.toMatchObject({ option: "fn" });
  await expect(mutex.singleFlight(() => 1, { freshMs: -1 })).rejects.toMatchObject({ option: "freshMs" });
  await expect(mutex.singleFlight(() => 1, { fresh: 1 } as never)).rejects.toThrow("did you mean freshMs");
});
