import { describe, expect, test } from "@jest/globals";
import type { HeldLock } from "../../../lib/holding/handle.js";
import { type Lock, LockStoreError, type Mutex, type TryRunOptions } from "../../../lib/index.js";
import { lockAt } from "../../../lib/protocol/addresses.js";
import { TestTable } from "../../../lib/testing/index.js";
import { hear } from "../../support/diagnostics.js";
import { deferred } from "../../support/fault-proxy/deferred.js";
import { createGate } from "../../support/fault-proxy/gate.js";
import { type Fate, hosts, inWords } from "../../support/memory-host.js";
import type { Message } from "../../support/message.js";

const TTL_MS = 30_000;
/** Long before the end of an hour, which is a period here. */
const START = new Date("2030-01-01T00:00:00Z");
const TICK: TryRunOptions = { once: 7, untilSuccess: true };
const RAN = { ran: true, value: "done" };

const job = () => "done";
const failure = new Error("the job's own");
const failing = (): string => {
  throw failure;
};

function twoHosts() {
  const table = new TestTable({ time: "manual", startAt: START, ttlMs: TTL_MS });
  const [locks, others] = [table.host({ owner: "a" }), table.host({ owner: "b" })];
  return { table, locks, others, mutex: locks.mutex("report"), other: others.mutex("report") };
}

/** A run that has begun, and goes on until it is told to end. */
async function begin(mutex: Mutex, { options = TICK, outcome = job } = {}) {
  const [begun, gate] = [deferred<Lock>(), createGate()];
  const run = mutex.tryRun(async (lock) => {
    begun.resolve(lock);
    await gate.released;
    return outcome();
  }, options);
  run.catch(() => undefined); // each test awaits it
  return { lock: await begun.promise, run, end: gate.release };
}

describe("a tick that is run until it succeeds", () => {
  test("is run again after a throw, by whoever asks next, and is done for all once one run has succeeded", async () => {
    const { mutex, other } = twoHosts();
    await expect(mutex.tryRun(failing, TICK)).rejects.toBe(failure);
    expect(await other.inspect()).toMatchObject({ uuid: undefined, tick: 7, attempts: 1, succeeded: false });
    expect(await other.tryRun((lock) => [lock.tick, lock.attempt], TICK)).toEqual({ ran: true, value: [7, 2] });
    for (const host of [mutex, other]) {
      const done = { ran: false, reason: "done", holder: { tick: 7, attempts: 2, succeeded: true } };
      expect(await host.tryRun(job, TICK)).toMatchObject(done);
      expect(await host.tryRun(job, { once: 7 })).toMatchObject({ reason: "done" });
    }
    expect(await mutex.inspect()).toMatchObject({ uuid: undefined, tick: 7, attempts: 2, succeeded: true });
  });

  test("counts its runs for its own tick alone: a later tick of an older process, which keeps the numbers, is not set back", async () => {
    const { one, other } = hosts();
    const { run, end } = await begin(other.mutex("report"), { outcome: failing });
    expect(await one.mutex("report").tryRun(job, TICK)).toMatchObject({ reason: "held" });
    end();
    await expect(run).rejects.toBe(failure);
    const item = one.table.item(lockAt("report"));
    expect(item).toMatchObject({ tick: 7, due: 7, attempt: 1, expires: 0 });
    one.table.plant(lockAt("report"), { ...item, tick: 8 });
    expect(await one.mutex("report").tryRun(job, TICK)).toMatchObject({ ran: false, reason: "superseded" });
    expect(one.row("report")).toMatchObject({ tick: 8 });
  });

  test("is run by one host at a time: while a run lasts it is held", async () => {
    const { mutex, other } = twoHosts();
    const { lock, run, end } = await begin(mutex);
    expect(lock).toMatchObject({ tick: 7, attempt: 1 });
    expect(await other.tryRun(job, TICK)).toMatchObject({ reason: "held", holder: { owner: "a", succeeded: false } });
    end();
    expect(await run).toEqual(RAN);
    expect(await other.tryRun(job, TICK)).toMatchObject({ reason: "done" });
  });

  test("is run again after a death, once the lease is over, and the run of the dead is not recorded any more", async () => {
    const { table, locks, mutex, other } = twoHosts();
    const { run, end } = await begin(mutex);
    table.silence(locks);
    await table.clock.advance(TTL_MS + 1_000);
    expect(await other.tryRun((lock) => lock.attempt, TICK)).toEqual({ ran: true, value: 2 });
    table.answer(locks);
    end();
    await expect(run).rejects.toMatchObject({ code: "LOCK_STORE", message: expect.stringMatching(/was not recorded/) });
    expect(await other.inspect()).toMatchObject({ attempts: 2, succeeded: true });
  });

  test("runs at most maxAttempts times: then it is given up, but held while the last run may go on", async () => {
    const { mutex, other } = twoHosts();
    const options = { once: 7, untilSuccess: { maxAttempts: 2 } };
    await expect(mutex.tryRun(failing, options)).rejects.toBe(failure);
    const { run, end } = await begin(other, { options, outcome: failing });
    expect(await mutex.tryRun(job, options)).toMatchObject({ reason: "held" });
    end();
    await expect(run).rejects.toBe(failure);
    for (const host of [mutex, other]) {
      expect(await host.tryRun(job, options)).toMatchObject({ reason: "gave-up", holder: { tick: 7, attempts: 2 } });
    }
    expect(await mutex.tryRun(job, { once: 7, untilSuccess: { maxAttempts: 3 } })).toEqual(RAN);
  });

  test("is run again after its row was deleted, also by a host that has seen the row", async () => {
    const { table, mutex, other } = twoHosts();
    const { run, end } = await begin(mutex);
    expect(await other.tryRun(job, TICK)).toMatchObject({ reason: "held" });
    table.lose("report", "deleted");
    end();
    await expect(run).rejects.toMatchObject({ code: "LOCK_STORE" });
    expect(await other.tryRun(job, TICK)).toEqual(RAN);
  });

  test("untilSuccess: false is what leaving it out is", async () => {
    const { mutex, other } = twoHosts();
    await expect(mutex.tryRun(failing, { once: 7, untilSuccess: false })).rejects.toBe(failure);
    expect(await other.tryRun(job, { once: 7, untilSuccess: false })).toMatchObject({ reason: "done" });
    expect(await other.inspect()).toMatchObject({ attempts: undefined });
    expect(await mutex.tryRun(job, { untilSuccess: false })).toEqual(RAN);
  });

  test("a run that has not begun is no attempt", async () => {
    const { mutex, other } = twoHosts();
    const options = { once: 7, untilSuccess: { maxAttempts: 1 } };
    for (const host of [mutex, other, mutex]) {
      await expect(
        host.tryRun((lock) => {
          (lock as HeldLock).uncountAttempt();
          throw failure;
        }, options),
      ).rejects.toBe(failure);
      expect(await host.inspect()).toMatchObject({ attempts: 0, succeeded: false });
    }
    expect(await other.tryRun((lock) => lock.attempt, options)).toEqual({ ran: true, value: 1 });
    expect(await mutex.tryRun(job, options)).toMatchObject({ reason: "done" });
  });

  test("a later tick supersedes one that is open, with its own number of attempts", async () => {
    const { mutex, other } = twoHosts();
    await expect(mutex.tryRun(failing, TICK)).rejects.toBe(failure);
    await expect(mutex.tryRun(failing, TICK)).rejects.toBe(failure);
    expect(await other.tryRun((lock) => lock.attempt, { ...TICK, once: 8 })).toEqual({ ran: true, value: 1 });
    expect(await mutex.tryRun(job, TICK)).toMatchObject({ reason: "superseded", holder: { tick: 8, attempts: 1 } });
  });

  test("periods are run until they succeed as well", async () => {
    const { table, mutex, other } = twoHosts();
    const options: TryRunOptions = { everyMs: 3_600_000, untilSuccess: true };
    const ask = async (host: typeof mutex, fn: (lock: Lock) => unknown) => {
      const asked = host.tryRun(fn, options).catch((error: unknown) => error);
      await table.clock.advance(5_000);
      return await asked;
    };
    expect(await ask(mutex, failing)).toBe(failure);
    expect(await ask(other, (lock) => lock.attempt)).toEqual({ ran: true, value: 2 });
    expect(await ask(mutex, job)).toMatchObject({ reason: "done" });
    await table.clock.advance(3_600_000);
    expect(await ask(mutex, (lock) => lock.attempt)).toEqual({ ran: true, value: 1 });
  });
});

describe("beside callers that do not ask for success", () => {
  test("a failed tick of others is done for them, and one of theirs is done for all", async () => {
    const { mutex, other } = twoHosts();
    await expect(mutex.tryRun(failing, TICK)).rejects.toBe(failure);
    expect(await other.tryRun(job, { once: 7 })).toMatchObject({ reason: "done", holder: { succeeded: false } });
    await expect(other.tryRun(failing, { once: 8 })).rejects.toBe(failure);
    expect(await mutex.tryRun(job, { ...TICK, once: 8 })).toMatchObject({ reason: "done", holder: { tick: 8 } });
    expect(await mutex.inspect()).toMatchObject({
      uuid: undefined,
      tick: 8,
      attempts: undefined,
      lastRun: { owner: "b" },
    });
  });

  test("plain use of the mutex in between leaves a tick open", async () => {
    const { mutex, other } = twoHosts();
    await expect(mutex.tryRun(failing, TICK)).rejects.toBe(failure);
    await other.run(job);
    expect(await other.tryRun((lock) => lock.attempt, TICK)).toEqual({ ran: true, value: 2 });
  });

  test("a fair mutex runs a tick until it succeeds as well", async () => {
    const { locks, others } = twoHosts();
    const [mutex, other] = [locks.mutex("report", { fair: true }), others.mutex("report", { fair: true })];
    await expect(mutex.tryRun(failing, TICK)).rejects.toBe(failure);
    expect(await other.tryRun((lock) => lock.attempt, TICK)).toEqual({ ran: true, value: 2 });
    expect(await mutex.tryRun(job, TICK)).toMatchObject({ reason: "done" });
  });
});

describe("the record of a success", () => {
  test("is waited for while the lock is held: the lease is renewed meanwhile", async () => {
    const { table, locks, mutex, other } = twoHosts();
    const { run, end } = await begin(mutex);
    table.silence(locks);
    end();
    await table.clock.advance(TTL_MS / 2);
    table.answer(locks);
    await table.clock.advance(5_000);
    expect(await run).toEqual(RAN);
    expect(await other.tryRun(job, TICK)).toMatchObject({ reason: "done" });
  });

  test("is written after a loss, too, where the row is still there: the loss is thrown, and the tick is done", async () => {
    const { table, locks, other } = twoHosts();
    const mutex = locks.mutex("report", { maxHoldMs: 5_000 });
    const { lock, run, end } = await begin(mutex);
    await table.clock.advance(6_000);
    expect(lock.held).toBe(false);
    end();
    await expect(run).rejects.toMatchObject({ code: "LOCK_LOST", reason: "max-hold" });
    expect(await other.tryRun(job, TICK)).toMatchObject({ reason: "done", holder: { succeeded: true } });
  });

  test("is written after a close whose drain was over before the run", async () => {
    const { table, locks, mutex, other } = twoHosts();
    const { run, end } = await begin(mutex);
    const closed = locks.close({ drainMs: 1_000 }).catch(() => undefined);
    await table.clock.advance(2_000);
    end();
    await expect(run).rejects.toMatchObject({ code: "LOCK_LOST", reason: "closed" });
    await closed;
    expect(await other.tryRun(job, TICK)).toMatchObject({ reason: "done", holder: { succeeded: true } });
  });

  test("a run that gives its lock away before its end is not recorded", async () => {
    const { mutex, other } = twoHosts();
    const run = mutex.tryRun((lock) => lock.unlock(), TICK);
    await expect(run).rejects.toMatchObject({ code: "LOCK_STORE" });
    expect(await other.tryRun((lock) => lock.attempt, TICK)).toEqual({ ran: true, value: 2 });
  });

  test("its lease is not passed on, and cannot be handed off", async () => {
    const { mutex } = twoHosts();
    let waiting: Promise<string> | undefined;
    const uuid = await mutex.tryRun(async (lock) => {
      waiting = mutex.run((next) => next.uuid);
      await expect(lock.handOff({ validForMs: 1_000 })).rejects.toMatchObject({ code: "LOCK_CONFIG" });
      expect(lock.held).toBe(true);
      return lock.uuid;
    }, TICK);
    expect(uuid.ran && uuid.value).not.toBe(await waiting);
  });
});

describe("a success that the table does not confirm", () => {
  const refusal = () => new LockStoreError("not authorized", { answered: true });
  const records = (message: Message): boolean => message.kind === "write" && message.write.kind === "record";

  /** A run that ends after 2 s, so that its lease has 25 s left. */
  async function recorded(fate: (message: Message) => Fate) {
    const { time, one, other } = hosts();
    const heard = hear("dynamutex:not-recorded");
    const mutex = one.mutex("report", { ttlMs: TTL_MS });
    one.fate = (message) => (records(message) ? fate(message) : "answered");
    const run = mutex.tryRun(() => one.session.clock.sleep(2_000), TICK).catch((error: unknown) => error);
    await time.settle(run, { stepMs: 100, withinMs: 10 * TTL_MS });
    return { time, one, other, heard, outcome: await run };
  }

  test.each<[string, (message: Message) => Fate]>([
    ["is refused for good", () => Promise.reject(refusal())],
    ["gets no answer", () => "lost"],
  ])(
    "whose record alone %s is given up when the lease as it was would end, though the lease is renewed",
    async (_, fate) => {
      const { time, one, other, heard, outcome } = await recorded(fate);
      expect(outcome).toMatchObject({
        code: "LOCK_STORE",
        message: expect.stringContaining("it is not known whether"),
      });
      expect(heard).toMatchObject([{ name: "report", tick: 7, attempt: 1, isKnown: false }]);
      expect(one.sent.some((message) => inWords(message) === "renew lock")).toBe(true);
      // 27 s after the take. The release is quick.
      expect(time.elapsed).toBeGreaterThan(25_000);
      expect(time.elapsed).toBeLessThan(28_000);
      expect(one.row("report")?.uuid).toBeUndefined();
      expect(await other.mutex("report").tryRun((lock) => lock.attempt, TICK)).toEqual({ ran: true, value: 2 });
    },
  );

  test("is recorded after an outage that is shorter than the lease", async () => {
    const until = 20_000;
    const { time, one } = hosts();
    one.fate = () => (time.elapsed > 0 && time.elapsed < until ? "lost" : "answered");
    const run = one.mutex("report", { ttlMs: TTL_MS }).tryRun(() => one.session.clock.sleep(1_000), TICK);
    await time.settle(run, { stepMs: 100, withinMs: 2 * TTL_MS });
    expect(await run).toMatchObject({ ran: true });
    expect(one.row("report")).toMatchObject({ tick: 7, due: undefined });
  });

  test("is known not to be recorded where another host has the row", async () => {
    const { table, locks, mutex, other } = twoHosts();
    const heard = hear("dynamutex:not-recorded");
    const { run, end } = await begin(mutex);
    table.silence(locks);
    await table.clock.advance(TTL_MS + 1_000);
    const next = await begin(other);
    table.answer(locks);
    end();
    await expect(run).rejects.toThrow("its success was not recorded");
    expect(heard).toMatchObject([{ isKnown: true }]);
    next.end();
    expect(await next.run).toEqual(RAN);
  });
});

describe("an option that cannot work", () => {
  const refused = { code: "LOCK_CONFIG", option: "untilSuccess" };

  test.each([
    [{ once: 7, untilSuccess: 3 }],
    [{ once: 7, untilSuccess: {} }],
    [{ once: 7, untilSuccess: { maxAttempts: 0 } }],
    [{ once: 7, untilSuccess: { maxAttempts: 1.5 } }],
    [{ once: 7, untilSuccess: { maxAttempts: 2, maxTries: 3 } }],
    [{ untilSuccess: true }],
  ])("%p is refused before anything is sent", async (options) => {
    const { mutex } = twoHosts();
    await expect(mutex.tryRun(job, options as TryRunOptions)).rejects.toMatchObject(refused);
    expect(await mutex.inspect()).toBeNull();
  });

  test("is refused by every other call, and by locks without ticks", async () => {
    const { locks, mutex } = twoHosts();
    const options = { ...TICK, once: undefined } as object;
    await expect(mutex.tryLock(TICK as object)).rejects.toMatchObject(refused);
    await expect(mutex.lock(options)).rejects.toMatchObject({ code: "LOCK_CONFIG" });
    await expect(mutex.run(job, options)).rejects.toMatchObject({ code: "LOCK_CONFIG" });
    await expect(locks.semaphore("s", { permits: 2 }).tryRun(job, options)).rejects.toMatchObject(refused);
    await expect(locks.sharedMutex("m").shared.tryRun(job, options)).rejects.toMatchObject(refused);
  });
});
