import * as z from "zod/mini";
import { LockConfigError } from "../errors.js";
import { duration, notInSeconds, optionsCheck } from "./check.js";
import { type MutexOptions, type MutexSettings, mutexSettings, mutexShape } from "./mutex.js";
import type { OptionsCheck } from "./options-check.js";

/** A look at a semaphore reads all of its permits: more than these would take several requests. */
const MOST_PERMITS = 1_000;

const MOST_PER_MS = 20 * 24 * 60 * 60 * 1_000;

const LEAST_PER_MS = 100;

/** Periods of rates of some minutes, in seconds: nobody needs so odd a number of milliseconds. */
const PERIODS_IN_SECONDS = [120, 180, 300, 600, 900];

/** The length of a lease that a period needs: its holder may crash, and half of the rest is for a slow take. */
const leaseFor = (perMs: number): number => Math.ceil(perMs * 1.2);

/** Options of a semaphore: those of a mutex, and how many permits it has. */
export interface SemaphoreOptions extends Omit<MutexOptions, "fencing"> {
  /**
   * How many may hold a permit at once, from 1 to 1 000. Where hosts disagree, each uses as many as it says itself, so the
   * largest number counts; `check()` and the channel `dynamutex:permits-differ` tell.
   */
  readonly permits: number;
  /**
   * A rate: at most `permits` sections begin in any period of this many ms, over all hosts, because a permit that was handed out is not
   * handed out again for so long, whatever becomes of its section, its host or its lease. From 100 to 1 728 000 000, 20 days. `ttlMs`
   * less `safetyMarginMs` has to be longer; its default is then at least 1.2 times as long. Default: no rate.
   */
  readonly perMs?: number | undefined;
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
    perMs: z.optional(
      duration(LEAST_PER_MS, MOST_PER_MS, "20 days: a lease is longer, and no timer runs for longer than 24").check(
        notInSeconds(PERIODS_IN_SECONDS),
      ),
    ),
  }),
  {
    fencing:
      "is an option of a mutex: a semaphore has several holders at once, so their tokens would have no order; use a guard",
  },
);

/** @throws {@link LockConfigError} */
export function semaphoreSettings(options: SemaphoreOptions, defaults: MutexOptions): SemaphoreSettings {
  const { permits, perMs, ...mutex } = checkSemaphore(options);
  if (perMs === undefined) return { permits, settings: mutexSettings(mutex, defaults) };
  const ttlMs = mutex.ttlMs ?? Math.max(defaults.ttlMs ?? 30_000, leaseFor(perMs));
  const settings = mutexSettings({ ...mutex, ttlMs }, defaults);
  const leastMs = perMs + settings.safetyMarginMs;
  if (ttlMs <= leastMs) {
    const remedy = `must be more than ${leastMs}, perMs and safetyMarginMs together: a permit whose holder crashes is kept by its lease`;
    throw new LockConfigError("ttlMs", ttlMs, remedy);
  }
  return { permits, settings: { ...settings, perMs } };
}
