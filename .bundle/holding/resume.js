import { LockConfigError, LockLostError } from "../errors.js";
import { resumeOptions } from "../options/calls.js";
import { holdUntil, stamp } from "../protocol/lease-time.js";
import { memoryOf } from "../protocol/rules.js";
import { isStillHeldBy, wasApplied } from "../protocol/was-applied.js";
import { retraced } from "../retraced.js";
import { firstTimeoutMs } from "../session/requests.js";
import { giveBack, removeWhenTheyArrive } from "../taking/abandoned-claims.js";
import { Call } from "../taking/call.js";
import { learnTime } from "../taking/known-time.js";
import { asOne, rowLease } from "../taking/row-lease.js";
import { tooSlow } from "../taking/too-slow.js";
import { runFor } from "../taking/wait.js";
import { boundsOf } from "../time/clock.js";
import { parseToken } from "./hand-off-token.js";
import { HeldLock } from "./handle.js";
import { Lease } from "./lease.js";
export async function resume(session, token, options, isOurs, targetFor) {
    const { signal } = resumeOptions(options);
    session.assertOpen();
    const rows = parseToken(token, session.table, isOurs);
    const [{ at }] = rows;
    signal?.throwIfAborted();
    const call = new Call(session, at.name, { signal, asksFor: 1 });
    const work = async (wait) => {
        const handed = await allHandedOff(session, rows, targetFor, wait);
        const lease = new Lease(session, await acquire(session, handed, wait));
        lease.exit.hold = remainingHold(session, handed[0]);
        if (!call.isSettled && (await lease.renewals.secure(wait)) && !call.isSettled) {
            lease.keep();
            const { acquired, tick } = lease.row;
            const lock = new HeldLock({ session, lease, acquired, tick });
            call.settle(lock);
            return lock.delivered({ call: call.number, waitedMs: call.waitedMs });
        }
        session.detach(lease.exit.giveBack());
        wait.endSignal.throwIfAborted();
        throw tooSlow(at.name, lease.settings);
    };
    try {
        return await runFor(session, call, work);
    }
    catch (error) {
        throw retraced(error);
    }
}
async function allHandedOff(session, rows, targetFor, wait) {
    const read = await Promise.allSettled(rows.map((row) => handedOff(session, targetFor(row.at), row.uuid, wait)));
    const handed = read.flatMap((one) => (one.status === "fulfilled" ? one.value : []));
    const failed = read.find((one) => one.status === "rejected");
    if (failed === undefined)
        return handed;
    if (failed.reason instanceof LockLostError)
        leaveBehind(session, handed);
    throw failed.reason;
}
async function handedOff(session, target, uuid, wait) {
    const { at } = target;
    const read = (signal) => session.store.read(at, { consistent: true }, signal);
    const row = (await learnTime(session, at, wait)) ?? (await wait.ask(read));
    if (row?.uuid !== uuid)
        throw lost(at, uuid, row === undefined ? "deleted" : "stolen");
    const { expires, acquired, data, handOff } = row;
    const facts = handOff?.uuid === uuid ? handOff : { uuid };
    return { ...facts, target, expires, acquired, data, remembers: memoryOf(row) };
}
function leaveBehind(session, handed) {
    const sentAt = session.clock.atMost();
    for (const one of handed) {
        const lease = rowLease(session, one.target, { ...one, sentAt });
        session.detach(giveBack(session, lease, remainingHold(session, one)));
    }
}
async function acquire(session, handed, wait) {
    const { clock } = session;
    const [{ target, uuid, expires }] = handed;
    const { at, settings } = target;
    session.mayRelease(settings.releaseWithinMs);
    let sent;
    const giveUpAt = () => Math.min(wait.until(), (sent?.[0]?.taken.sentAt ?? clock.atMost()) + settings.ttlMs - settings.safetyMarginMs);
    for (;;) {
        wait.endSignal.throwIfAborted();
        await learnTime(session, at, wait);
        if (boundsOf(clock).earliest > expires)
            throw lost(at, uuid, "expired");
        const persistence = { kind: "take", firstTimeoutMs: firstTimeoutMs(settings.ttlMs), until: giveUpAt };
        let outcome;
        try {
            outcome = await wait.persistAtKnownTime(persistence, (signal) => {
                sent ??= handed.map((one) => transferTo(session, one));
                return sendAll(session, sent.map(({ write }) => write), signal);
            });
        }
        catch (error) {
            if (sent !== undefined) {
                const maybe = sent.map(({ taken }, index) => rowLease(session, (handed[index] ?? handed[0]).target, taken));
                removeWhenTheyArrive(session, maybe, remainingHold(session, handed[0]));
            }
            throw error;
        }
        if (outcome === undefined || sent === undefined) {
            await wait.again();
            continue;
        }
        const { rows, drawn } = outcome;
        if (!outcome.isApplied && !sent.every(({ write }, index) => wasApplied(write, rows[index]) === "yes")) {
            if (handed.length > 1)
                leaveBehind(session, handed);
            throw refused(handed, rows);
        }
        const fence = settings.fencing ? drawn : undefined;
        const leases = sent.map(({ taken }, index) => {
            return rowLease(session, (handed[index] ?? handed[0]).target, { ...taken, fence });
        });
        return asOne(leases);
    }
}
async function sendAll({ store }, writes, signal) {
    const [write, ...others] = writes;
    if (others.length > 0) {
        const outcome = await store.writeAll(writes, signal);
        return outcome.kind === "applied" ? { isApplied: true, rows: [] } : { isApplied: false, rows: outcome.rows };
    }
    const outcome = await store.write(write, signal);
    if (outcome.kind === "applied")
        return { isApplied: true, rows: [], drawn: outcome.drawn };
    return { isApplied: false, rows: [outcome.row], drawn: outcome.row?.fence };
}
function transferTo(session, { target: { at, settings }, uuid: from, remembers, ...handed }) {
    const { clock, owner } = session;
    const { ttlMs, fencing: fenced } = settings;
    const { acquired, data, tick } = handed;
    const [uuid, sentAt, expires] = [session.uuid(), clock.atMost(), stamp(boundsOf(clock), ttlMs)];
    const write = { kind: "transfer", at, from, uuid, expires, ttlMs, owner, fenced, remembers };
    const taken = { uuid, expires, sentAt, acquired, data, tick, remembers };
    return { write, taken };
}
function remainingHold({ clock }, { heldUntil: expires, heldForMs: ms }) {
    if (expires === undefined || ms === undefined)
        return undefined;
    return holdUntil({ expires, ms }, clock.atLeast(), boundsOf(clock));
}
function refused([{ target, uuid }], rows) {
    const row = rows.find((one) => one !== undefined);
    if (isStillHeldBy(uuid, row)) {
        const remedy = "must be as it was on the mutex that handed the lock off: its row has no fencing token";
        return new LockConfigError("fencing", target.settings.fencing, remedy);
    }
    return lost(target.at, uuid, row === undefined ? "deleted" : "stolen");
}
const BECAUSE = {
    expired: "the time of its token is over",
    stolen: "its token was used before, or its time was over and another holder has it",
    deleted: "its token was used before, or its time was over, and it is free by now",
};
function lost({ name }, uuid, reason) {
    return new LockLostError(name, uuid, reason, { because: BECAUSE[reason] });
}
