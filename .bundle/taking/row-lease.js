import { LockLostError } from "../errors.js";
import { leaseEnd } from "../protocol/lease-time.js";
import { infoOf } from "../protocol/row.js";
import { rowsOf } from "../session/session.js";
export function rowLease({ clock }, { at, settings, permits }, taken) {
    const { ttlMs } = settings;
    const { expires, sentAt } = taken;
    const validUntil = leaseEnd({ expires, ttlMs, sentAt, bounds: clock.wall(), atMost: clock.atMost() });
    return {
        at,
        settings,
        permits,
        uuid: taken.uuid,
        takenAs: taken.uuid,
        maybeUuid: undefined,
        expires,
        firstStamp: expires,
        lastStamp: expires,
        validUntil,
        acquired: taken.acquired,
        data: taken.data,
        tick: taken.tick,
        attempt: taken.attempt,
        remembers: taken.remembers,
        fence: taken.fence,
        takeover: taken.takeover,
        namedHold: taken.namedHold,
        others: undefined,
    };
}
export function asOne([first, ...others]) {
    if (others.length === 0)
        return first;
    return { ...first, others, validUntil: Math.min(first.validUntil, ...others.map(({ validUntil }) => validUntil)) };
}
export function uuidsOf(lease) {
    return rowsOf(lease).flatMap(({ takenAs, uuid, maybeUuid }) => maybeUuid === undefined ? [takenAs, uuid] : [takenAs, uuid, maybeUuid]);
}
export function isHalfGone({ clock }, { settings, validUntil }) {
    const { ttlMs, safetyMarginMs } = settings;
    return validUntil - safetyMarginMs - clock.atMost() < (ttlMs - safetyMarginMs) / 2;
}
export function guardOf(lease) {
    const { at, uuid, firstStamp: after, fence } = lease;
    const isRenewed = rowsOf(lease).every(({ expires, firstStamp }) => expires > firstStamp);
    return isRenewed ? { kind: "check", at, uuid, after, fence } : undefined;
}
export function infoOfLease({ owner }, lease) {
    const { at, uuid, acquired, expires, data, tick, attempt, settings } = lease;
    const due = attempt === undefined ? undefined : tick;
    return infoOf({ ...at, uuid, owner, acquired, expires, ttlMs: settings.ttlMs, data, tick, due, attempt });
}
export function lossOf({ at, uuid }, reason, cause) {
    return new LockLostError(at.name, uuid, reason, cause === undefined ? undefined : { cause });
}
export function reasonOf({ owner }, { acquired }, row) {
    if (row === undefined)
        return "deleted";
    if (row.uuid !== undefined)
        return "stolen";
    return row.acquired === acquired && row.owner === owner ? "forced" : "stolen";
}
