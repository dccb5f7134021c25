import * as z from "zod/mini";
import { LockConfigError } from "../errors.js";
import type { LockData } from "../lock-info.js";
import {
  duration,
  durationOrForever,
  exactly,
  flag,
  lockData,
  notInSeconds,
  optionsCheck,
  type Shape,
  signal,
  text,
  valueCheck,
} from "./check.js";
import type { OptionsCheck } from "./options-check.js";

/** Options of one `lock()` or `run()`. */
export interface LockOptions {
  /** Ends the waiting: the call rejects with its reason. Given to `run()`, it aborts `lock.signal` as well. */
  readonly signal?: AbortSignal | undefined;
  /**
   * How long to wait while others have the lock, in ms. Default: the mutex's `waitMs`. A try that is under way then is brought to its
   * end, so a slow table may take longer, one that does not answer up to 3 s. For a hard bound, pass a `signal`.
   */
  readonly waitMs?: number | undefined;
  /** Your own attributes on the row while you hold the lock: whatever DynamoDB can store in a map. */
  readonly data?: LockData | undefined;
  /**
   * How long the lock stays taken at least, in ms from the moment it is granted, even if the section ends sooner or
   * throws: a fast job is then not run again by a host whose schedule is late. Default 0, at most 2 147 483 647.
   * `unlock()` does not wait for it. It does not outlive a crash: the lock of a holder that dies is free when its lease
   * ends.
   */
  readonly holdAtLeastMs?: number | undefined;
}

/** Options of one `tryLock()` or `tryRun()`, of whatever can be locked. */
export interface TryOptions extends Pick<LockOptions, "data" | "holdAtLeastMs"> {
  /**
   * Ends the try: the call rejects with its reason, and what a request under way still takes is released in the background. The tick
   * of `once` or `everyMs` may then be used up. Given to `tryRun()`, it aborts `lock.signal` as well.
   */
  readonly signal?: AbortSignal | undefined;
}

/** Options of one `tryLock()` or `tryRun()` of a mutex. */
export interface TryLockOptions extends TryOptions {
  /**
   * A tick: a date, or a whole number in a unit of your choice. The lock is granted at most once for each tick, and
   * never for a tick that is not later than the last one granted. If the holder dies, its tick is not granted again.
   *
   * A function names the tick on the table's clock: it is called with a moment of that, and returns the last tick that has begun
   * by then, such as the previous fire of a cron expression. It has to be pure and quick, and is called some twenty times near a
   * tick. What it throws, what is no time, and a tick later than the time that it was given reject the call with a `LockConfigError`.
   */
  readonly once?: Date | number | ((now: Date) => Date | number) | undefined;
  /**
   * A tick by the table's clock: at most one run in each period of this many ms, counted from 1970-01-01T00:00Z. At
   * least 1 000. Near a period boundary the call waits until the next period has certainly begun: about a second in a process
   * that has just started, about a round trip later on.
   */
  readonly everyMs?: number | undefined;
  /**
   * With `everyMs`, or a function as `once`: how early a schedule may fire, in ms. A call that comes so much before a tick waits for
   * that tick, and does not end as `done` because of the one before. Default 5 000, and at most a tenth of `everyMs`. From 0 to 60 000. Ticks
   * of a function have to be further apart than this and the clock's uncertainty, about a second: otherwise give less.
   */
  readonly earlyMs?: number | undefined;
}

/** Options of one `tryRun()` of a mutex. */
export interface TryRunOptions extends TryLockOptions {
  /**
   * With `once` or `everyMs`: the tick is used up when a run of it has succeeded and the table says so, and not when it was
   * granted. After a throw, a loss or a death the next host that asks runs it again, one at a time. `true`: until it succeeds
   * or a later tick comes. `false`, the default: not. `maxAttempts`: at most so many runs of it begin, on all hosts together; from 1 to 2^53 - 1. It promises
   * at most one *recorded* success of a tick: after a death between the end of the run and its record the tick runs again.
   */
  readonly untilSuccess?: boolean | { readonly maxAttempts: number } | undefined;
}

/** Options of one `lock()` or `run()` of a semaphore. */
export interface PermitOptions extends LockOptions {
  /**
   * How many permits to take at once: all of them or none. Default 1, at most as many as the semaphore has, and at most 100. More
   * than one costs two write units for each, and needs a table with transactions, so one of a single Region.
   */
  readonly permits?: number | undefined;
}

/** Options of one `tryLock()` or `tryRun()` of a semaphore. */
export interface TryPermitOptions extends TryOptions, Pick<PermitOptions, "permits"> {}

/** Options of one `guard()`. */
export interface GuardOptions {
  /** Whether to return the form that a DocumentClient takes. Default false. */
  readonly document?: boolean | undefined;
}

/** Options of one `transactWrite()`. */
export interface TransactWriteOptions {
  /**
   * How long the request is retried without an answer, in ms, while the lock is held. Default 10 000, at most 540 000:
   * DynamoDB recognises a repeated transaction for ten minutes.
   */
  readonly timeoutMs?: number | undefined;
}

/** Options of `handOff()`. */
export interface HandOffOptions {
  /**
   * For how long the lock stays taken without a holder, in ms: until then somebody has to go on with it, and from then on it
   * is free. From 1 to 31 536 000 000, a year.
   */
  readonly validForMs: number;
}

/** Options of `resume()`. */
export interface ResumeOptions {
  /** Ends the call: it rejects with its reason. */
  readonly signal?: AbortSignal | undefined;
}

/** Options of `elect()`. */
export interface ElectOptions extends Pick<LockOptions, "data"> {
  /** Ends the candidacy, as `resign()` does. */
  readonly signal?: AbortSignal | undefined;
}

/** Options of `singleFlight()`. */
export interface SingleFlightOptions {
  /**
   * How old a result may be, in ms from the beginning of the run that made it to the beginning of this call. Default 0: only that of
   * a run that was not over when this call began. At most 31 536 000 000, a year.
   */
  readonly freshMs?: number | undefined;
  /** Ends the waiting: the call rejects with its reason. Where this call runs the function, it aborts `lock.signal` as well. */
  readonly signal?: AbortSignal | undefined;
  /** How long to wait for a result of others, or for the lock, in ms. It does not bound the own run. Default: the mutex's `waitMs`. */
  readonly waitMs?: number | undefined;
}

/** Options of `observe()`. */
export interface ObserveOptions {
  /** Ends the observation: the iteration throws its reason. */
  readonly signal?: AbortSignal | undefined;
  /** The pause between two reads, in ms. It varies by a quarter either way. Default 1 000. */
  readonly pollMs?: number | undefined;
}

/** Options of `extend()`. */
export interface ExtendOptions {
  /**
   * Ends the call: it rejects with its reason. The lock stays as it is, `expires` and `remainingMs` say how long it is held for
   * certain, and a renewal that is under way may still make that longer.
   */
  readonly signal?: AbortSignal | undefined;
}

/** Options of `inspect()`. */
export interface InspectOptions {
  /** Ends the call: it rejects with its reason. */
  readonly signal?: AbortSignal | undefined;
}

/** Options of `forceUnlock()`. */
export interface ForceUnlockOptions {
  /** Ends the call: it rejects with its reason. The lock may have been unlocked anyway: `inspect()` tells. */
  readonly signal?: AbortSignal | undefined;
  /**
   * Whether the lock is free at once, although its holder may still be working under it. Default false: the lock stays
   * taken until the holder's lease ends.
   */
  readonly now?: boolean | undefined;
}

/** Options of `list()`. */
export interface ListOptions {
  /** List only locks whose name, without the table's `keyPrefix`, begins with this. Default: all. */
  readonly prefix?: string | undefined;
  /** Whether to include free locks whose rows stay, because they store a fencing token, a tick or the result of `singleFlight()`. Default false. */
  readonly includeFree?: boolean | undefined;
  /** Ends the listing: the iteration throws its reason. */
  readonly signal?: AbortSignal | undefined;
}

/** Options of `close()`. */
export interface CloseOptions {
  /**
   * How long sections may run on, in ms. Default 10 000; 0 revokes them at once. The close takes no longer than this and
   * the largest `releaseWithinMs` together, and ends as soon as nothing is left.
   */
  readonly drainMs?: number | undefined;
}

/** Options of `check()`. */
export interface CheckOptions {
  /** Ends the check: it rejects with its reason. */
  readonly signal?: AbortSignal | undefined;
  /** How long the table may take to answer, in ms. Default 30 000. */
  readonly timeoutMs?: number | undefined;
}

const YEAR_MS = 365 * 24 * 60 * 60 * 1_000;

/** No timer runs for it, so it may be longer than one can. */
const upToAYear = (least: number) => duration(least, YEAR_MS, "a year");

const heldShape = () => ({
  data: z.optional(lockData()),
  holdAtLeastMs: z.optional(duration(0)),
  signal: signal(),
});

/** @internal */
export const lockShape = (): Shape<LockOptions> =>
  exactly<LockOptions>()({
    ...heldShape(),
    waitMs: z.optional(durationOrForever(0)),
  });

/** For those who ask for several permits of what has none. */
const NO_PERMITS = { permits: "is an option of a semaphore: any other lock is held as a whole" };

export const lockOptions: OptionsCheck<LockOptions> = optionsCheck(["lock()", "run()"], lockShape, NO_PERMITS);

/** @internal */
export const earlyMs = (): z.ZodMiniType<number | undefined> => z.optional(duration(0, 60_000, "a minute"));

const ticksShape = () => ({
  ...heldShape(),
  once: z.optional(
    z.custom<Date | number | ((now: Date) => Date | number)>(
      (value) => typeof value === "function" || Number.isSafeInteger(value instanceof Date ? value.getTime() : value),
      "must be a valid Date, a whole number up to 2^53 - 1 either way, or a function that makes one of the table's time",
    ),
  ),
  everyMs: z.optional(duration(1_000, Number.MAX_SAFE_INTEGER, "which is 2^53 - 1").check(notInSeconds())),
  earlyMs: earlyMs(),
});

const checkTryLock: OptionsCheck<TryLockOptions> = optionsCheck(["tryLock()"], ticksShape, {
  ...NO_PERMITS,
  untilSuccess: "is an option of tryRun(), which knows how its run ends",
});

function isAttempts(value: unknown): boolean {
  const { maxAttempts, ...others } = Object(value);
  return Number.isSafeInteger(maxAttempts) && maxAttempts >= 1 && Object.keys(others).length === 0;
}

/** @internal */
export const untilSuccess = (): z.ZodMiniType<TryRunOptions["untilSuccess"]> =>
  z.optional(
    z.custom<boolean | { readonly maxAttempts: number }>(
      (value) => typeof value === "boolean" || isAttempts(value),
      "must be true, false, or { maxAttempts } with a whole number from 1 to 2^53 - 1",
    ),
  );

const checkTryRun: OptionsCheck<TryRunOptions> = optionsCheck(
  ["tryRun()"],
  () => ({ ...ticksShape(), untilSuccess: untilSuccess() }),
  NO_PERMITS,
);

/** @throws {@link LockConfigError} */
export const tryLockOptions: OptionsCheck<TryLockOptions> = (options) => oneTick(checkTryLock(options));

/** @throws {@link LockConfigError} */
export const tryRunOptions: OptionsCheck<TryRunOptions> = (options) => oneTick(checkTryRun(options));

function oneTick<Options extends TryRunOptions>(options: Options): Options {
  const { once, everyMs, earlyMs, untilSuccess } = options;
  if (untilSuccess && once === undefined && everyMs === undefined) {
    throw new LockConfigError("untilSuccess", untilSuccess, "needs a tick: give `once` or `everyMs` as well");
  }
  if (earlyMs !== undefined && everyMs === undefined && typeof once !== "function") {
    throw new LockConfigError(
      "earlyMs",
      earlyMs,
      "needs a tick by the table's clock: give `everyMs`, or a function as `once`",
    );
  }
  if (earlyMs !== undefined && everyMs !== undefined && 2 * earlyMs > everyMs) {
    throw new LockConfigError("earlyMs", earlyMs, `must be at most ${everyMs / 2}, half of everyMs`);
  }
  if (once === undefined || everyMs === undefined) return options;
  throw new LockConfigError("everyMs", everyMs, "must not be given together with `once`: one tick, or the other");
}

const NO_TICKS = "is an option of a mutex: ticks are granted one at a time";
const NO_TICK = { once: NO_TICKS, everyMs: NO_TICKS, earlyMs: NO_TICKS, untilSuccess: NO_TICKS };

/** Of a shared mutex. */
export const tryOptions: OptionsCheck<TryOptions> = optionsCheck(["tryLock()", "tryRun()"], heldShape, {
  ...NO_TICK,
  ...NO_PERMITS,
});

/** DynamoDB's limit for the writes of one transaction. */
const MOST_WEIGHT = 100;

const weightShape = () => ({
  permits: z.optional(
    z.custom<number>(
      (value) => Number.isInteger(value) && Number(value) >= 1 && Number(value) <= MOST_WEIGHT,
      `must be a whole number from 1 to ${MOST_WEIGHT}, which is what one transaction of DynamoDB may write`,
    ),
  ),
});

export const permitOptions: OptionsCheck<PermitOptions> = optionsCheck(["lock()", "run()"], () => ({
  ...lockShape(),
  ...weightShape(),
}));

export const tryPermitOptions: OptionsCheck<TryPermitOptions> = optionsCheck(
  ["tryLock()", "tryRun()"],
  () => ({ ...heldShape(), ...weightShape() }),
  NO_TICK,
);

/** @throws {@link LockConfigError} for more permits than the semaphore has, and on a table without transactions. */
export function checkWeight(weight: number, permits: number, regionSkewMs = 0): void {
  if (weight > permits) {
    throw new LockConfigError("permits", weight, `must be at most ${permits}, which is all that the semaphore has`);
  }
  if (weight > 1 && regionSkewMs > 0) {
    throw new LockConfigError("permits", weight, NO_TRANSACTIONS);
  }
}

const NO_TRANSACTIONS =
  "must be 1 on a table of several Regions, which has no transactions: take one permit that stands for a larger share, of a " +
  "semaphore with fewer permits (docs/guides/regions.md in the package)";

export const handOffOptions: OptionsCheck<HandOffOptions> = optionsCheck(["handOff()"], () => ({
  validForMs: upToAYear(1),
}));

export const resumeOptions: OptionsCheck<ResumeOptions> = optionsCheck(["resume()"], () => ({ signal: signal() }));

export const electOptions: OptionsCheck<ElectOptions> = optionsCheck(["elect()"], () => ({
  signal: signal(),
  data: z.optional(lockData()),
}));

export const singleFlightOptions: OptionsCheck<SingleFlightOptions> = optionsCheck(["singleFlight()"], () => ({
  freshMs: z.optional(upToAYear(0)),
  signal: signal(),
  waitMs: z.optional(durationOrForever(0)),
}));

export const observeOptions: OptionsCheck<ObserveOptions> = optionsCheck(["observe()"], () => ({
  signal: signal(),
  pollMs: z.optional(duration(1)),
}));

export const guardOptions: OptionsCheck<GuardOptions> = optionsCheck(["guard()"], () => ({ document: flag() }));

export const transactWriteOptions: OptionsCheck<TransactWriteOptions> = optionsCheck(["transactWrite()"], () => ({
  timeoutMs: z.optional(duration(1, 540_000, "because DynamoDB forgets a transaction after ten minutes")),
}));

export const inspectOptions: OptionsCheck<InspectOptions> = optionsCheck(["inspect()"], () => ({ signal: signal() }));

const checkExtend: OptionsCheck<ExtendOptions> = optionsCheck(["extend()"], () => ({ signal: signal() }));

/** @throws {@link LockConfigError}, also for the length that other libraries take there. */
export function extendOptions(options: ExtendOptions): ExtendOptions {
  if (typeof options !== "number") return checkExtend(options);
  const remedy = "takes no length: it renews the lease for the ttlMs of the lock's options";
  throw new LockConfigError("extend()", options, remedy);
}

const checkForceUnlock: OptionsCheck<ForceUnlockOptions> = optionsCheck(["forceUnlock()"], () => ({
  now: flag(),
  signal: signal(),
}));

/** @throws {@link LockConfigError} */
export function forceUnlockOptions(uuid: string, options: ForceUnlockOptions): ForceUnlockOptions {
  if (typeof uuid !== "string" || uuid === "") {
    throw new LockConfigError("uuid", uuid, "must be the uuid of the acquisition to end, as inspect() shows it");
  }
  return checkForceUnlock(options);
}

export const listOptions: OptionsCheck<ListOptions> = optionsCheck(["list()"], () => ({
  prefix: z.optional(text()),
  includeFree: flag(),
  signal: signal(),
}));

export const checkOptions: OptionsCheck<CheckOptions> = optionsCheck(["check()"], () => ({
  signal: signal(),
  timeoutMs: z.optional(duration(1)),
}));

export const closeOptions: OptionsCheck<CloseOptions> = optionsCheck(["close()"], () => ({
  drainMs: z.optional(duration(0)),
}));

/** The argument of `replaceData()`. */
export const checkData: (data: unknown) => void = valueCheck(lockData, "data");

/** The argument of `assertHeld()`. */
export const checkMinRemaining: (minRemainingMs: unknown) => void = valueCheck(
  () =>
    z.custom<number>((value) => typeof value === "number" && value >= 0, "must be a number of milliseconds, 0 or more"),
  "minRemainingMs",
);
