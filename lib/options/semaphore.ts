import * as z from "zod/mini";
import { LockConfigError } from "../errors.js";
import { misplaced, optionsCheck } from "./check.js";
import { type MutexOptions, type MutexSettings, mutexSettings, mutexShape } from "./mutex.js";
import type { OptionsCheck } from "./options-check.js";

/** A look at a semaphore reads all of its permits: more than these would take several requests. */
const MOST_PERMITS = 1_000;

/** Options of a semaphore: those of a mutex, and how many permits it has. */
export interface SemaphoreOptions extends Omit<MutexOptions, "fencing"> {
  /**
   * How many may hold a permit at once, from 1 to 1 000. Where hosts disagree, each uses as many as it says itself, so the
   * largest number counts; `check()` and the channel `dynamutex:permits-differ` tell.
   */
  readonly permits: number;
}

/** A semaphore's options, completed. */
export interface SemaphoreSettings {
  readonly permits: number;
  readonly settings: MutexSettings;
}

type GivenOptions = SemaphoreOptions & { readonly fencing?: undefined };

const checkSemaphore: OptionsCheck<GivenOptions> = optionsCheck(["locks.semaphore()"], () => ({
  ...mutexShape(),
  fencing: misplaced("is an option of a mutex: several who hold permits at once have no order among them; use a guard"),
  permits: z.custom<number>(
    (value) => Number.isInteger(value) && (value as number) >= 1 && (value as number) <= MOST_PERMITS,
    `must be a whole number from 1 to ${MOST_PERMITS}: how many may hold a permit at once`,
  ),
}));

/** @throws {@link LockConfigError} */
export function semaphoreSettings(options: SemaphoreOptions, defaults: MutexOptions): SemaphoreSettings {
  if (options === undefined) {
    throw new LockConfigError("permits", undefined, "is required: locks.semaphore(name, { permits: 4 })");
  }
  const { permits, ...mutex } = checkSemaphore(options);
  return { permits, settings: mutexSettings(mutex, defaults) };
}
