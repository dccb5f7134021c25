import { isDeepStrictEqual } from "node:util";
import { publish } from "../diagnostics.js";
import { infoOf } from "../protocol/row.js";
import { follow } from "../session/abort-listening.js";
import { isTransient } from "../session/retry.js";
import { jittered } from "../taking/polling.js";
import { isDead, knownNow } from "../taking/rows.js";
import { adminRequest } from "./admin-request.js";
const POLL_MS = 1_000;
const RETURNED = new Error("The iterator has returned");
export function observe(session, target, { signal, pollMs = POLL_MS }) {
    const returned = new AbortController();
    const iterator = changes(session, target, pollMs, [returned.signal, session.closing, signal]);
    return {
        next: () => iterator.next(),
        return: () => {
            returned.abort(RETURNED);
            return iterator.return(undefined);
        },
        [Symbol.asyncIterator]() {
            return this;
        },
    };
}
async function* changes(session, target, pollMs, signals) {
    const { clock } = session;
    const holderNow = watcherOf(session, target);
    let shown;
    for (let dueAt = Number.NEGATIVE_INFINITY;;) {
        const end = new AbortController();
        const stop = follow(signals, (reason) => end.abort(reason));
        let holder;
        try {
            end.signal.throwIfAborted();
            const pauseMs = dueAt - clock.atLeast();
            if (pauseMs > 0)
                await clock.sleep(pauseMs, end.signal);
            holder = await holderNow(end.signal, { isFirst: shown === undefined });
            end.signal.throwIfAborted();
        }
        catch (error) {
            if (error === RETURNED)
                return undefined;
            throw error;
        }
        finally {
            stop();
        }
        dueAt = clock.atLeast() + jittered(session, pollMs);
        if (holder === undefined || (shown !== undefined && isSame(shown, holder)))
            continue;
        shown = holder;
        yield holder;
    }
}
function watcherOf(session, { at, settings }) {
    let over;
    return async (end, { isFirst }) => {
        const own = session.leasesOn(at).find(({ held }) => held);
        if (own !== undefined)
            return own.info;
        const ask = async (signal) => {
            const known = knownNow(session, settings.takeover);
            return { known, row: await session.store.read(at, { consistent: true }, signal) };
        };
        try {
            const { row, known } = await adminRequest(session, ask, { signal: end });
            session.sightings.note(at, row);
            if (row?.uuid === undefined || row.uuid === over)
                return null;
            if (!isDead(session, row, known))
                return infoOf(row);
            over = row.uuid;
            return null;
        }
        catch (cause) {
            if (isFirst || end.aborted || !isTransient(cause))
                throw cause;
            publish("dynamutex:wait-failed", { name: at.name, cause });
            return undefined;
        }
    };
}
function isSame(one, other) {
    return one?.uuid === other?.uuid && isDeepStrictEqual(one?.data, other?.data);
}
