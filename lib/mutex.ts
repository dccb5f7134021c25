/// <reference lib="esnext.disposable" preserve="true" />

import { LockConfigError } from "./errors.js";
import type { HeldLock } from "./holding/handle.js";
import type { Lock } from "./lock.js";
import { copyOf, type LockData, type LockInfo, type LockState } from "./lock-info.js";
import { forceUnlock } from "./operations/force-unlock.js";
import { inspect } from "./operations/inspect.js";
import { type LockOptions, lockOptions, type TryLockOptions, tryLockOptions } from "./options/calls.js";
import { NONE } from "./options/check.js";
import type { MutexSettings } from "./options/mutex.js";
import { type ForceUnlockOptions, forceUnlockOptions } from "./options/calls.js";
import { lockAt } from "./protocol/row.js";
import type { Sections } from "./queues/sections.js";
import type { Session } from "./session/session.js";
import type { Target } from "./taking/acquisition.js";
import type { Once } from "./taking/known-time.js";
import { Wait } from "./taking/wait.js";

/**
 * What `tryRun` did: the value of the function, or why it did not run. `held`: somebody has the lock, or it is kept
 * for `holdAtLeastMs`, so the next try may succeed. `done`: the tick, or a later one, was granted before, so no other
 * try for this tick ever will; whether that run has ended, and how, it does not say.
 */
export type TryRun<T> =
  | { readonly ran: true; readonly value: T }
  | { readonly ran: false; readonly because: "held" | "done"; readonly row: LockInfo | undefined };

/**
 * A named mutex. Making one sends nothing; as many as you like may have one name.
 *
 * @typeParam Held - the lock that it gives: a {@link FencedLock} with `fencing: true`.
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
   * @param options.signal ends the waiting, and only that: a lock that was handed out stays.
   * @param options.waitMs how long to wait, in ms.
   * @param options.data your own attributes for the row.
   * @param options.holdAtLeastMs for how long the lock stays taken at least, in ms.
   * @throws {@link LockTimeoutError} after `waitMs`; it names the holder.
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
   * @param options.holdAtLeastMs for how long the lock stays taken at least, in ms.
   * @param options.once a tick, for which the lock is given at most once.
   * @param options.everyMs the same, with the table's clock counting periods of so many ms.
   * @returns the lock, or null if somebody holds it or the tick is done. `await using lock = await mutex.tryLock()` is fine with null.
   * @throws {@link LockStoreError} if the table cannot be used, or does not answer within 10 s.
   *
   * @example
   * await using lock = await mutex.tryLock();
   * if (lock === null) return; // another host is at it
   */
  async tryLock(options: TryLockOptions = NONE): Promise<Held | null> {
    tryLockOptions(options);
    const result = await this.#try(options, this.#begin(options));
    return result.kind === "granted" ? as<Held>(result.lock) : null;
  }

  /**
   * Runs `fn` under the lock and releases it, whatever happens.
   *
   * @param options as for `lock()`; its `signal` aborts `lock.signal` as well.
   * @throws exactly what `fn` throws; if `fn` succeeds on a lock that was lost, a {@link LockLostError}.
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
   * @example
   * const result = await mutex.tryRun(async () => await sendInvoices());
   * if (!result.ran) console.log(`left to ${result.row?.owner}`);
   *
   * @example
   * // On every host, every minute: one of them runs it, whatever their clocks say.
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
   * Who has the lock now, by one consistent read; null if nobody has. Of a fair mutex also who waits for it, in order, by a
   * query more.
   *
   * A holder that has died is shown, with an `expires` that has passed, until somebody takes the lock. A lock that nobody
   * holds and nobody may take yet is shown without a `uuid`: it is parked, or was unlocked by force.
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
   * Takes the lock away from the acquisition with this uuid, whoever holds it, if it still does.
   *
   * Nobody enters before the old lease ends. The old holder learns of it at its next renewal, with the reason `forced`;
   * until then it goes on, so `{ now: true }`, which frees the lock at once, lets two in: use it when you know that the
   * holder is dead, or that what it does no longer matters.
   * @param uuid as `inspect()` or `list()` shows it.
   * @returns whether that uuid held the lock until now.
   * @throws {@link LockStoreError} if the table cannot be used, or does not answer within 10 s: it may then have been
   * done all the same.
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

  /** What has to be right before anything is sent. @returns the data as it is now: it may be sent much later. */
  #begin({ data }: { readonly data?: LockData | undefined }): LockData | undefined {
    this.#session.assertOpen();
    this.#session.store.admit(data);
    return data && copyOf(data);
  }

  /** One try, whose requests are repeated for a while if they get no answer. */
  async #try(options: TryLockOptions, data: LockData | undefined, signal?: AbortSignal): Promise<Tried> {
    const { holdAtLeastMs = 0 } = options;
    const wait = new Wait(this.#session, this.name, { patient: false });
    const request = { target: this.#target, data, holdAtLeastMs, once: onceOf(options) };
    return await wait.run<Tried>(
      async (deliver) => {
        const answer = await this.#sections.tryServe(request, wait, (lock) => deliver({ kind: "granted", lock }));
        if (answer !== "delivered") deliver({ kind: answer, wait });
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
  // Nothing is added but to -0, which a row would not remember as such.
  return once === undefined ? undefined : { kind: "tick", tick: Number(once) + 0 };
}

/** What `LockTable.mutex()` has promised of the locks of this mutex, by what its settings say. */
function as<Held extends Lock>(lock: HeldLock): Held {
  return lock as Lock as Held;
}

/** Runs a section and ends its lock: an error of the section's own is never replaced by the release's. */
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
