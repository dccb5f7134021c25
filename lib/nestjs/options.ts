import * as z from "zod/mini";
import type { LockOptions, MutexOptions, TryOptions, TryRunOptions } from "../index.js";
import { earlyMs, lockShape, untilSuccess } from "../options/calls.js";
import { flag, isOfValues, optionsCheck, text } from "../options/check.js";
import { mutexShape } from "../options/mutex.js";
import type { OptionsCheck } from "../options/options-check.js";

/** Options of `@Locked()`: those of a mutex and of its `run()`. */
export interface LockedOptions extends Omit<LockOptions, "signal">, MutexOptions {
  /** The name of the table, if an application has several. */
  readonly table?: string | undefined;
}

/** Options of `@TryLocked()`: those of a mutex and of its `tryRun()`, without a tick. */
export interface TryLockedOptions extends Omit<TryOptions, "signal">, Omit<MutexOptions, "waitMs"> {
  /** The name of the table, if an application has several. */
  readonly table?: string | undefined;
}

/** Options of `@OncePer()` and `@Once()`: those of a mutex and of its `tryRun()`. */
export interface OncePerOptions
  extends Omit<TryRunOptions, "once" | "everyMs" | "signal">,
    Omit<MutexOptions, "waitMs"> {
  /**
   * The name of the mutex, which is that of the job: all that has one name shares its ticks. A function makes it of the instance, for
   * several providers of one class. There is no default: a build may shorten the names of classes, or give two of them one.
   */
  readonly name: string | ((instance: never) => string);
  /** The name of the table, if an application has several. */
  readonly table?: string | undefined;
}

const nonEmpty = () => z.optional(text().check(z.refine(({ length }) => length > 0, "must be a non-empty string")));

/** For `name`, where the method's own names are no substitute. */
const JOB =
  "must be the name of the job, or a function that makes one of the instance: whatever has the same name shares its ticks";

const nameOfJob = () =>
  z
    .custom<string | ((instance: never) => string)>(
      (value) => typeof value === "function" || (typeof value === "string" && value !== ""),
      { error: JOB, abort: true },
    )
    .check(isOfValues());

const shapes = () => {
  const { signal: _, waitMs, ...ofSections } = lockShape();
  return { waitMs, both: { ...mutexShape(), ...ofSections, fencing: flag(), table: nonEmpty() } };
};

export const lockedOptions: OptionsCheck<LockedOptions> = optionsCheck(["@Locked()"], () => {
  const { waitMs, both } = shapes();
  return { ...both, waitMs };
});

export const tryLockedOptions: OptionsCheck<TryLockedOptions> = optionsCheck(
  ["@TryLocked()"],
  () => {
    const { waitMs: _, ...both } = shapes().both;
    return both;
  },
  { waitMs: "is an option of @Locked(): @TryLocked() does not wait" },
);

export const oncePerOptions: OptionsCheck<OncePerOptions> = optionsCheck(["@OncePer()", "@Once()"], () => {
  const { waitMs: _, ...both } = shapes().both;
  return { ...both, name: nameOfJob(), untilSuccess: untilSuccess(), earlyMs: earlyMs() };
});
