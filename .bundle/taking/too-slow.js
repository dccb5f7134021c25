import { LockStoreError } from "../errors.js";
import { FIRST_ANSWER_MS } from "./call.js";
const MOST_OVER = 3;
export function tooSlow(name, { ttlMs }, cause) {
    const message = `Lock ${JSON.stringify(name)}: the table's answers take longer than a lease of ${ttlMs} ms lasts; raise ttlMs`;
    return new LockStoreError(message, cause === undefined ? {} : { cause });
}
export function leaseWasOver(wait, { name, settings }) {
    wait.call.leasesOver += 1;
    if (wait.call.leasesOver >= MOST_OVER)
        throw tooSlow(name, settings);
}
export function throwIfTooSlow({ scheduler }, { waitedMs }, { at, settings }, cause) {
    const { quickMs = 0 } = scheduler;
    const leaseMs = settings.ttlMs - settings.safetyMarginMs;
    if (waitedMs >= FIRST_ANSWER_MS && quickMs >= leaseMs)
        throw tooSlow(at.name, settings, cause);
}
