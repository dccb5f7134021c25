import { expect, test } from "@jest/globals";
import {
  type FencedLock,
  type Lock,
  type Lockable,
  type LockOptions,
  LockTimeoutError,
  type Mutex,
  type Permit,
  type Semaphore,
  type SharedMutex,
  type TransferableLock,
  type TryOptions,
  type TryRun,
} from "../../lib/index.js";
import { hear } from "../support/diagnostics.js";
import { watch } from "../support/eventually.js";
import { ManualTime } from "../support/manual-time.js";
import { hosts, MemoryHost } from "../support/memory-host.js";

/** What a user's program does with whatever it is given. */
async function report(lockable: Lockable, job: (signal: AbortSignal) => Promise<string>): Promise<string> {
  await using lock = await lockable.lock({ waitMs: 5_000, data: { job: "report" } });
  return await job(lock.signal);
}

async function reportIfFree(lockable: Lockable): Promise<string> {
  const result = await lockable.tryRun(({ name }) => `reported ${name}`, { holdAtLeastMs: 0 });
  return result.ran ? result.value : result.reason;
}

type Held = Pick<Lock, "name" | "signal" | "unlock"> & AsyncDisposable;

/** A user's double: as small as the program that it is for. */
class Fake implements Lockable<Held> {
  readonly calls: string[] = [];
  isHeld = false;

  async lock(_options?: LockOptions): Promise<Held> {
    this.calls.push("lock");
    this.isHeld = true;
    const unlock = async (): Promise<void> => {
      this.calls.push("unlock");
      this.isHeld = false;
    };
    return { name: "fake", signal: new AbortController().signal, unlock, [Symbol.asyncDispose]: unlock };
  }

  async tryLock(_options?: TryOptions): Promise<Held | null> {
    return this.isHeld ? null : await this.lock();
  }

  async run<T>(fn: (lock: Held) => T | Promise<T>, options?: LockOptions): Promise<T> {
    await using lock = await this.lock(options);
    return await fn(lock);
  }

  async tryRun<T>(fn: (lock: Held) => T | Promise<T>, options?: TryOptions): Promise<TryRun<T>> {
    await using lock = await this.tryLock(options);
    if (lock === null) return { ran: false, reason: "held", holder: undefined };
    return { ran: true, value: await fn(lock) };
  }
}

test("a double of a user's own stands in for a lock", async () => {
  const fake = new Fake();
  const value = await fake.run(async ({ name }) => `reported ${name}`);
  expect([value, fake.calls]).toEqual(["reported fake", ["lock", "unlock"]]);
  await fake.lock();
  expect(await fake.tryRun(() => "never")).toEqual({ ran: false, reason: "held", holder: undefined });
});

test("a function that takes a Lockable takes a double, and every kind of lock", async () => {
  const host = new MemoryHost(new ManualTime());
  const { shared, exclusive } = host.sharedMutex("reports");
  const real: readonly Lockable[] = [
    host.mutex("reports"),
    host.mutex("fenced-reports", { fencing: true }),
    host.semaphore("reports", { permits: 2 }),
    shared,
    exclusive,
  ];
  const lock = await host.mutex("double").lock();
  const double: Lockable = {
    lock: async () => lock,
    tryLock: async () => lock,
    run: async (fn) => await fn(lock),
    tryRun: async (fn) => ({ ran: true, value: await fn(lock) }),
  };
  for (const lockable of [...real, double]) {
    expect(await report(lockable, async (signal) => `aborted: ${signal.aborted}`)).toBe("aborted: false");
  }
  for (const lockable of real) expect(await reportIfFree(lockable)).toMatch(/^reported (fenced-)?reports$/);
  expect(host.table.rows.filter(({ uuid }) => uuid !== undefined)).toEqual([]);
});

test("every kind refuses the same arguments in the same way", async () => {
  const host = new MemoryHost(new ManualTime());
  const { shared, exclusive } = host.sharedMutex("reports");
  for (const lockable of [host.mutex("reports"), host.semaphore("reports", { permits: 2 }), shared, exclusive]) {
    for (const fn of [undefined, null, {}]) {
      await expect(lockable.run(fn as never)).rejects.toMatchObject({ code: "LOCK_CONFIG", option: "fn" });
    }
    await expect(lockable.tryRun("work" as never)).rejects.toMatchObject({ code: "LOCK_CONFIG", option: "fn" });
    await expect(lockable.lock({ waitMs: -1 })).rejects.toMatchObject({ code: "LOCK_CONFIG", option: "waitMs" });
    await expect(lockable.lock({ wait: 1 } as never)).rejects.toMatchObject({ code: "LOCK_CONFIG", option: "wait" });
    await expect(lockable.tryLock({ waitMs: 1 } as never)).rejects.toMatchObject({ option: "waitMs" });
    await expect(lockable.lock({ data: { fn: () => 1 } })).rejects.toMatchObject({ code: "LOCK_CONFIG" });
    const signal = AbortSignal.abort(new Error("enough"));
    await expect(lockable.lock({ signal })).rejects.toThrow("enough");
  }
  expect(host.sent).toEqual([]);
});

test("run() follows the signal of its caller, of every kind, and that is no loss", async () => {
  const losses = hear("dynamutex:lost");
  const host = new MemoryHost(new ManualTime());
  const { shared, exclusive } = host.sharedMutex("reports");
  for (const lockable of [host.mutex("reports"), host.semaphore("reports", { permits: 2 }), shared, exclusive]) {
    const controller = new AbortController();
    const running = (lockable as Lockable).run(
      (lock) => {
        const told: unknown[] = [];
        lock.signal.addEventListener("abort", () => told.push(lock.signal.reason));
        controller.abort("enough");
        return [told, lock.held];
      },
      { signal: controller.signal },
    );
    expect(await running).toEqual([["enough"], true]);
  }
  expect(losses).toEqual([]);
});

test("the signal of lock() ends its wait alone: a lock that is held does not follow it, of any kind", async () => {
  const host = new MemoryHost(new ManualTime());
  const { shared, exclusive } = host.sharedMutex("reports");
  for (const lockable of [host.mutex("reports"), host.semaphore("reports", { permits: 2 }), shared, exclusive]) {
    const controller = new AbortController();
    const lock = await (lockable as Lockable).lock({ signal: controller.signal });
    controller.abort("enough");
    expect([lock.held, lock.signal.aborted]).toEqual([true, false]);
    await lock.unlock();
  }
});

test.each<readonly [string, (host: MemoryHost) => Lockable]>([
  ["a mutex", (host) => host.mutex("reports")],
  ["a fair mutex", (host) => host.mutex("reports", { fair: true })],
  ["a semaphore", (host) => host.semaphore("reports", { permits: 1 })],
  ["the exclusive side", (host) => host.sharedMutex("reports").exclusive],
])("waitMs and a signal end a wait for %s; a call that lost a race gets its lock, and keeps it", async (_, of) => {
  const { time, one, other } = hosts();
  const held = await of(one).lock();
  const controller = new AbortController();
  const failures: unknown[] = [];
  for (const options of [{ waitMs: 1_000 }, { signal: controller.signal }])
    of(other)
      .lock(options)
      .catch((error: unknown) => failures.push(error));
  const waiting = of(other).lock();
  expect(await Promise.race([waiting, time.advance(1_000)])).toBeUndefined();
  controller.abort("enough");
  await time.advance(0);
  expect(failures).toEqual([expect.any(LockTimeoutError), "enough"]);
  await held.unlock();
  const granted = watch(waiting);
  await time.advanceUntil(() => granted.settled);
  await time.advance(60_000);
  const lock = await waiting;
  expect(lock.held).toBe(true);
  await lock.unlock();
});

type Assert<Holds extends true> = Holds;
type IsAssignable<From, To> = From extends To ? true : false;

test("what each kind gives is in its type: what compiles is the test", () => {
  const assignable: [
    Assert<IsAssignable<Mutex, Lockable>>,
    Assert<IsAssignable<Mutex, Lockable<TransferableLock>>>,
    Assert<IsAssignable<Mutex<FencedLock>, Lockable<FencedLock>>>,
    Assert<IsAssignable<Mutex<FencedLock>, Lockable>>,
    Assert<IsAssignable<Semaphore, Lockable<Permit>>>,
    Assert<IsAssignable<Semaphore, Lockable>>,
    Assert<IsAssignable<SharedMutex["shared"], Lockable>>,
    Assert<IsAssignable<SharedMutex["exclusive"], Lockable>>,
    Assert<IsAssignable<Fake, Lockable<Held>>>,
  ] = [true, true, true, true, true, true, true, true, true];
  // A lock has what a permit has not, and the other way round.
  const not: [
    IsAssignable<Semaphore, Lockable<FencedLock>>,
    IsAssignable<Mutex, Lockable<Permit>>,
    IsAssignable<Mutex, Lockable<FencedLock>>,
    IsAssignable<SharedMutex["shared"], Lockable<TransferableLock>>,
  ] = [false, false, false, false];
  expect([...new Set(assignable), ...new Set(not)]).toEqual([true, false]);
});
