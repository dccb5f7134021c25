export function stamp(bounds, ttlMs, last = 0) {
    return Math.max(Math.ceil(bounds.latest) + ttlMs, last + 1);
}
export function earliestOf(bounds) {
    return bounds === undefined ? 1 : Math.max(1, Math.floor(bounds.earliest));
}
export function displayTime({ earliest, latest }) {
    return Math.round((earliest + latest) / 2);
}
export function leaseEnd({ expires, ttlMs, sentAt, bounds, atMost }) {
    if (bounds === undefined)
        return sentAt;
    return Math.min(atMost + (expires - bounds.latest), sentAt + ttlMs);
}
export function minimumHold(ms, atLeast, bounds) {
    return { ms, startedAt: atLeast, expires: Math.ceil(bounds.latest + ms) };
}
export function holdUntil({ expires, ms }, atLeast, { earliest }) {
    return { ms: Math.min(ms, Math.max(0, expires - earliest)), startedAt: atLeast, expires };
}
export function rowAfterHold(hold, atLeast, bounds) {
    if (hold === undefined)
        return { kind: "free" };
    const left = hold.ms - (atLeast - hold.startedAt);
    if (left <= 0 || (bounds !== undefined && bounds.earliest > hold.expires))
        return { kind: "free" };
    return { kind: "held", expires: hold.expires, ttlMs: Math.ceil(left) };
}
