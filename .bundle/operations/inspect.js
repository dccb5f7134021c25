import { isDeepStrictEqual } from "node:util";
import { LockStoreError } from "../errors.js";
import { PERMITS, permitOf, placesOf, READERS, ticketOf } from "../protocol/addresses.js";
import { earliestOf } from "../protocol/lease-time.js";
import { mayTake } from "../protocol/may-take.js";
import { infoOf } from "../protocol/row.js";
import { BadRow } from "../store.js";
import { nextRange, PAGE_ROWS } from "../taking/rows.js";
import { adminRequest } from "./admin-request.js";
const MOST_LOOKED_AT = 100;
export async function inspect(session, resource) {
    const info = await read(session, resource.at);
    return info && { ...info, waiters: await waitersFor(session, resource) };
}
export async function inspectSemaphore(session, resource) {
    const { name, permits } = resource;
    const { rows, bad } = await rowsIn(session, name, PERMITS, { consistent: true });
    const bounds = session.clock.wall();
    const holders = [
        ...rows.filter((row) => isTaken(row, bounds)).map((row) => ({ ...infoOf(row), permit: permitOf(row.sort) ?? 0 })),
        ...bad.map((row) => ({ ...infoOfBad(row), permit: permitOf(row.at.sort) ?? 0 })),
    ].sort((one, other) => one.permit - other.permit);
    return { permits, holders, waiters: await waitersFor(session, resource) };
}
export async function inspectSharedMutex(session, resource) {
    const { rows, bad } = await rowsIn(session, resource.name, READERS, { consistent: true });
    const exclusive = await read(session, resource.at);
    const bounds = session.clock.wall();
    const shared = [...rows.filter((row) => isTaken(row, bounds)).map(infoOf), ...bad.map(infoOfBad)];
    return { exclusive, shared, waiters: await waitersFor(session, resource) };
}
async function read(session, at) {
    try {
        const row = await adminRequest(session, (signal) => session.store.read(at, { consistent: true }, signal));
        return row !== undefined && (row.tick !== undefined || isTaken(row, session.clock.wall())) ? infoOf(row) : null;
    }
    catch (error) {
        if (error instanceof BadRow && error.isDamaged)
            return infoOfBad(error);
        throw error;
    }
}
function infoOfBad(bad) {
    return { ...infoOf(blankOf(bad)), problem: bad.message };
}
function blankOf({ at, owner }) {
    return { ...at, owner, uuid: undefined, acquired: 0, expires: 0, ttlMs: 0, data: undefined, tick: undefined };
}
export function isTaken(row, bounds) {
    return row.uuid !== undefined || !mayTake(row, { earliest: earliestOf(bounds) });
}
async function waitersFor(session, { name, kind, settings }) {
    return settings.fair ? await listWaiters(session, name, kind.queue.keys) : [];
}
export async function listWaiters(session, name, queue) {
    const { rows, bad } = await rowsIn(session, name, placesOf(queue), { consistent: false });
    const earliest = earliestOf(session.clock.wall());
    const waiters = rows.filter((row) => !mayTake(row, { earliest })).map(waiterInfo);
    const blocked = bad.map((row) => ({ ...waiterInfo(blankOf(row)), sections: 0, problem: row.message }));
    return [...waiters, ...blocked].sort((one, other) => (one.ticket < other.ticket ? -1 : 1));
}
export async function rowsIn(session, name, range, { consistent, signal: ends, onFailure, }) {
    const rows = [];
    const bad = [];
    const first = { name, ...range, limit: PAGE_ROWS, consistent };
    for (let rest = first; rest !== undefined;) {
        const asked = rest;
        const query = (signal) => {
            const page = session.store.query(asked, signal);
            if (onFailure !== undefined)
                page.catch((cause) => signal.aborted || onFailure(cause));
            return page;
        };
        const page = await adminRequest(session, query, { signal: ends });
        rows.push(...page.rows);
        bad.push(...page.bad);
        rest = nextRange(asked, page);
    }
    return { rows, bad };
}
function waiterInfo({ sort, uuid = "", owner, data, acquired, expires }) {
    const needed = typeof data?.sections === "number" ? data.sections : 1;
    const sections = typeof data?.callers === "number" ? data.callers : needed;
    const side = data?.side === "exclusive" || data?.side === "shared" ? data.side : undefined;
    const [since, until] = [new Date(acquired), new Date(expires)];
    const several = needed > sections ? { permits: needed } : undefined;
    return { ticket: ticketOf(sort) ?? 0n, uuid, owner, sections, ...several, side, since, expires: until };
}
export async function* listLocks(session, { prefix = "", kept = false, signal }) {
    let after;
    do {
        const from = after;
        const scan = (ends) => session.store.scan(prefix, from, ends);
        const { rows, bad, next } = await adminRequest(session, scan, { signal });
        if (next !== undefined && isDeepStrictEqual(next, from))
            throw new LockStoreError("A scan of the table goes on where it began: what answers is not DynamoDB; check the endpoint");
        const bounds = session.clock.wall();
        const shown = rows.filter((row) => kept || isTaken(row, bounds));
        for (const info of [...shown.map(infoOf), ...bad.map(infoOfBad)]) {
            signal?.throwIfAborted();
            yield info;
        }
        after = next;
    } while (after !== undefined);
}
export async function permitProblems(session, { signal }) {
    const problems = [];
    for (const [name, permits] of [...session.semaphores].slice(-MOST_LOOKED_AT)) {
        const { rows, bad } = await rowsIn(session, name, PERMITS, { consistent: false, signal });
        for (const { message } of bad)
            problems.push({ code: "row", severity: "warning", message });
        const other = rows.find((row) => row.permits !== undefined && row.permits !== permits);
        if (other === undefined)
            continue;
        const message = `Semaphore ${JSON.stringify(name)} has ${permits} permits here and ${other.permits} for ${other.owner}: each host uses as ` +
            "many as it knows of, so the larger number counts; deploy one number everywhere";
        problems.push({ code: "permits", severity: "warning", message });
    }
    return problems;
}
