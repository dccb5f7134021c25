export const MOST_NEED_MS = 5_000;
export const NEED_STEP_MS = 250;
const STEP_FRACTION = 1 / 32;
export const needInMark = (needMs) => Math.min(MOST_NEED_MS, Math.ceil(needMs / NEED_STEP_MS) * NEED_STEP_MS);
export function numberOfMark({ until, needMs = 0 }) {
    return Math.ceil(until) + (needInMark(needMs) / NEED_STEP_MS) * STEP_FRACTION;
}
export const isMark = (value) => Number.isInteger(Number(value) / STEP_FRACTION);
export function markInNumber(wanted) {
    const until = Math.floor(wanted);
    const needMs = Math.ceil((wanted - until) / STEP_FRACTION) * NEED_STEP_MS;
    return { until, needMs: needMs === 0 ? undefined : Math.min(MOST_NEED_MS, needMs) };
}
