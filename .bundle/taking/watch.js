import { publish } from "../diagnostics.js";
import { markInNumber, needInMark, numberOfMark } from "../protocol/mark.js";
import { WANTED_FOR_MS } from "../session/contention.js";
import { LONGEST_ATTEMPT_MS } from "../session/retry.js";
import { looksFree } from "./claim.js";
import { LONGEST_JITTER, Polling } from "./polling.js";
const MARK_AGAIN_MS = 5_000;
const MARK_TRIES = 3;
export const ANSWERS = 3;
const UNSAID_NEED_MS = 800;
export function blockedFromNow({ clock }) {
    return { since: clock.atLeast(), markedAt: Number.NEGATIVE_INFINITY };
}
export async function watch(session, { target, row: first }, wait, blocked) {
    const { sightings } = wait;
    const { at, settings } = target;
    if (looksFree(wait, target, first)) {
        await wait.again();
        return undefined;
    }
    const polling = blocked.polling ?? new Polling(session, settings.poll);
    for (let row = first; !looksFree(wait, target, row);) {
        wait.endSignal.throwIfAborted();
        wait.saw(row);
        session.contended().waitsFor(row);
        if (row !== first)
            await mark(session, target, { row, blocked, wait });
        await polling.pause(wait, untilFree(session, wait, target, row));
        const next = await wait.ask((signal) => session.store.read(at, { consistent: false }, signal));
        sightings.note(at, next);
        if (next === undefined)
            return undefined;
        wait.call.onSeen?.(next);
        if (next.uuid !== row.uuid)
            polling.set();
        row = next;
    }
    return undefined;
}
export function isMarked(row, bounds) {
    return row.wanted !== undefined && (bounds === undefined || row.wanted > bounds.earliest);
}
export function isMarkedFor(session, { poll }, row, answers = ANSWERS) {
    if (row.wanted === undefined || !isMarked(row, session.clock.wall()))
        return false;
    return (markInNumber(row.wanted).needMs ?? UNSAID_NEED_MS) >= needMsOf(session, poll, answers);
}
function needMsOf({ scheduler }, { maxMs }, answers) {
    return needInMark(LONGEST_JITTER * maxMs + answers * (scheduler.slowMs ?? 0));
}
export function untilFree({ clock }, { sightings }, { at, settings: { takeover } }, row) {
    const unchanged = sightings.untilUnchanged(at);
    const bounds = takeover === "expired" ? clock.wall() : undefined;
    return bounds === undefined ? unchanged : Math.min(unchanged, row.expires + 1 - bounds.earliest);
}
export async function mark(session, { at, settings }, { row, blocked, wait }) {
    const { clock, store } = session;
    const now = clock.atLeast();
    if (now - blocked.since < settings.handOverMs || now - blocked.markedAt < MARK_AGAIN_MS)
        return;
    const bounds = clock.wall();
    if (row.uuid === undefined || bounds === undefined || isMarkedFor(session, settings, row, blocked.answers))
        return;
    const until = bounds.latest + Math.min(WANTED_FOR_MS, wait.remainingMs);
    const wanted = numberOfMark({ until, needMs: needMsOf(session, settings.poll, blocked.answers ?? ANSWERS) });
    const before = blocked.markedAt;
    blocked.markedAt = now;
    try {
        for (let tries = 1; tries <= MARK_TRIES; tries += 1) {
            const { kind } = await wait.once({ kind: "take", firstTimeoutMs: LONGEST_ATTEMPT_MS }, (signal) => store.write({ kind: "want", at, until: wanted }, signal));
            if (kind === "applied")
                return session.contended().sees({ ...row, wanted });
        }
        blocked.markedAt = before;
    }
    catch (cause) {
        wait.call.inContext(() => publish("dynamutex:wait-failed", { name: at.name, cause }));
    }
}
