import { z } from "zod/v3";
import { LockConfigError } from "../errors.js";
import type { LockData } from "../lock-info.js";
import { check, duration, durationOrForever, flag, lazily, lockData, signal } from "./check.js";

/** What one `lock()` or `run()` may add. */
export interface LockOptions {
  /** Ends the waiting: the call rejects with its reason. Given to `run()`, it aborts `lock.signal` as well. */
  readonly signal?: AbortSignal | undefined;
  /** How long to wait for the lock, in ms. Default: the mutex's `waitMs`. */
  readonly waitMs?: number | undefined;
  /** Your own attributes on the row while you hold it: whatever DynamoDB can store in a map. */
  readonly data?: LockData | undefined;
  /**
   * For how long the lock stays taken at least, in ms from its hand-out, also when the section ends sooner or throws:
   * so that a fast job does not run again on a host that is late. Default 0; up to 2 147 483 647. `unlock()` does not
   * wait for it. It survives no crash: the lock of a holder that dies is free when its lease ends.
   */
  readonly holdAtLeastMs?: number | undefined;
}

/** What one `tryLock()` or `tryRun()` may add. */
export interface TryLockOptions {
  /** Your own attributes on the row while you hold it: whatever DynamoDB can store in a map. */
  readonly data?: LockData | undefined;
  /** As for `lock()`: for how long the lock stays taken at least, in ms from its hand-out. Default 0. */
  readonly holdAtLeastMs?: number | undefined;
  /**
   * A tick: a date, or a whole number in whatever unit you count. The lock is given at most once for each tick, ever,
   * and never for one that is not later than the last. A holder that dies has had its tick: it is not run again.
   */
  readonly once?: Date | number | undefined;
  /**
   * The same with the table's own clock in the place of yours: at most one run in each period of so many ms, counted
   * from 1970-01-01T00:00Z. At least 1 000. Near the beginning of a period the call takes longer, until the clock is
   * certain of it: about a second in a process that has just started, and then about a round trip.
   */
  readonly everyMs?: number | undefined;
}

/** How one `guard()` is made. */
export interface GuardOptions {
  /** The form that a DocumentClient takes. Default false. */
  readonly document?: boolean | undefined;
}

/** How one `transactWrite()` is sent. */
export interface TransactWriteOptions {
  /**
   * How long an answer is asked for, in ms, as long as the lock is held. Default 10 000; at most 540 000, because
   * DynamoDB knows a transaction that it has applied for ten minutes.
   */
  readonly withinMs?: number | undefined;
}

const data = () => lockData().optional();
const holdAtLeastMs = () => duration(0).optional();
const A_TICK = "must be a valid Date or a whole number up to 2^53 - 1 either way";
const once = () =>
  z.union([z.date(), z.number().int(A_TICK).safe(A_TICK)], { errorMap: () => ({ message: A_TICK }) }).optional();
const everyMs = () =>
  z
    .number({ invalid_type_error: "must be a number of milliseconds" })
    .int("must be a whole number of milliseconds")
    .min(1_000, "must be at least 1000 ms: clocks do not agree on less")
    .safe("must be at most 2^53 - 1 ms")
    .optional();
const lockSchema = lazily(() =>
  z
    .object({ signal: signal(), waitMs: durationOrForever(0).optional(), data: data(), holdAtLeastMs: holdAtLeastMs() })
    .strict(),
);
const tryLockSchema = lazily(() =>
  z.object({ data: data(), holdAtLeastMs: holdAtLeastMs(), once: once(), everyMs: everyMs() }).strict(),
);
const guardSchema = lazily(() => z.object({ document: flag() }).strict());
const transactWriteSchema = lazily(() =>
  z
    .object({
      withinMs: duration(1)
        .max(540_000, "must be at most 540 000 ms: DynamoDB forgets a transaction after ten minutes")
        .optional(),
    })
    .strict(),
);
const minRemainingSchema = lazily(() =>
  z
    .number({ invalid_type_error: "must be a number of milliseconds" })
    .nonnegative("must be a number of milliseconds, 0 or more"),
);

/** @throws {@link LockConfigError} */
export function lockOptions(options: LockOptions): LockOptions {
  check(lockSchema, options, "options");
  return options;
}

/** @throws {@link LockConfigError} */
export function tryLockOptions(options: TryLockOptions): TryLockOptions {
  check(tryLockSchema, options, "options");
  if (options.once !== undefined && options.everyMs !== undefined) {
    throw new LockConfigError(
      "everyMs",
      options.everyMs,
      "must not be given together with `once`: one tick, or the other",
    );
  }
  return options;
}

/** @throws {@link LockConfigError} */
export function guardOptions(options: GuardOptions): GuardOptions {
  check(guardSchema, options, "options");
  return options;
}

/** @throws {@link LockConfigError} */
export function transactWriteOptions(options: TransactWriteOptions): TransactWriteOptions {
  check(transactWriteSchema, options, "options");
  return options;
}

/** What `assertHeld()` asks for. @throws {@link LockConfigError} */
export function checkMinRemaining(minRemainingMs: number): void {
  check(minRemainingSchema, minRemainingMs, "minRemainingMs");
}
