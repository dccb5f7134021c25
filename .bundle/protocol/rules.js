import { all, any, equal, greater, isNumber, isString, less, missing, NO_ITEM } from "./conditions.js";
import { HAS_EXPIRED, IS_SEEN_LEASE, IS_UNCHANGED_HOLD, IS_UNCHANGED_LEASE } from "./may-take.js";
import { FORMAT, IS_COUNTED, IS_OURS } from "./row.js";
const PURGE_AFTER_MS = 7 * 24 * 60 * 60 * 1_000;
const IS_OUR_FORMAT = equal("format", FORMAT);
const REMEMBERS_NOTHING = all(missing("fence"), missing("tick"), missing("result"));
const REMEMBERS_NO_TICK = missing("tick");
const IS_LATER_TICK = any(missing("tick"), less("tick", { value: "tick" }));
const IS_SAME_RESULT = equal("result.id", { value: "resultId" });
const HAS_NO_RESULT = missing("result.id");
const IS_DUE = all(equal("tick", { value: "tick" }), equal("due", { value: "tick" }), equal("attempt", { value: "seenAttempt" }));
const takesOver = (isOver) => {
    const where = (...more) => any(NO_ITEM, all(IS_OURS, ...more, isOver));
    return {
        fenceSameResult: where(REMEMBERS_NO_TICK, IS_SAME_RESULT),
        fenceNoResult: where(REMEMBERS_NO_TICK, HAS_NO_RESULT),
        tickSameResult: where(IS_SAME_RESULT),
        tickNoResult: where(HAS_NO_RESULT),
        nothing: where(REMEMBERS_NOTHING),
        fence: where(REMEMBERS_NO_TICK),
        tick: where(),
        newTick: where(IS_LATER_TICK),
        dueTick: where(IS_DUE),
        sameAttempt: any(NO_ITEM, all(IS_OURS, IS_DUE, IS_SEEN_LEASE)),
    };
};
const TAKES_EXPIRED = takesOver(HAS_EXPIRED);
const TAKES_UNCHANGED_LEASE = takesOver(IS_UNCHANGED_LEASE);
const TAKES_UNCHANGED_HOLD = takesOver(IS_UNCHANGED_HOLD);
const IS_MINE = all(equal("uuid", { value: "uuid" }), IS_OUR_FORMAT);
const IS_MINE_AND_EARLIER = all(IS_MINE, less("expires", { value: "expires" }));
const IS_MINE_EARLIER_AND_FENCED = all(IS_MINE_AND_EARLIER, isNumber("fence"));
const IS_MINE_TO_DELETE = all(IS_MINE, REMEMBERS_NOTHING);
const IS_LEASE_AS_SEEN = all(IS_OURS, IS_SEEN_LEASE, REMEMBERS_NOTHING);
const IS_HOLD_AS_SEEN = all(IS_OURS, missing("uuid"), equal("expires", { value: "seenExpires" }), REMEMBERS_NOTHING);
const IS_NOT_FOREIGN = any(NO_ITEM, IS_OURS);
const IS_SOMEBODYS = all(IS_OURS, isString("uuid"));
const IS_COUNTER = any(NO_ITEM, all(IS_OUR_FORMAT, IS_COUNTED));
const IS_STILL_HELD = all(IS_MINE, greater("expires", { value: "after" }));
const IS_STILL_HELD_AND_FENCED = all(IS_STILL_HELD, isNumber("fence"));
const IS_MINE_AND_FENCED = all(IS_MINE, isNumber("fence"));
const IS_STILL_HELD_WITH_TOKEN = all(IS_STILL_HELD, equal("fence", { value: "fence" }));
export function memoryOf(row) {
    if (row?.tick !== undefined)
        return "tick";
    return row?.fence === undefined && row?.result === undefined ? "nothing" : "fence";
}
export function memoryAfter({ remembers, fenceSeed, tick, after }) {
    if (remembers === "tick" || tick !== undefined)
        return "tick";
    return fenceSeed === undefined && after === undefined ? remembers : "fence";
}
export function askedBy(write) {
    switch (write.kind) {
        case "take":
            return askedByTake(write);
        case "renew":
            return { condition: IS_MINE_AND_EARLIER, values: { uuid: write.uuid, expires: write.expires } };
        case "reissue":
        case "transfer":
            return askedByTransfer(write);
        case "vacate":
            return { condition: isDelete(write) ? IS_MINE_TO_DELETE : IS_MINE, values: { uuid: write.uuid } };
        case "record":
            return { condition: IS_MINE, values: { uuid: write.uuid } };
        case "remove": {
            const { seenUuid, seenExpires } = write;
            const condition = seenUuid === undefined ? IS_HOLD_AS_SEEN : IS_LEASE_AS_SEEN;
            return { condition, values: { seenUuid, seenExpires } };
        }
        case "put-result":
            return { condition: IS_NOT_FOREIGN, values: {} };
        case "want":
            return { condition: IS_SOMEBODYS, values: {} };
        case "draw":
            return { condition: IS_COUNTER, values: {} };
        case "check": {
            const { uuid, after, fence } = write;
            if (fence === undefined)
                return { condition: IS_STILL_HELD, values: { uuid, after } };
            return { condition: IS_STILL_HELD_WITH_TOKEN, values: { uuid, after, fence } };
        }
        default:
            return write;
    }
}
function askedByTake(write) {
    const { tick, seenAttempt, after } = write;
    const { earliest, unchanged } = write.knowledge;
    let takes = TAKES_EXPIRED;
    if (unchanged !== undefined)
        takes = unchanged.uuid === undefined ? TAKES_UNCHANGED_HOLD : TAKES_UNCHANGED_LEASE;
    const seen = { seenUuid: unchanged?.uuid, seenExpires: unchanged?.expires };
    return {
        condition: takes[respectedBy(write)],
        values: { earliest, ...seen, tick, seenAttempt, resultId: after?.id },
    };
}
function respectedBy(write) {
    const { tick, attempt, seenAttempt, after, knowledge } = write;
    if (tick !== undefined && seenAttempt === undefined)
        return "newTick";
    if (tick !== undefined)
        return attempt === seenAttempt && knowledge.unchanged?.uuid ? "sameAttempt" : "dueTick";
    const memory = memoryAfter(write);
    if (after === undefined || memory === "nothing")
        return memory;
    return `${memory}${after.id === undefined ? "NoResult" : "SameResult"}`;
}
function askedByTransfer({ kind, from: uuid, after, expires, fenced }) {
    if (kind === "reissue")
        return { condition: fenced ? IS_MINE_EARLIER_AND_FENCED : IS_MINE_AND_EARLIER, values: { uuid, expires } };
    if (after === undefined)
        return { condition: fenced ? IS_MINE_AND_FENCED : IS_MINE, values: { uuid } };
    return { condition: fenced ? IS_STILL_HELD_AND_FENCED : IS_STILL_HELD, values: { uuid, after } };
}
export function leftBy(write) {
    switch (write.kind) {
        case "take":
            return takes(write);
        case "renew": {
            const { expires, data, remembers } = write;
            return update({ expires, data }, [], remembers);
        }
        case "reissue":
        case "transfer": {
            const { uuid, expires, ttlMs, owner, fenced, remembers, handOff } = write;
            const count = fenced ? { attribute: "fence" } : undefined;
            return { ...update({ uuid, expires, ttlMs, owner, handOff }, [], remembers), count };
        }
        case "vacate":
            return vacates(write);
        case "record":
            return { kind: "update", set: {}, remove: ["due"] };
        case "remove":
            return { kind: "delete" };
        case "put-result":
            return putsResult(write);
        case "want":
            return { kind: "update", set: { wanted: write.until }, remove: [] };
        case "draw": {
            const set = { format: FORMAT, purge: purgeAt(write.seed) };
            return { kind: "update", set, remove: [], count: { attribute: "n", seed: write.seed } };
        }
        case "check":
            return { kind: "nothing" };
        default:
            return write;
    }
}
export function drawnBy(write, before) {
    const count = countOf(write);
    const drawn = count && next(before?.[count.attribute], count.seed);
    return typeof drawn === "bigint" && drawn > 0n ? drawn : undefined;
}
export function countOf(write) {
    const effect = leftBy(write);
    return effect.kind === "update" ? effect.count : undefined;
}
function takes(write) {
    const { uuid, expires, ttlMs, owner, acquired, data, wanted, fenceSeed, tick, attempt, permits } = write;
    const respects = memoryAfter(write);
    const row = { format: FORMAT, uuid, expires, ttlMs, owner, acquired, data, wanted, permits };
    if (respects === "nothing")
        return { kind: "put", attributes: { ...row, purge: purgeAt(expires) } };
    const due = attempt === undefined ? undefined : tick;
    const cleared = tick === undefined ? { wanted, data } : { wanted, data, due, attempt };
    const remove = Object.entries(cleared).flatMap(([name, value]) => (value === undefined ? [name] : []));
    const count = fenceSeed === undefined ? undefined : { attribute: "fence", seed: fenceSeed };
    const ran = tick === undefined ? undefined : { tick, ...(attempt !== undefined && { attempt }), owner, at: acquired };
    return { ...update({ ...row, tick, due, attempt, ran }, remove, respects), count };
}
function vacates(write) {
    const { leaves, remembers, attempt } = write;
    if (isDelete(write))
        return { kind: "delete" };
    switch (leaves.kind) {
        case "free":
        case "kept": {
            if (leaves.result === undefined)
                return { kind: "update", set: { expires: 0, attempt }, remove: ["uuid", "wanted"] };
            const { id, made, freshUntil } = leaves.result;
            return update({ expires: 0, result: { id, made } }, ["uuid", "wanted"], remembers, freshUntil);
        }
        case "held":
            return update({ expires: leaves.expires, ttlMs: leaves.ttlMs, attempt }, ["uuid", "wanted"], remembers);
        case "untilExpires":
            return { kind: "update", set: { attempt }, remove: ["uuid"] };
        default:
            return leaves;
    }
}
const isDelete = ({ leaves, remembers }) => leaves.kind === "free" && leaves.result === undefined && remembers === "nothing";
function putsResult({ result, owner, data }) {
    const { id: uuid, made, freshUntil: expires } = result;
    const row = { format: FORMAT, uuid, expires, ttlMs: expires - made, owner, acquired: made, data };
    return { kind: "put", attributes: { ...row, purge: purgeAt(expires) } };
}
function update(set, remove, respects, neededUntil = set.expires) {
    if (respects === "tick")
        return { kind: "update", set, remove: [...remove, "purge"] };
    return { kind: "update", set: { ...set, purge: purgeAt(neededUntil) }, remove };
}
export function next(last, seed) {
    const from = last ?? seed;
    if (typeof from === "bigint" || Number.isSafeInteger(from))
        return BigInt(from) + 1n;
    return typeof from === "number" ? from + 1 : undefined;
}
export function purgeAt(expires) {
    return Math.ceil((expires + PURGE_AFTER_MS) / 1_000);
}
