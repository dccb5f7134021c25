import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { LOSS } from "../errors.js";
export function subscribeAll(...all) {
    const listeners = all.flatMap((some) => Object.entries(some));
    for (const [channel, listener] of listeners)
        subscribe(channel, listener);
    return () => {
        for (const [channel, listener] of listeners)
            unsubscribe(channel, listener);
    };
}
export function countRequests(instruments, labels) {
    const { requests, requestDuration, capacityUnits } = instruments;
    return {
        "dynamutex:request": ({ operation, name, ms, outcome, readUnits, writeUnits }) => {
            const attributes = { "dynamutex.operation": operation, ...labels(name) };
            requests(1, { ...attributes, "dynamutex.outcome": outcome });
            requestDuration(ms / 1_000, { ...attributes, "dynamutex.outcome": outcome });
            if (readUnits)
                capacityUnits(readUnits, { ...attributes, "dynamutex.capacity.kind": "read" });
            if (writeUnits)
                capacityUnits(writeUnits, { ...attributes, "dynamutex.capacity.kind": "write" });
        },
    };
}
const WARNINGS = [
    "dynamutex:stuck",
    "dynamutex:renewal-failed",
    "dynamutex:release-failed",
    "dynamutex:not-shared",
    "dynamutex:not-recorded",
    "dynamutex:wait-failed",
    "dynamutex:ticket-lost",
    "dynamutex:permits-differ",
    "dynamutex:forced",
    "dynamutex:clock",
];
const eventOf = (channel) => ({ "dynamutex.event": channel.slice("dynamutex:".length) });
export function countWarnings({ warnings }, labels) {
    const count = (channel) => (message) => warnings(1, { ...eventOf(channel), ...labels(message.name) });
    return Object.fromEntries(WARNINGS.map((channel) => [channel, count(channel)]));
}
const FAILURES = {
    aborted: {},
    closed: {},
    error: { "error.type": "LOCK_STORE" },
};
const TAKEOVERS = { expired: true, unchanged: true };
const OPERATIONS = {
    take: true,
    "take-all": true,
    renew: true,
    "renew-all": true,
    reissue: true,
    transfer: true,
    release: true,
    record: true,
    remove: true,
    mark: true,
    draw: true,
    check: true,
    "put-result": true,
    read: true,
    query: true,
    scan: true,
    transact: true,
};
export function startAtZero({ calls, waiting, losses, failures, takeovers, warnings, requests }) {
    calls(0);
    waiting(0);
    for (const reason of Object.keys(LOSS))
        losses(0, { "dynamutex.reason": reason });
    for (const [because, type] of Object.entries(FAILURES))
        failures(0, { "dynamutex.because": because, ...type });
    for (const takeover of Object.keys(TAKEOVERS))
        takeovers(0, { "dynamutex.takeover": takeover });
    for (const channel of WARNINGS)
        warnings(0, eventOf(channel));
    for (const operation of Object.keys(OPERATIONS)) {
        const attributes = { "dynamutex.operation": operation };
        for (const outcome of ["throttled", "unanswered"])
            requests(0, { ...attributes, "dynamutex.outcome": outcome });
    }
}
