import * as z from "zod/mini";
import { LockConfigError } from "../errors.js";
import { duration, durationOrForever, exactly, flag, lockData, optionsCheck, signal, text, valueCheck, } from "./check.js";
const YEAR_MS = 365 * 24 * 60 * 60 * 1_000;
const upToAYear = (least) => duration(least, YEAR_MS, "a year");
const heldShape = () => ({
    data: z.optional(lockData()),
    holdAtLeastMs: z.optional(duration(0)),
});
export const lockShape = () => exactly()({
    ...heldShape(),
    signal: signal(),
    waitMs: z.optional(durationOrForever(0)),
});
const NO_PERMITS = { permits: "is an option of a semaphore: of any other lock there is one" };
export const lockOptions = optionsCheck(["lock()", "run()"], lockShape, NO_PERMITS);
const ticksShape = () => ({
    ...heldShape(),
    once: z.optional(z.custom((value) => Number.isSafeInteger(value instanceof Date ? value.getTime() : value), "must be a valid Date or a whole number up to 2^53 - 1 either way")),
    everyMs: z.optional(duration(1_000, Number.MAX_SAFE_INTEGER, "which is 2^53 - 1")),
});
const checkTryLock = optionsCheck(["tryLock()"], ticksShape, {
    ...NO_PERMITS,
    untilSuccess: "is an option of tryRun(), which knows how its run ends",
});
function isAttempts(value) {
    const { maxAttempts, ...others } = Object(value);
    return Number.isSafeInteger(maxAttempts) && maxAttempts >= 1 && Object.keys(others).length === 0;
}
export const untilSuccess = () => z.optional(z.custom((value) => value === true || isAttempts(value), "must be true, or { maxAttempts } with a whole number from 1 to 2^53 - 1"));
const checkTryRun = optionsCheck(["tryRun()"], () => ({ ...ticksShape(), untilSuccess: untilSuccess() }), NO_PERMITS);
export const tryLockOptions = (options) => oneTick(checkTryLock(options));
export const tryRunOptions = (options) => oneTick(checkTryRun(options));
function oneTick(options) {
    const { once, everyMs, untilSuccess } = options;
    if (untilSuccess !== undefined && once === undefined && everyMs === undefined) {
        throw new LockConfigError("untilSuccess", untilSuccess, "needs a tick: give `once` or `everyMs` as well");
    }
    if (once === undefined || everyMs === undefined)
        return options;
    throw new LockConfigError("everyMs", everyMs, "must not be given together with `once`: one tick, or the other");
}
const NO_TICKS = "is an option of a mutex: ticks are granted one at a time";
const NO_TICK = { once: NO_TICKS, everyMs: NO_TICKS, untilSuccess: NO_TICKS };
export const tryOptions = optionsCheck(["tryLock()", "tryRun()"], heldShape, {
    ...NO_TICK,
    ...NO_PERMITS,
});
const MOST_WEIGHT = 100;
const weightShape = () => ({
    permits: z.optional(z.custom((value) => Number.isInteger(value) && Number(value) >= 1 && Number(value) <= MOST_WEIGHT, `must be a whole number from 1 to ${MOST_WEIGHT}, which is what one transaction of DynamoDB may write`)),
});
export const permitOptions = optionsCheck(["lock()", "run()"], () => ({
    ...lockShape(),
    ...weightShape(),
}));
export const tryPermitOptions = optionsCheck(["tryLock()", "tryRun()"], () => ({ ...heldShape(), ...weightShape() }), NO_TICK);
export function checkWeight(weight, permits, regionSkewMs = 0) {
    if (weight > permits) {
        throw new LockConfigError("permits", weight, `must be at most ${permits}, which is all that the semaphore has`);
    }
    if (weight > 1 && regionSkewMs > 0) {
        throw new LockConfigError("permits", weight, NO_TRANSACTIONS);
    }
}
const NO_TRANSACTIONS = "must be 1 on a table of several Regions, which has no transactions: take one permit that stands for a larger share, of a " +
    "semaphore with fewer permits (docs/regions.md in the package)";
export const handOffOptions = optionsCheck(["handOff()"], () => ({
    withinMs: upToAYear(1),
}));
export const resumeOptions = optionsCheck(["resume()"], () => ({ signal: signal() }));
export const electOptions = optionsCheck(["elect()"], () => ({
    signal: signal(),
    data: z.optional(lockData()),
}));
export const singleFlightOptions = optionsCheck(["singleFlight()"], () => ({
    freshMs: z.optional(upToAYear(0)),
    signal: signal(),
    waitMs: z.optional(durationOrForever(0)),
}));
export const observeOptions = optionsCheck(["observe()"], () => ({
    signal: signal(),
    pollMs: z.optional(duration(1)),
}));
export const guardOptions = optionsCheck(["guard()"], () => ({ document: flag() }));
export const transactWriteOptions = optionsCheck(["transactWrite()"], () => ({
    withinMs: z.optional(duration(1, 540_000, "because DynamoDB forgets a transaction after ten minutes")),
}));
const checkForceUnlock = optionsCheck(["forceUnlock()"], () => ({ now: flag() }));
export function forceUnlockOptions(uuid, options) {
    if (typeof uuid !== "string" || uuid === "") {
        throw new LockConfigError("uuid", uuid, "must be the uuid of the acquisition to end, as inspect() shows it");
    }
    return { now: checkForceUnlock(options).now ?? false };
}
export const listOptions = optionsCheck(["list()"], () => ({
    prefix: z.optional(text()),
    kept: flag(),
    signal: signal(),
}));
export const checkOptions = optionsCheck(["check()"], () => ({
    signal: signal(),
    timeoutMs: z.optional(duration(1)),
}));
export const closeOptions = optionsCheck(["close()"], () => ({
    drainMs: z.optional(duration(0)),
}));
export const checkData = valueCheck(lockData, "data");
export const checkMinRemaining = valueCheck(() => z.custom((value) => typeof value === "number" && value >= 0, "must be a number of milliseconds, 0 or more"), "minRemainingMs");
