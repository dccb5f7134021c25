/// <reference lib="esnext.disposable" preserve="true" />
import type { Lock } from "./lock.js";
import type { LockInfo } from "./lock-info.js";
import type { LockOptions, TryOptions } from "./options/calls.js";

/** What `JSON.stringify()`, `console.log()` and `util.inspect()` show of what can be locked, as this process knows it. */
export interface LockableJson {
  readonly name: string;
  /** Whether this process holds it; of a semaphore, at least one of its permits. Nothing is asked of the table. */
  readonly held: boolean;
  readonly owner?: string;
  /** When the lease ends unless it is renewed; where there are several, the first of them. */
  readonly expires?: Date;
}

/**
 * The result of `tryRun()`: the value of the function, or why it did not run. `held`: the lock is held, or still taken
 * because of `holdAtLeastMs`, or this process has just had it for `handOverMs` and lets others in; a later call may succeed.
 * `done`, of a mutex alone: this tick, or a later one, was already granted; no later call for this tick can succeed. `done`
 * does not tell whether that run has ended, or whether it succeeded.
 *
 * With `untilSuccess`, `done` says that a run of the tick has succeeded. `gave-up`: `maxAttempts` runs of it have begun, none
 * has succeeded, and none is under way. `superseded`: a later tick was granted, whether or not this one had succeeded by then.
 */
export type TryRun<T> =
  | { readonly ran: true; readonly value: T }
  | {
      readonly ran: false;
      readonly reason: "held" | "done" | "gave-up" | "superseded";
      /** Who has the lock, as last seen; without a `uuid`, who had it last. Undefined if nobody was seen. */
      readonly holder: LockInfo | undefined;
    };

/**
 * What can be locked: a {@link Mutex}, a {@link Semaphore}, either side of a {@link SharedMutex}, or a double of your own in a
 * test. Code that takes a `Lockable` leaves it to its caller how many may run at once.
 *
 * @typeParam Held the type of its locks.
 *
 * @example
 * async function report(lockable: Lockable): Promise<void> {
 *   await using lock = await lockable.lock({ waitMs: 5_000 });
 *   await buildReport(lock.signal);
 * }
 */
export interface Lockable<Held = Lock> {
  /** Waits for the lock and takes it. @throws {@link LockTimeoutError} after `waitMs`; the reason of `signal`. */
  lock(options?: LockOptions): Promise<Held>;
  /** Takes the lock if it is free. @returns null if it is not. */
  tryLock(options?: TryOptions): Promise<Held | null>;
  /** Waits for the lock, runs `fn`, and releases the lock whether `fn` succeeds or fails. @throws what `fn` throws. */
  run<T>(fn: (lock: Held) => T | Promise<T>, options?: LockOptions): Promise<T>;
  /** Runs `fn` if the lock is free. */
  tryRun<T>(fn: (lock: Held) => T | Promise<T>, options?: TryOptions): Promise<TryRun<T>>;
}
