/// <reference lib="esnext.disposable" preserve="true" />

import { LockConfigError } from "./errors.js";
import type { HeldLock } from "./holding/handle.js";
import type { Lock } from "./lock.js";
import { copyOf, type LockData, type LockInfo, type LockState } from "./lock-info.js";
import { forceUnlock } from "./operations/force-unlock.js";
import { inspect } from "./operations/inspect.js";
import type { ForceUnlockOptions, LockOptions, TryLockOptions } from "./options/calls.js";
import { forceUnlockOptions, lockOptions, tryLockOptions } from "./options/calls.js";
import { NONE } from "./options/check.js";
import type { MutexSettings } from "./options/mutex.js";
import { lockAt } from "./protocol/addresses.js";
import type { Sections } from "./queues/sections.js";
import type { Session } from "./session/session.js";
import type { Target } from "./taking/acquisition.js";
import type { Once } from "./taking/known-time.js";
import { Wait } from "./taking/wait.js";

/**
 * The result of `tryRun()`: the value of the function, or why it did not run. `held`: the lock is held, or still taken
 * because of `holdAtLeastMs`, or this process has just had it for `handOverMs` and lets others in; a later call may succeed.
 * `done`: this tick, or a later one, was already granted; no later call for this tick can succeed. `done` does not tell whether
 * that run has ended, or whether it succeeded.
 */
export type TryRun<T> =
  | { readonly ran: true; readonly value: T }
  | { readonly ran: false; readonly because: "held" | "done"; readonly row: LockInfo | undefined };

/**
 * A named mutex. Making one sends nothing. Several with the same name, in one process or many, exclude one another.
 *
 * @typeParam Held the type of its locks: {@link FencedLock} with `fencing: true`.
 */
export class Mutex<Held extends Lock = Lock> {
  readonly name: string;
  readonly #sections: Sections;
  readonly #session: Session;
  readonly #target: Target;

  /** @internal Made by `LockTable.mutex()`. */
  constructor(sections: Sections, name: string, settings: MutexSettings) {
    this.name = name;
    this.#sections = sections;
    this.#session = sections.session;
    this.#target = { at: lockAt(name), settings };
  }

  /**
   * Waits for the lock and takes it.
   *
   * @param options.signal ends the waiting. It does not affect a lock that was granted.
   * @param options.waitMs how long to wait, in ms. Default: the mutex's `waitMs`.
   * @param options.data your own attributes for the row.
   * @param options.holdAtLeastMs how long the lock stays taken at least, in ms. Default 0.
   * @throws {@link LockTimeoutError} after `waitMs`. It names the holder.
   * @throws the reason of `signal`.
   * @throws {@link LockStoreError} if the table cannot be used, or has not answered once within 10 s.
   * @throws {@link LockConfigError} if an option cannot work.
   *
   * @example
   * await using lock = await mutex.lock({ waitMs: 5_000 });
   * await charge(customer, { signal: lock.signal });
   */
  async lock(options: LockOptions = NONE): Promise<Held> {
    return as<Held>(await this.#lock(options));
  }

  /**
   * Takes the lock if it is free.
   *
   * @param options.data your own attributes for the row.
   * @param options.holdAtLeastMs how long the lock stays taken at least, in ms. Default 0.
   * @param options.once a tick, for which the lock is granted at most once.
   * @param options.everyMs the same, for each period of this many ms on the table's clock.
   * @returns the lock; null if it is held, or the tick was already granted. `await using` accepts null.
   * @throws {@link LockStoreError} if the table cannot be used, or does not answer within 10 s.
   * @throws {@link LockConfigError} if an option cannot work.
   *
   * @example
   * await using lock = await mutex.tryLock();
   * if (lock === null) return; // held by another host
   */
  async tryLock(options: TryLockOptions = NONE): Promise<Held | null> {
    tryLockOptions(options);
    const result = await this.#try(options, this.#begin(options));
    return result.kind === "granted" ? as<Held>(result.lock) : null;
  }

  /**
   * Waits for the lock, runs `fn`, and releases the lock whether `fn` succeeds or fails.
   *
   * @param options as for `lock()`. Its `signal` also aborts `lock.signal`.
   * @throws the same error as `fn`, or, if `fn` succeeds but the lock was lost, a {@link LockLostError}.
   * @throws the errors of `lock()`.
   *
   * @example
   * const report = await mutex.run(async (lock) => await buildReport(lock.signal));
   */
  async run<T>(fn: (lock: Held) => T | Promise<T>, options: LockOptions = NONE): Promise<T> {
    checkFunction(fn);
    const lock = await this.#lock(options);
    return await runUnder(lock, fn, options.signal);
  }

  /**
   * Runs `fn` if the lock is free: for a job that several hosts have on the same schedule.
   *
   * @param options as for `tryLock()`.
   * @throws the same error as `fn`, or, if `fn` succeeds but the lock was lost, a {@link LockLostError}.
   * @throws the errors of `tryLock()`.
   *
   * @example
   * const result = await mutex.tryRun(async () => await sendInvoices());
   * if (!result.ran) console.log(`left to ${result.row?.owner}`);
   *
   * @example
   * // Called on every host every minute, this runs once an hour on one of them, even if their clocks differ.
   * await mutex.tryRun((lock) => sendReport(lock.signal), { everyMs: 3_600_000 });
   */
  async tryRun<T>(fn: (lock: Held) => T | Promise<T>, options: TryLockOptions = NONE): Promise<TryRun<T>> {
    checkFunction(fn);
    tryLockOptions(options);
    const result = await this.#try(options, this.#begin(options));
    if (result.kind !== "granted") return { ran: false, because: result.kind, row: result.wait.holder };
    return { ran: true, value: await runUnder(result.lock, fn) };
  }

  /**
   * Reads the lock with one consistent read; null if it is free. For a fair mutex, a query reads the waiters as well.
   *
   * A holder that has died is returned until the lock is taken again, with an `expires` in the past. A lock that nobody
   * holds but that cannot be taken yet has no `uuid`: it is parked, or was unlocked by force.
   *
   * @throws {@link LockStoreError} if the table cannot be used, or does not answer within 10 s.
   *
   * @example
   * const holder = await mutex.inspect();
   * if (holder !== null) console.log(`held by ${holder.owner} since ${holder.acquired.toISOString()}`);
   */
  async inspect(): Promise<LockState | null> {
    return await inspect(this.#session, this.#target);
  }

  /**
   * Ends the acquisition with this uuid, if it still holds the lock.
   *
   * The holder learns of it at its next renewal, or at once if it is in this `LockTable`, and loses the lock with the reason
   * `forced`. Nobody else gets the lock before the old lease ends. With `{ now: true }` the lock is free at once, and two sections may run at the same time:
   * use it only if the holder is dead, or its work no longer matters.
   *
   * Sections of one process that hand a lock over share its uuid: if the section that you saw is over, this ends the one
   * that runs by now. With `fencing` each section has a uuid of its own.
   *
   * @param uuid as returned by `inspect()` or `list()`.
   * @returns whether that acquisition held the lock until now.
   * @throws {@link LockStoreError} if the table cannot be used, or does not answer within 10 s. The lock may have been
   * unlocked all the same.
   * @throws {@link LockConfigError} if an argument cannot work.
   *
   * @example
   * const holder = await mutex.inspect();
   * if (holder?.uuid !== undefined) await mutex.forceUnlock(holder.uuid);
   */
  async forceUnlock(uuid: string, options: ForceUnlockOptions = NONE): Promise<boolean> {
    return await forceUnlock(this.#session, this.#target.at, uuid, forceUnlockOptions(uuid, options));
  }

  async #lock(options: LockOptions): Promise<HeldLock> {
    const { signal, holdAtLeastMs = 0 } = options === NONE ? options : lockOptions(options);
    const waitMs = options.waitMs ?? this.#target.settings.waitMs;
    signal?.throwIfAborted();
    const data = this.#begin(options);
    if (waitMs === 0) {
      const result = await this.#try({ holdAtLeastMs }, data, signal);
      if (result.kind !== "granted") throw result.wait.timeout();
      return result.lock;
    }
    const wait = new Wait(this.#session, this.name, { patient: true });
    const request = { target: this.#target, data, holdAtLeastMs };
    return await wait.run<HeldLock>((deliver) => this.#sections.serve(request, wait, deliver), { signal, waitMs });
  }

  /** Checks what can be checked before a request. @returns a copy of the data, which may be sent much later. */
  #begin({ data }: { readonly data?: LockData | undefined }): LockData | undefined {
    this.#session.assertOpen();
    this.#session.store.admit(data);
    return data && copyOf(data);
  }

  /** Takes the lock if it is free. Requests without an answer are retried. */
  async #try(options: TryLockOptions, data: LockData | undefined, signal?: AbortSignal): Promise<Tried> {
    const { holdAtLeastMs = 0 } = options;
    const wait = new Wait(this.#session, this.name, { patient: false });
    const request = { target: this.#target, data, holdAtLeastMs, once: onceOf(options) };
    return await wait.run<Tried>(
      async (deliver) => {
        const answer = await this.#sections.tryServe(request, wait, (lock) => deliver({ kind: "granted", lock }));
        if (answer !== "delivered" && deliver({ kind: answer, wait })) wait.missed(answer);
      },
      { signal, waitMs: Number.POSITIVE_INFINITY },
    );
  }
}

type Tried =
  | { readonly kind: "granted"; readonly lock: HeldLock }
  | { readonly kind: "held" | "done"; readonly wait: Wait };

function onceOf({ once, everyMs }: TryLockOptions): Once | undefined {
  if (everyMs !== undefined) return { kind: "period", everyMs };
  // Adding 0 turns -0 into 0: a row cannot store -0.
  return once === undefined ? undefined : { kind: "tick", tick: Number(once) + 0 };
}

/** The type of lock that `LockTable.mutex()` has declared for the settings of this mutex. */
const as = <Held extends Lock>(lock: HeldLock): Held => lock as Lock as Held;

/** Runs a section and releases its lock. If both fail, the section's error is thrown. */
async function runUnder<Held extends Lock, T>(
  lock: HeldLock,
  fn: (lock: Held) => T | Promise<T>,
  signal?: AbortSignal,
): Promise<T> {
  const stopFollowing = lock.follow(signal);
  let value: T;
  try {
    value = await fn(as<Held>(lock));
  } catch (error) {
    await lock.unlock().catch(() => undefined);
    throw error;
  } finally {
    stopFollowing();
  }
  await lock.unlock();
  return value;
}

function checkFunction(fn: unknown): void {
  if (typeof fn !== "function") throw new LockConfigError("fn", fn, "must be the function to run under the lock");
}
