import { LockConfigError, LockStoreError } from "../errors.js";
export function isTimeKnown(clock) {
    return clock.isCurrent === undefined ? clock.wall() !== undefined : clock.isCurrent();
}
export function boundsOf(clock) {
    const bounds = clock.wall();
    if (bounds !== undefined)
        return bounds;
    throw new LockStoreError("The clock does not know the table's time, although the table has answered: check the `clock` of the LockTable");
}
export const MAX_TIMER_MS = 2_147_483_647;
export function systemClock(options = {}) {
    const { maxSkewMs } = skewsOf(options, { maxSkewMs: 1_000 });
    return {
        ...stopwatches(),
        ...timers,
        wall: () => {
            const now = Date.now();
            return { earliest: now - maxSkewMs, latest: now + maxSkewMs };
        },
    };
}
export function skewsOf(options, defaults) {
    if (typeof options !== "object" || options === null || Array.isArray(options)) {
        throw new LockConfigError("options", options, "must be an object, or left out");
    }
    const skews = { ...defaults };
    for (const [option, skewMs] of Object.entries(options)) {
        if (!(option in defaults)) {
            const known = Object.keys(defaults);
            const remedy = known.length === 1 ? `there is ${known} alone` : `there are ${known.join(" and ")}`;
            throw new LockConfigError(option, skewMs, `is not an option: ${remedy}`);
        }
        if (skewMs === undefined)
            continue;
        if (typeof skewMs !== "number" || !Number.isFinite(skewMs) || skewMs < 0) {
            throw new LockConfigError(option, skewMs, "must be a number of milliseconds, 0 or more");
        }
        skews[option] = skewMs;
    }
    return skews;
}
export const hostTime = { monotonic: () => performance.now(), wall: () => Date.now() };
export const JITTER_MS = 5;
export function stopwatches(time = hostTime) {
    let lead = time.wall() - time.monotonic();
    let suspended = 0;
    let shown = Number.NEGATIVE_INFINITY;
    const read = () => {
        const monotonic = time.monotonic();
        const leadNow = time.wall() - monotonic;
        lead = Math.min(lead, leadNow);
        const missed = leadNow - lead;
        shown = Math.max(shown, monotonic + suspended + missed);
        if (missed > JITTER_MS) {
            suspended += missed;
            lead = leadNow;
        }
        return { atLeast: monotonic, atMost: shown, lead: leadNow };
    };
    return { atLeast: () => time.monotonic(), atMost: () => read().atMost, read };
}
const timerMs = (ms) => Math.min(Math.max(ms, 0), MAX_TIMER_MS);
export async function sleepUntilRung(set, signal) {
    signal?.throwIfAborted();
    await new Promise((resolve, reject) => {
        const cancel = set(() => {
            signal?.removeEventListener("abort", stop);
            resolve();
        });
        const stop = () => {
            cancel();
            reject(signal?.reason);
        };
        signal?.addEventListener("abort", stop, { once: true });
    });
}
export const timers = {
    sleep: (ms, signal) => sleepUntilRung((wake) => {
        const timer = setTimeout(wake, timerMs(ms));
        return () => clearTimeout(timer);
    }, signal),
    alarm: (ms, ring) => {
        const timer = setTimeout(ring, timerMs(ms));
        timer.unref?.();
        return () => clearTimeout(timer);
    },
    stay: () => {
        const timer = setInterval(() => undefined, MAX_TIMER_MS);
        return () => clearInterval(timer);
    },
};
export const RATE_DRIFT = 500e-6;
export function contradict(one, other) {
    return one.earliest > other.latest || other.earliest > one.latest;
}
export function intersect(one, other) {
    return { ...one, earliest: Math.max(one.earliest, other.earliest), latest: Math.min(one.latest, other.latest) };
}
export function cover(one, other) {
    return { ...one, earliest: Math.min(one.earliest, other.earliest), latest: Math.max(one.latest, other.latest) };
}
export function jumped(from, to) {
    return Math.abs(to.lead - from.lead) > JITTER_MS + 2 * RATE_DRIFT * Math.max(0, to.atLeast - from.atLeast);
}
export function shortest(from, to) {
    return Math.max(0, to.atLeast - from.atLeast) / (1 + RATE_DRIFT);
}
export function longest(from, to) {
    return Math.max(0, to.atMost - from.atMost) / (1 - RATE_DRIFT);
}
