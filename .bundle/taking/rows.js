import { earliestOf } from "../protocol/lease-time.js";
import { mayTake } from "../protocol/may-take.js";
import { firstTimeoutMs, persist } from "../session/requests.js";
export const PAGE_ROWS = 100;
const REMOVE_WITHIN_MS = 10_000;
export function knownNow({ clock }, takeover) {
    const bounds = takeover === "unchanged" ? undefined : clock.wall();
    return { earliest: earliestOf(bounds), asOf: clock.atLeast(), sentAt: clock.atMost() };
}
export function isDead({ sightings }, row, { earliest, asOf }) {
    return mayTake(row, { earliest, unchanged: sightings.unchanged(row, asOf) });
}
export function removeAsSeen(session, { name, sort, uuid: seenUuid, expires: seenExpires }, { ttlMs, endSignal, until = () => Number.POSITIVE_INFINITY, }) {
    const giveUpAt = session.clock.atMost() + REMOVE_WITHIN_MS;
    const persistence = {
        kind: "release",
        until: () => Math.min(giveUpAt, until()),
        firstTimeoutMs: firstTimeoutMs(ttlMs),
        endSignal,
    };
    const write = { kind: "remove", at: { name, sort }, seenUuid, seenExpires };
    return persist(session, persistence, (signal) => session.store.write(write, signal));
}
export async function* pagesOf(session, { ask, sightings }, range, onSent = () => undefined) {
    const { takeover, ...first } = range;
    for (let rest = first; rest !== undefined;) {
        const query = rest;
        const page = await ask(async (signal) => {
            if (query === first)
                onSent();
            const known = knownNow(session, takeover);
            return { ...(await session.store.query(query, signal)), ...known };
        });
        const [bad] = page.bad;
        if (bad !== undefined)
            throw bad;
        rest = nextRange(query, page);
        for (const row of page.rows)
            sightings.note(row, row);
        yield { page, isLast: rest === undefined };
    }
}
export function nextRange(range, { next }) {
    if (next === undefined || next < (range.after ?? range.first) || next === range.after)
        return undefined;
    return next < range.last ? { ...range, after: next, limit: PAGE_ROWS } : undefined;
}
