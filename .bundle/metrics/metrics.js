export const LOCK_NAME = "dynamutex.lock.name";
const WAITS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300];
const HOLDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300, 900, 3_600];
const REQUESTS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5];
export const METRICS = {
    calls: counter("calls", "{call}", "Calls that asked for a lock"),
    waiting: gauge("waiting", "{call}", "Calls that wait for a lock"),
    waitDuration: duration("wait.duration", "How long calls waited, by what came of them", WAITS, "dynamutex.outcome"),
    misses: counter("misses", "{call}", "Calls that ended without the lock, because others have it", "dynamutex.because"),
    failures: counter("failures", "{call}", "Calls that were aborted, closed, or failed", "dynamutex.because", "error.type"),
    held: gauge("held", "{lock}", "Locks that sections hold"),
    holdDuration: duration("hold.duration", "How long sections ran, by what came of their locks", HOLDS, "dynamutex.outcome"),
    losses: counter("losses", "{lock}", "Locks that were lost while a section ran", "dynamutex.reason"),
    takeovers: counter("takeovers", "{lock}", "Locks that were taken from a holder that did not release them", "dynamutex.takeover"),
    wanted: counter("wanted", "{lock}", "Locks whose section learned that another host waits"),
    warnings: counter("warnings", "{event}", "What the channels report beside the life of sections", "dynamutex.event"),
    requests: counter("requests", "{request}", "Requests to the table", "dynamutex.operation", "dynamutex.outcome"),
    requestDuration: duration("request.duration", "How long requests to the table took", REQUESTS, "dynamutex.operation", "dynamutex.outcome"),
    capacityUnits: counter("capacity_units", "{unit}", "Capacity units, as replies tell of them", "dynamutex.operation", "dynamutex.capacity.kind"),
};
export function instrumentsOf(make) {
    return Object.fromEntries(Object.entries(METRICS).map(([key, metric]) => [key, make(metric)]));
}
function counter(name, unit, description, ...attributes) {
    return { name: `dynamutex.${name}`, kind: "counter", unit, description, attributes };
}
function gauge(name, unit, description) {
    return { name: `dynamutex.${name}`, kind: "gauge", unit, description, attributes: [] };
}
function duration(name, description, buckets, ...attributes) {
    return { name: `dynamutex.${name}`, kind: "histogram", unit: "s", description, attributes, buckets };
}
