import { publish } from "../diagnostics.js";
import { LockStoreError } from "../errors.js";
import { leaseEnd, stamp } from "../protocol/lease-time.js";
import { isStillHeldBy, wasApplied } from "../protocol/was-applied.js";
import { Copies, firstTimeoutMs, persist } from "../session/requests.js";
import { isTransient } from "../session/retry.js";
import { rowsOf } from "../session/session.js";
import { boundsOf } from "../time/clock.js";
import { asOne, lossOf, reasonOf } from "./row-lease.js";
export async function renew(session, lease, trying, data) {
    if (lease.others !== undefined)
        return await writeEach(lease, (one) => renew(session, one, trying, data));
    const { at, uuid, remembers } = lease;
    const retried = data === undefined ? { ...trying, worthRetrying: () => true } : trying;
    const make = (expires) => ({ kind: "renew", at, uuid, expires, data, remembers });
    const written = await writeStamp(session, lease, retried, make);
    return written.kind === "ok" && data !== undefined ? { kind: "ok", lease: { ...written.lease, data } } : written;
}
export async function reissue(session, lease, trying) {
    if (lease.others !== undefined)
        return await writeEach(lease, (one) => reissue(session, one, trying));
    const { at, uuid: from, remembers } = lease;
    const [uuid, fenced] = [session.uuid(), lease.settings.fencing];
    const make = (expires) => ({ kind: "reissue", at, from, uuid, expires, fenced, remembers });
    const written = await writeStamp(session, lease, trying, make);
    return underUuid(uuid, written, fenced ? written.drawn : lease.fence);
}
export async function transfer(session, lease, trying, handed) {
    if (lease.others !== undefined)
        return await writeEach(lease, (one) => transfer(session, one, trying, handed));
    const handOff = handed.handOffOf(lease.at);
    const { ttlMs } = handed;
    const { at, uuid: from, firstStamp: after, remembers } = lease;
    const { uuid } = handOff;
    const change = { kind: "transfer", at, from, after, uuid, ttlMs, owner: session.owner, fenced: false };
    const make = (expires) => ({ ...change, handOff, expires, remembers });
    const written = await writeStamp(session, lease, trying, make, ttlMs);
    return underUuid(uuid, written, lease.fence);
}
export async function vacate(session, lease, releasing = {}) {
    if (lease.others !== undefined)
        return await writeEach(lease, (one) => vacate(session, one, releasing));
    const { at, uuid, maybeUuid, remembers, attempt: ran } = lease;
    const attempt = ran === undefined || releasing.hasBegun ? undefined : ran - 1;
    const leaves = unlikeNamed(lease, releasing.leaves ?? { kind: "free" });
    const { until = attemptEnd(session, lease) } = releasing;
    const write = { kind: "vacate", at, uuid, leaves, remembers, attempt };
    const answer = await sendRelease(session, lease, write, until);
    const isCertain = maybeUuid === undefined || (answer.applied === "no" && !isStillHeldBy(maybeUuid, answer.row));
    if (isCertain)
        return released(session, lease, answer);
    const other = await sendRelease(session, lease, { ...write, uuid: maybeUuid }, until);
    return other.applied === "no" ? { kind: "ok", lease } : released(session, lease, other);
}
export async function record(session, lease, { tick, attempt }, until) {
    const write = { kind: "record", at: lease.at, uuid: lease.uuid, tick, attempt };
    const answer = await send(session, lease, { ...AS_RELEASE, until }, () => write);
    switch (answer.applied) {
        case "yes":
            return { kind: "ok" };
        case "no":
            return { kind: "lost", why: reasonOf(session, lease, answer.row) };
        case "maybe":
            return { kind: "unknown", cause: lossOf(lease, reasonOf(session, lease, answer.row)) };
        case "unanswered":
            return { kind: "unknown", cause: answer.cause };
        default:
            return answer;
    }
}
async function writeEach(lease, write) {
    const [first, ...others] = rowsOf(lease);
    const [head, ...rest] = await Promise.all([write({ ...first, others: undefined }), ...others.map(write)]);
    const all = [head, ...rest];
    const worst = all.find(({ kind }) => kind === "lost") ?? all.find(({ kind }) => kind === "unknown") ?? head;
    return { ...worst, lease: asOne([head.lease, ...rest.map(({ lease: one }) => one)]) };
}
async function send(session, { settings: { ttlMs } }, persistence, make) {
    const copies = new Copies();
    let made;
    let outcome;
    try {
        outcome = await persist(session, { ...persistence, firstTimeoutMs: firstTimeoutMs(ttlMs) }, (signal) => {
            made ??= make();
            return copies.count(session.store.write(made, signal));
        });
    }
    catch (cause) {
        return { applied: "unanswered", cause };
    }
    if (outcome.kind === "applied") {
        if (outcome.replaced?.wanted !== undefined)
            session.contended().sees(outcome.replaced);
        return { applied: "yes", row: undefined, drawn: outcome.drawn };
    }
    const { row, retried } = outcome;
    const applied = wasApplied(made, row, { earlierCopyUnanswered: retried || copies.sent > 1 });
    return { applied, row, drawn: row?.fence };
}
async function writeStamp(session, lease, trying, make, ownMs) {
    const { agenda, clock } = session;
    const { at, settings: { ttlMs }, } = lease;
    let [sentAt, lastStamp] = [0, lease.lastStamp];
    const answer = await send(session, lease, { ...trying, kind: "renewal", sleep: agenda.sleep }, () => {
        lastStamp = ownMs === undefined ? stamp(boundsOf(clock), ttlMs, lastStamp) : stamp(boundsOf(clock), ownMs);
        sentAt = clock.atMost();
        return make(lastStamp);
    });
    const sent = { ...lease, lastStamp };
    switch (answer.applied) {
        case "yes": {
            const stamped = { expires: lastStamp, ttlMs, sentAt, bounds: clock.wall(), atMost: clock.atMost() };
            const validUntil = Math.max(lease.validUntil, leaseEnd(stamped));
            return { kind: "ok", lease: { ...sent, expires: lastStamp, validUntil }, drawn: answer.drawn };
        }
        case "no": {
            if (!isStillHeldBy(lease.uuid, answer.row))
                return { kind: "lost", why: reasonOf(session, lease, answer.row), lease: sent };
            const cause = new LockStoreError(`The row of ${at.name} carries a stamp that its holder never sent`);
            return { kind: "unknown", cause, lease: sent };
        }
        case "maybe": {
            const message = `Lock ${JSON.stringify(at.name)} may have been handed off: its row has another holder by now, or is gone`;
            return { kind: "unknown", cause: new LockStoreError(message), lease: sent };
        }
        case "unanswered":
            return { kind: "unknown", cause: answer.cause, lease: sent };
        default:
            return answer;
    }
}
function underUuid(uuid, written, fence) {
    const { lease } = written;
    switch (written.kind) {
        case "ok":
            return { kind: "ok", lease: { ...lease, uuid, firstStamp: lease.expires, fence } };
        case "unknown":
            return { ...written, lease: { ...lease, maybeUuid: uuid } };
        case "lost":
            return written;
        default:
            return written;
    }
}
const AS_RELEASE = { kind: "release", worthRetrying: () => true };
async function sendRelease(session, lease, write, until) {
    const answer = await send(session, lease, { ...AS_RELEASE, until }, () => write);
    if (answer.applied !== "unanswered")
        return answer;
    const { cause } = answer;
    const { name } = write.at;
    publish("dynamutex:release-failed", { name, uuid: write.uuid, cause });
    if (!isTransient(cause))
        process.emitWarning(`${JSON.stringify(name)} was not released: ${cause}`, "DynamutexWarning");
    return answer;
}
function released(session, lease, answer) {
    if (answer.applied === "unanswered")
        return { kind: "unknown", cause: answer.cause, lease };
    if (answer.applied === "no")
        return { kind: "lost", why: reasonOf(session, lease, answer.row), lease };
    return { kind: "ok", lease };
}
function unlikeNamed({ namedHold }, leaves) {
    if (leaves.kind !== "held" || leaves.expires !== namedHold)
        return leaves;
    return { ...leaves, expires: leaves.expires + 1 };
}
function attemptEnd({ clock }, { settings }) {
    const end = clock.atMost() + firstTimeoutMs(settings.ttlMs);
    return () => end;
}
