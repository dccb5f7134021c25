import { LockConfigError, LockError } from "../errors.js";
import type { Lock, MutexOptions, TryRunOptions } from "../index.js";
import { tryRunOptions } from "../options/calls.js";
import { NONE } from "../options/check.js";
import {
  type LockedOptions,
  lockedOptions,
  type OncePerOptions,
  oncePerOptions,
  type TryLockedOptions,
  tryLockedOptions,
} from "./options.js";
import { type MethodCall, wrapped } from "./wrapped.js";

/**
 * What goes on a method that returns a promise of this result, and whose arguments a function with the parameters `Args` can take.
 *
 * The second branch is what the compiler infers `Args` from where they are not declared: from the method below the decorator. It is also
 * what an error compares the method with.
 */
export type AsyncMethodDecorator<Result, Args extends unknown[] = unknown[]> = <
  Method extends (...args: never[]) => Promise<Result>,
>(
  target: object,
  key: string | symbol,
  descriptor: ((...args: Args) => void) extends (...args: Parameters<Method>) => void
    ? TypedPropertyDescriptor<Method>
    : TypedPropertyDescriptor<(...args: Args) => Promise<Result>>,
) => void;

/**
 * Runs a method of a provider or controller under a mutex: each call waits for the lock, and releases it when the method has ended.
 * It is `mutex.run()`: after a loss of the lock the call rejects. {@link HeldLock} gives the method its lock.
 *
 * @param name of the mutex, or a function that makes it of the method's arguments. Its parameters have the types of the method's.
 * @param options those of a mutex and of `run()`, and `table`.
 * @throws `LockConfigError` where the class is declared, if an option cannot work. Calls reject as `run()` does, and with a
 * `LockConfigError` if the instance was not made by Nest, or the method returns an Observable or a generator.
 *
 * @example
 * // import { Locked } from "dynamutex/nestjs";
 * // In a provider: @Locked((order) => `order#${order}`, { waitMs: 5_000 }) async ship(order: string) {}
 * const decorator = Locked((order: string) => `order#${order}`, { waitMs: 5_000 });
 */
export function Locked<Args extends unknown[]>(
  name: string | ((...args: Args) => string),
  options: LockedOptions = NONE,
): AsyncMethodDecorator<unknown, Args> {
  const { table, waitMs, data, holdAtLeastMs, ...mutex } = lockedOptions(options);
  checkNaming(name);
  const settings = settingsOf(mutex);
  return wrapped("Locked", table, async ({ app, args, section }) => {
    const of = typeof name === "function" ? name(...(args as Args)) : name;
    return await app.table.mutex(of, settings).run(section, { waitMs, data, holdAtLeastMs });
  });
}

function checkNaming(name: unknown): void {
  if (typeof name === "function" || (typeof name === "string" && name !== "")) return;
  throw new LockConfigError("name", name, "must be a non-empty string, or a function that makes one of the arguments");
}

/**
 * Runs a method under a mutex if that is free, and skips it if it is held: the call then resolves at once. It is `mutex.tryRun()`, for work
 * that somebody else does already, such as a synchronisation that a schedule and a request may start. The channel `dynamutex:missed`
 * tells why a call did not run. For once in a period, use {@link OncePer}.
 *
 * @param name as for {@link Locked}.
 * @param options those of a mutex and of `tryRun()` without a tick, and `table`.
 * @throws as {@link Locked} and `tryRun()` do.
 *
 * @example
 * // import { TryLocked } from "dynamutex/nestjs";
 * // In a provider: @TryLocked((tenant) => `sync#${tenant}`) async sync(tenant: string) {}
 * const decorator = TryLocked((tenant: string) => `sync#${tenant}`);
 */
export function TryLocked<Args extends unknown[]>(
  name: string | ((...args: Args) => string),
  options: TryLockedOptions = NONE,
): AsyncMethodDecorator<void, Args> {
  const { table, data, holdAtLeastMs, ...mutex } = tryLockedOptions(options);
  checkNaming(name);
  const settings = settingsOf(mutex);
  return wrapped("TryLocked", table, async (call) => {
    const of = typeof name === "function" ? name(...(call.args as Args)) : name;
    await tryIt(call, of, settings, { data, holdAtLeastMs });
  });
}

/**
 * Runs a method at most once in each period of the table's clock, whichever hosts call it and however often: for methods that
 * `@nestjs/schedule` calls. It is `mutex.tryRun()` with `everyMs`: a call whose tick is held or done resolves at once, and the method does
 * not run. The channel `dynamutex:missed` tells why.
 *
 * @param everyMs the period, counted from 1970-01-01T00:00Z, in ms. At least 1 000.
 * @param options those of a mutex and of `tryRun()`, `name` and `table`.
 * @param options.name the job: all that has one name runs once in a period. There is no default.
 * @param options.untilSuccess whether a later call in the same period runs the method again after it has failed.
 * @throws as {@link Locked} and `tryRun()` do.
 *
 * @example
 * // import { OncePer } from "dynamutex/nestjs";
 * // In a provider: @Cron("5 * * * *") @OncePer(3_600_000, { name: "send-invoices" }) async sendInvoices() {}
 * const decorator = OncePer(3_600_000, { name: "send-invoices", untilSuccess: { maxAttempts: 3 } });
 */
export function OncePer(everyMs: number, options: OncePerOptions): AsyncMethodDecorator<void> {
  if (everyMs === undefined) throw new LockConfigError("everyMs", everyMs, "must be the length of a period, in ms");
  return ticking("OncePer", { everyMs }, options);
}

/**
 * Runs a method at most once for each tick that a function names on the table's clock, whichever hosts call it and however often: for a
 * job by a calendar, such as a nightly one in a time zone. It is `mutex.tryRun()` with a function as `once`, and otherwise as {@link OncePer}.
 *
 * @param once is called with a moment of the table's clock, and returns the last tick that has begun by then.
 * @param options as for {@link OncePer}.
 * @throws as {@link OncePer} does.
 *
 * @example
 * // import { Once } from "dynamutex/nestjs";
 * // In a provider: @Cron("30 0 * * *", { timeZone: "Europe/London" }) @Once((now) => midnightBefore(now), { name: "nightly" }) async run() {}
 * const decorator = Once((now: Date) => new Date(now).setUTCHours(0, 0, 0, 0), { name: "nightly" });
 */
export function Once(once: (now: Date) => Date | number, options: OncePerOptions): AsyncMethodDecorator<void> {
  if (typeof once !== "function")
    throw new LockConfigError("once", once, "must be a function that names the tick of a moment");
  return ticking("Once", { once }, options);
}

function ticking(what: string, which: TryRunOptions, options: OncePerOptions): AsyncMethodDecorator<void> {
  const { table, name, data, holdAtLeastMs, untilSuccess, earlyMs, ...mutex } = oncePerOptions(options);
  const tick = tryRunOptions({ ...which, data, holdAtLeastMs, untilSuccess, earlyMs });
  const settings = settingsOf(mutex);
  const nameOf = typeof name === "function" ? (name as (instance: object) => string) : () => name;
  return wrapped(what, table, async (call) => await tryIt(call, nameOf(call.instance), settings, tick));
}

/** Runs a method if it gets its lock. An application that shuts down leaves that to other hosts. */
async function tryIt(
  { app, section }: MethodCall,
  name: string,
  settings: MutexOptions | undefined,
  options: TryRunOptions,
): Promise<void> {
  if (app.isStopping) return;
  let hasBegun = false;
  const begin = async (lock: Lock): Promise<unknown> => {
    hasBegun = true;
    return await section(lock);
  };
  try {
    await app.table.mutex(name, settings).tryRun(begin, options);
  } catch (error) {
    // The call still waited for its period when the application closed the table.
    const isClosed = error instanceof LockError && error.code === "LOCK_CLOSED";
    if (!isClosed || hasBegun || !app.isStopping) throw error;
  }
}

/** A mutex without options of its own costs no check of them. */
function settingsOf(options: MutexOptions): MutexOptions | undefined {
  return Object.keys(options).length === 0 ? undefined : options;
}
