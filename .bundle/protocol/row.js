import { kindOf } from "./addresses.js";
import { all, any, equal, holds, isMap, isString, missing, within, } from "./conditions.js";
import { flightResultIn } from "./flight-result.js";
import { handOffIn } from "./hand-off.js";
import { ranIn } from "./last-run.js";
export const FORMAT = 1;
const STRING = { asks: isString, text: "a string" };
const MAP = { asks: isMap, text: "a map" };
const numberIn = (range) => ({
    asks: (attribute) => within(attribute, range),
    text: `a number from ${range.least} to ${range.most}`,
});
const MOMENT = numberIn({ name: "moment", least: 0, most: 8.64e15 });
const TICK = numberIn({ name: "tick", least: Number.MIN_SAFE_INTEGER, most: Number.MAX_SAFE_INTEGER });
const COUNTED = { name: "counted", least: 0, most: 10n ** 38n - 2n };
const NEEDED = {
    format: { asks: (attribute) => equal(attribute, FORMAT), text: `${FORMAT}` },
    owner: STRING,
    expires: MOMENT,
    ttlMs: MOMENT,
    acquired: MOMENT,
};
const POSSIBLE = {
    uuid: STRING,
    data: MAP,
    wanted: MOMENT,
    tick: TICK,
    permits: MOMENT,
    fence: numberIn(COUNTED),
    "result.id": STRING,
};
const ATTRIBUTES = Object.entries({ ...NEEDED, ...POSSIBLE }).map(([name, { asks, text }]) => ({
    condition: name in NEEDED ? asks(name) : any(missing(name), asks(name)),
    problem: `its ${name} must be ${text}`,
}));
export const IS_OURS = all(...ATTRIBUTES.map(({ condition }) => condition));
export const IS_COUNTED = within("n", COUNTED);
export function parseRow({ name, sort }, attributes) {
    const wrong = ATTRIBUTES.find(({ condition }) => !holds(condition, attributes));
    if (wrong !== undefined) {
        const has = (attribute) => attribute !== "format" && attributes[attribute] !== undefined;
        return { problem: wrong.problem, isDamaged: attributes.format === FORMAT && Object.keys(NEEDED).some(has) };
    }
    const ours = attributes;
    const { fence } = ours;
    if (typeof fence === "number" && !Number.isInteger(fence)) {
        return { problem: "its fence must be a whole number", isDamaged: true };
    }
    const numberOf = (value) => (value === undefined ? undefined : Number(value));
    const row = {
        name,
        sort,
        uuid: ours.uuid,
        owner: ours.owner,
        data: ours.data,
        expires: Number(ours.expires),
        ttlMs: Number(ours.ttlMs),
        acquired: Number(ours.acquired),
        wanted: numberOf(ours.wanted),
        fence: fence === undefined ? undefined : BigInt(fence),
        tick: numberOf(ours.tick),
        due: wholeIn(ours.due),
        attempt: wholeIn(ours.attempt),
        ran: ranIn(ours.ran),
        permits: numberOf(ours.permits),
        handOff: handOffIn(ours.handOff),
        result: flightResultIn(ours.result),
    };
    return { row };
}
const wholeIn = (value) => (Number.isSafeInteger(value) ? Number(value) : undefined);
const KINDS = {
    lock: "mutex",
    place: "mutex",
    permit: "semaphore",
    writer: "exclusive",
    reader: "shared",
    result: "mutex",
};
export function infoOf(row) {
    const kind = KINDS[kindOf(row.sort) ?? "lock"];
    const { name, uuid, owner, ttlMs, data, tick } = row;
    const [acquired, expires] = [new Date(row.acquired), new Date(row.expires)];
    const handedOff = uuid !== undefined && row.handOff?.uuid === uuid;
    const attempts = tick === undefined ? undefined : row.attempt;
    const succeeded = attempts === undefined ? undefined : row.due !== tick;
    const { ran } = row;
    const counts = tick !== undefined && ran?.tick === tick && ran.attempt === attempts;
    const lastRun = counts ? { lastRun: { owner: ran.owner, began: new Date(ran.at) } } : undefined;
    return { name, kind, uuid, handedOff, owner, acquired, expires, ttlMs, data, tick, attempts, succeeded, ...lastRun };
}
