import { optionsCheck } from "./check.js";
import { type MutexOptions, type MutexSettings, mutexSettings, mutexShape } from "./mutex.js";
import type { OptionsCheck } from "./options-check.js";

/** Options of a shared mutex, for both of its sides. */
export interface SharedMutexOptions extends Omit<MutexOptions, "fencing"> {}

const checkSharedMutex: OptionsCheck<SharedMutexOptions> = optionsCheck(["locks.sharedMutex()"], mutexShape, {
  fencing:
    "is an option of a mutex: a shared mutex has several holders at once, so their tokens would have no order; use a guard",
});

/** @throws {@link LockConfigError} */
export function sharedMutexSettings(options: SharedMutexOptions, defaults: MutexOptions): MutexSettings {
  return mutexSettings(checkSharedMutex(options), defaults);
}
