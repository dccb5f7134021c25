import { optionsCheck } from "./check.js";
import { mutexSettings, mutexShape } from "./mutex.js";
const checkSharedMutex = optionsCheck(["locks.sharedMutex()"], mutexShape, {
    fencing: "is an option of a mutex: those who share a lock have no order among them; use a guard",
});
export function sharedMutexSettings(options, defaults) {
    return mutexSettings(checkSharedMutex(options), defaults);
}
