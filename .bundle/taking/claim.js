import { LockStoreError } from "../errors.js";
import { mayTake } from "../protocol/may-take.js";
import { Copies, firstTimeoutMs } from "../session/requests.js";
import { isTransient } from "../session/retry.js";
import { isTimeKnown } from "../time/clock.js";
import { learnTime, tickNow } from "./known-time.js";
import { RowTake } from "./row-take.js";
import { throwIfTooSlow } from "./too-slow.js";
const MOST_TRIES = 3;
export async function tryClaim(wait, send) {
    const { asker } = wait;
    for (let attempt = 1;; attempt++) {
        const result = await send();
        if (result.kind !== "held" || attempt === MOST_TRIES || wait.asker !== asker)
            return result;
        if (!result.inTheWay.every(({ target, row }) => looksFree(wait, target, row)))
            return result;
        wait.endSignal.throwIfAborted();
    }
}
export function claim(session, target, wait, options = {}) {
    const { data, once, after } = options;
    const purpose = { data, maxAttempts: once?.maxAttempts, after };
    return claimBy(session, target, wait, options, (tick) => new RowTake(session, wait.sightings, target, { ...purpose, tick }));
}
export async function claimBy(session, first, wait, { once, after, until = wait.until }, attemptFor) {
    const { ttlMs, safetyMarginMs, poll } = first.settings;
    const leaseMs = ttlMs - safetyMarginMs;
    let failure;
    for (;;) {
        wait.endSignal.throwIfAborted();
        if (!isTimeKnown(session.clock)) {
            const row = await learnTime(session, first.at, wait);
            if (once === undefined && row !== undefined && !looksFree(wait, first, row)) {
                wait.saw(row);
                return { kind: "held", inTheWay: [{ target: first, row }] };
            }
        }
        const tick = once && (await tickNow(session, first.at, once, wait));
        const attempt = attemptFor(tick);
        const copies = new Copies();
        const end = () => Math.min(attempt.sentAt + leaseMs, until());
        const persistence = { kind: "take", firstTimeoutMs: firstTimeoutMs(ttlMs), until: end };
        let outcome;
        try {
            outcome = await wait.persistAtKnownTime(persistence, (signal) => copies.count(attempt.send(signal)));
        }
        catch (error) {
            once?.inVain.doubtfulTicks.set(tick, error);
            failure = error;
            const isDoubtful = error instanceof LockStoreError && (error.transient || error.retried);
            if (isDoubtful || copies.sent > 1)
                attempt.abandon();
            wait.endSignal.throwIfAborted();
            if (isTransient(error))
                throwIfTooSlow(session, wait, first, error);
            if (!isTransient(error) || session.clock.atMost() >= until())
                throw error;
            continue;
        }
        if (outcome === undefined) {
            await wait.again();
            continue;
        }
        const granted = attempt.granted(outcome);
        if (granted !== undefined)
            return { kind: "granted", granted };
        const others = attempt.refused(outcome);
        if (copies.unanswered > 0 || outcome.retried)
            attempt.abandon();
        for (const uuid of attempt.uuids)
            once?.inVain.refused.add(uuid);
        for (const { target, row } of others) {
            wait.sightings.note(target.at, row);
            wait.saw(row);
        }
        const inTheWay = others;
        const kind = whyRefused(wait, others, tick, once);
        if (kind === "done" && once?.maxAttempts === undefined)
            throwIfTickIsOwn(inTheWay[0], once);
        const isOwn = others.every(({ row }) => wait.sightings.isAbandoned(row));
        if (kind !== "held" || !isOwn || after !== undefined)
            return { kind, inTheWay };
        if (session.clock.atMost() >= until())
            throw inOwnWay(first, failure);
        await session.clock.sleep(Math.min(poll.minMs, until() - session.clock.atMost()), wait.endSignal);
    }
}
function inOwnWay({ at }, cause) {
    return new LockStoreError(`Lock ${JSON.stringify(at.name)} is not held: an earlier claim of this process got no answer, and its row was there ` +
        "to the end; try again", { transient: true, cause });
}
function throwIfTickIsOwn({ target, row }, once) {
    if (once?.inVain.doubtfulTicks.has(row.tick))
        throw once.inVain.doubtfulTicks.get(row.tick);
    if (!once?.inVain.refused.has(row.uuid))
        return;
    throw new LockStoreError(`Lock ${JSON.stringify(target.at.name)}: tick ${row.tick} was taken by a late copy of a claim of this call that had been ` +
        "refused, so nothing has run for it");
}
export function endedBy(row, tick, once) {
    if (tick === undefined || row.tick === undefined || row.tick < tick)
        return undefined;
    if (once?.maxAttempts === undefined)
        return "done";
    if (row.tick > tick)
        return "superseded";
    return row.due === tick ? undefined : "done";
}
function whyRefused(seeing, others, tick, once) {
    const { maxAttempts = Number.POSITIVE_INFINITY } = once ?? {};
    for (const { target, row } of others) {
        const ended = endedBy(row, tick, once);
        if (ended !== undefined)
            return ended;
        const isLast = tick !== undefined && seeing.sightings.nextAttempt(target.at, tick).attempt > maxAttempts;
        if (isLast && looksFree(seeing, target, row))
            return "gave-up";
    }
    return "held";
}
export function looksFree({ sightings }, { at, settings }, row) {
    return mayTake(row, sightings.knowledge(at, settings.takeover));
}
export function looksFreeIn(seeing, target, rows) {
    const row = rows.find(({ sort }) => sort === target.at.sort);
    return row === undefined || looksFree(seeing, target, row);
}
