import * as z from "zod/mini";
import type { LockOptions, MutexOptions, TryRunOptions } from "../index.js";
import { lockShape, untilSuccess } from "../options/calls.js";
import { flag, optionsCheck, partOfName, text } from "../options/check.js";
import { mutexShape } from "../options/mutex.js";
import type { OptionsCheck } from "../options/options-check.js";

/** Options of `@Locked()`: those of a mutex and of its `run()`. */
export interface LockedOptions extends Omit<LockOptions, "signal">, MutexOptions {
  /** The name of the table, if an application has several. */
  readonly table?: string | undefined;
}

/** Options of `@OncePer()`: those of a mutex and of its `tryRun()`. */
export interface OncePerOptions extends Omit<TryRunOptions, "once" | "everyMs">, Omit<MutexOptions, "waitMs"> {
  /**
   * The name of the mutex. Default: `Class.method`. Give one where applications share a table, and where a build shortens the
   * names of classes: whatever has the same name shares its ticks.
   */
  readonly name?: string | undefined;
  /** The name of the table, if an application has several. */
  readonly table?: string | undefined;
}

const nonEmpty = (text: () => z.ZodMiniType<string>) =>
  z.optional(text().check(z.refine(({ length }) => length > 0, "must be a non-empty string")));

const shapes = () => {
  const { signal: _, waitMs, ...ofSections } = lockShape();
  return { waitMs, both: { ...mutexShape(), ...ofSections, fencing: flag(), table: nonEmpty(text) } };
};

export const lockedOptions: OptionsCheck<LockedOptions> = optionsCheck(["@Locked()"], () => {
  const { waitMs, both } = shapes();
  return { ...both, waitMs };
});

export const oncePerOptions: OptionsCheck<OncePerOptions> = optionsCheck(["@OncePer()"], () => {
  const { waitMs: _, ...both } = shapes().both;
  return { ...both, name: nonEmpty(partOfName), untilSuccess: untilSuccess() };
});
