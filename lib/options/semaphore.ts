import * as z from "zod/mini";
import { optionsCheck } from "./check.js";
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

const checkSemaphore: OptionsCheck<SemaphoreOptions> = optionsCheck(
  ["locks.semaphore()"],
  () => ({
    ...mutexShape(),
    permits: z.custom<number>(
      (value) => Number.isInteger(value) && Number(value) >= 1 && Number(value) <= MOST_PERMITS,
      `must be a whole number from 1 to ${MOST_PERMITS}, as in { permits: 4 }: how many may hold a permit at once`,
    ),
  }),
  {
    fencing:
      "is an option of a mutex: a semaphore has several holders at once, so their tokens would have no order; use a guard",
  },
);

/** @throws {@link LockConfigError} */
export function semaphoreSettings(options: SemaphoreOptions, defaults: MutexOptions): SemaphoreSettings {
  const { permits, ...mutex } = checkSemaphore(options);
  return { permits, settings: mutexSettings(mutex, defaults) };
}
