import * as z from "zod/mini";
import { LockConfigError } from "../errors.js";
import { duration, durationOrForever, exactly, flag, objectOf, optionsCheck } from "./check.js";
export const mutexShape = () => exactly()({
    ttlMs: z.optional(duration(100)),
    renewEveryMs: z.optional(duration(1)),
    safetyMarginMs: z.optional(duration(1)),
    autoRenew: flag(),
    maxHoldMs: z.optional(durationOrForever(1)),
    waitMs: z.optional(durationOrForever(0)),
    poll: z.optional(objectOf(exactly()({
        minMs: z.optional(duration(1)),
        maxMs: z.optional(duration(1)),
    }))),
    handOverMs: z.optional(duration(1)),
    releaseWithinMs: z.optional(duration(1)),
    fair: flag(),
    takeover: z.optional(z.literal(["expired", "unchanged"], 'must be "expired" or "unchanged"')),
});
const checkMutex = optionsCheck(["locks.mutex()"], () => ({
    ...mutexShape(),
    fencing: flag(),
}));
export function mutexSettings(options, defaults = {}) {
    checkMutex(options);
    const all = over(defaults, options);
    const ttlMs = all.ttlMs ?? 30_000;
    const settings = {
        ttlMs,
        renewEveryMs: all.renewEveryMs ?? Math.floor(ttlMs / 2),
        safetyMarginMs: all.safetyMarginMs ?? Math.ceil(ttlMs / 10),
        autoRenew: all.autoRenew ?? true,
        maxHoldMs: all.maxHoldMs ?? Number.POSITIVE_INFINITY,
        waitMs: all.waitMs ?? Number.POSITIVE_INFINITY,
        poll: pollOf(all),
        handOverMs: all.handOverMs ?? Math.min(ttlMs, 500),
        releaseWithinMs: all.releaseWithinMs ?? 5_000,
        fair: all.fair ?? false,
        takeover: all.takeover ?? "expired",
        fencing: all.fencing ?? false,
    };
    checkLease(settings);
    return settings;
}
export function over(defaults, options) {
    const own = options.ttlMs === undefined ? {} : { renewEveryMs: undefined, safetyMarginMs: undefined };
    const poll = { ...defaults.poll, ...given(options.poll) };
    return { ...defaults, ...own, ...given(options), poll };
}
function given(options) {
    return Object.fromEntries(Object.entries(options ?? {}).filter(([, value]) => value !== undefined));
}
function pollOf({ poll }) {
    const minMs = poll?.minMs ?? Math.min(50, poll?.maxMs ?? 50);
    const maxMs = poll?.maxMs ?? Math.max(400, minMs);
    if (minMs > maxMs)
        throw new LockConfigError("poll.minMs", minMs, `must be at most poll.maxMs, which is ${maxMs} ms`);
    return { minMs, maxMs };
}
function checkLease({ ttlMs, safetyMarginMs, renewEveryMs }) {
    const leastMs = Math.ceil(ttlMs / 500);
    const mostMs = ttlMs - safetyMarginMs;
    if (safetyMarginMs < leastMs) {
        const remedy = `must be at least ${leastMs} ms, a 500th of ttlMs, or clocks that run at different rates could let two in`;
        throw new LockConfigError("safetyMarginMs", safetyMarginMs, remedy);
    }
    if (safetyMarginMs >= ttlMs) {
        throw new LockConfigError("safetyMarginMs", safetyMarginMs, `must be less than ttlMs, which is ${ttlMs} ms`);
    }
    if (renewEveryMs >= mostMs) {
        const remedy = `must be less than ttlMs - safetyMarginMs, which is ${mostMs} ms, or every lease would end first`;
        throw new LockConfigError("renewEveryMs", renewEveryMs, remedy);
    }
}
