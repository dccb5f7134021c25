import { READERS, SHARED_MUTEX_QUEUE } from "../protocol/addresses.js";
import { listenWithoutBound } from "../session/abort-listening.js";
import { isTransient } from "../session/retry.js";
import { isDead, knownNow, pagesOf, removeAsSeen } from "../taking/rows.js";
import { rowTarget } from "./kind.js";
const READERS_LIMIT = 8;
const LOOK_LIMIT = 16;
export const WRITER_GATE = {
    keys: SHARED_MUTEX_QUEUE,
    lookLimit: () => LOOK_LIMIT,
    gateRows: (_resource, rows) => rows,
    together: (_resource, places) => {
        const first = places.findIndex(({ data }) => data?.side !== "shared");
        return Math.max(1, first === -1 ? places.length : first);
    },
};
export async function lookForWriter(session, resource, wait) {
    return (await readWriter(session, resource, wait, { isConsistent: false })).writer;
}
export async function untilNoWriter(session, resource, wait) {
    for (;;) {
        const { writer, row } = await readWriter(session, resource, wait, { isConsistent: true });
        if (writer !== undefined || row?.uuid === undefined)
            return writer;
        wait.endSignal.throwIfAborted();
        if (await remove(session, row, resource.settings.ttlMs, wait))
            return undefined;
        wait.endSignal.throwIfAborted();
        await wait.again();
    }
}
async function readWriter(session, resource, wait, { isConsistent: consistent }) {
    const target = rowTarget(resource);
    const { known, row } = await wait.ask(async (signal) => {
        const before = knownNow(session, resource.settings.takeover);
        return { known: before, row: await session.store.read(target.at, { consistent }, signal) };
    });
    wait.sightings.note(target.at, row);
    if (row === undefined || isDead(wait, row, known))
        return { row, writer: undefined };
    wait.saw(row);
    return { row, writer: { target, row } };
}
export async function lookForReaders(session, { name, settings }, wait) {
    const { takeover } = settings;
    const range = { name, ...READERS, limit: READERS_LIMIT, consistent: true, takeover };
    let found = false;
    for await (const { page } of pagesOf(session, wait, range)) {
        found ||= page.rows.length > 0;
        const alive = page.rows.find((row) => !isDead(wait, row, page));
        if (alive !== undefined)
            return { found, alive };
        listenWithoutBound(wait.endSignal);
        await Promise.all(page.rows.map((row) => remove(session, row, settings.ttlMs, wait)));
    }
    return { found };
}
export async function grantedUnless(session, own, look) {
    let isGranted = false;
    try {
        const inTheWay = await look(own);
        isGranted = inTheWay === undefined;
        return inTheWay === undefined ? { kind: "granted", granted: own } : { kind: "held", inTheWay: [inTheWay] };
    }
    finally {
        if (!isGranted)
            session.detach(own.lease.exit.giveBack());
    }
}
async function remove(session, row, ttlMs, { endSignal, until }) {
    try {
        return (await removeAsSeen(session, row, { ttlMs, endSignal, until })).kind === "applied";
    }
    catch (error) {
        const mayLookAgain = isTransient(error) && session.clock.atMost() < until();
        if (mayLookAgain || endSignal.aborted)
            return false;
        throw error;
    }
}
