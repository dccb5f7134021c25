import { showDuration } from "./options.js";
export function viewOf(lock, bounds, waiting) {
    const { name, kind, uuid, owner, acquired, expires, ttlMs, data, tick, attempts, succeeded, lastRun, problem } = lock;
    const state = stateOf(lock, bounds);
    const now = bounds === undefined ? acquired.getTime() : (bounds.earliest + bounds.latest) / 2;
    const leftMs = state === "free" || state === "bad" ? undefined : Math.round(expires.getTime() - now);
    const row = { uuid, owner, acquired, expires, leftMs, ttlMs, tick, attempts, succeeded, data, waiting };
    return { name, kind, state, ...row, ...(lastRun && { lastRun }), ...(problem !== undefined && { problem }) };
}
function stateOf({ uuid, handedOff, expires, problem }, bounds) {
    if (problem !== undefined)
        return "bad";
    const isOver = expires.getTime() < (bounds?.earliest ?? 1);
    if (uuid === undefined)
        return isOver ? "free" : "blocked";
    if (isOver)
        return "expired";
    return handedOff ? "handed-off" : "held";
}
export const isTaken = ({ state }) => state !== "expired" && state !== "free";
export function leftOf({ leftMs }) {
    if (leftMs === undefined)
        return "-";
    return leftMs < 0 ? `${showDuration(-leftMs)} ago` : showDuration(leftMs);
}
export function inOrder(views) {
    const by = ({ name, kind, owner, acquired }) => [name, kind, owner, acquired.toISOString()].join("\0");
    return views.toSorted((one, other) => (by(one) < by(other) ? -1 : by(one) > by(other) ? 1 : 0));
}
export async function findLocks({ locks, clock, keys }, name) {
    const fair = keys.sort !== undefined;
    const kinds = fair ? ["mutex", "semaphore", "exclusive"] : ["mutex"];
    const looks = await Promise.all(kinds.map((kind) => lookAt(locks, { name, kind }, fair)));
    const bounds = clock.wall();
    const views = looks.flatMap(({ taken, queue }) => taken.map((lock) => viewOf(lock, bounds, sectionsIn(queue))));
    const waiters = looks.flatMap(({ kind, queue }) => queue.map(({ ticket: _, ...waiter }) => ({ ...waiter, kind: waiter.side ?? kind })));
    return { locks: inOrder(views), waiters };
}
const AT_ONCE = 16;
export async function countWaiters(locks, listed) {
    const queueOf = ({ kind, name }) => `${kind === "shared" ? "exclusive" : kind} ${name}`;
    const counts = new Map();
    const queues = new Map(listed.map((lock) => [queueOf(lock), lock])).entries();
    const read = async () => {
        for (const [queue, lock] of queues)
            counts.set(queue, sectionsIn((await lookAt(locks, lock, true)).queue));
    };
    await Promise.all(Array.from({ length: AT_ONCE }, read));
    return new Map(listed.map((lock) => [lock, counts.get(queueOf(lock)) ?? 0]));
}
export function lockableAt(locks, { name, kind }, fair) {
    if (kind === "mutex")
        return locks.mutex(name, { fair });
    return kind === "semaphore" ? locks.semaphore(name, { permits: 1, fair }) : locks.sharedMutex(name, { fair });
}
async function lookAt(locks, address, fair) {
    const { kind } = address;
    const state = await lockableAt(locks, address, fair).inspect();
    if (state === null)
        return { kind, taken: [], queue: [] };
    if ("holders" in state)
        return { kind, taken: state.holders, queue: state.waiters };
    const taken = "shared" in state ? [state.exclusive ?? [], state.shared].flat() : [state];
    return { kind, taken, queue: state.waiters };
}
const sectionsIn = (queue) => queue.reduce((sum, { sections }) => sum + sections, 0);
