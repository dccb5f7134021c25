import { publish } from "../diagnostics.js";
import { contradict, cover, hostTime, intersect, jumped, longest, shortest, skewsOf, stopwatches, timers, } from "./clock.js";
export function tableClock(options = {}) {
    return tableClockOn({ time: hostTime, ...timers }, options);
}
const CURRENT_WIDTH_MS = 2_000;
const CURRENT_AGE_MS = 60_000;
export function tableClockOn(host, options = {}) {
    const { fallbackSkewMs, regionSkewMs } = skewsOf(options, { fallbackSkewMs: 1_000, regionSkewMs: 0 });
    const { time, sleep, alarm, stay } = host;
    const { atLeast, atMost, read } = stopwatches(time);
    const known = new Candidates();
    let heardAt;
    let askedAt = Number.NEGATIVE_INFINITY;
    let fallenBack = false;
    function learn(date, sent) {
        const now = read();
        const before = known.bounds(now);
        const verdict = known.hear(fromReply(date, sent, now), sent);
        const isAlone = heardAt === undefined || (verdict === "agreed" && jumped(heardAt, now));
        askedAt = isAlone ? sent.atMost : Math.max(askedAt, sent.atMost);
        heardAt = now;
        fallenBack = false;
        if (verdict === "agreed" || before === undefined)
            return;
        if (verdict === "replaced") {
            const detail = `For a minute all replies have agreed with a Date of ${iso(date)}: taking the table's word`;
            publish("dynamutex:clock", { event: "restarted", detail });
        }
        else {
            const expected = `from ${iso(before.earliest)} to ${iso(before.latest)}`;
            const detail = `Expected a Date ${expected}, got ${iso(date)}: allowing for both until replies agree for a minute`;
            publish("dynamutex:clock", { event: "contradicted", detail });
        }
    }
    function fallBack(header) {
        if (isCurrent())
            return;
        fallenBack = true;
        const got = header === undefined ? "No Date header" : `A Date header of ${JSON.stringify(header)}`;
        const detail = `${got}: trusting the host's clock, give or take ${fallbackSkewMs} ms`;
        publish("dynamutex:clock", { event: "no-date", detail });
    }
    function isCurrent() {
        if (fallenBack)
            return true;
        const now = read();
        if (now.atMost - askedAt < CURRENT_AGE_MS)
            return true;
        const bounds = known.bounds(now);
        return bounds !== undefined && bounds.latest - bounds.earliest <= CURRENT_WIDTH_MS;
    }
    function wall() {
        const bounds = ownRegion();
        return bounds && { earliest: bounds.earliest - regionSkewMs, latest: bounds.latest + regionSkewMs };
    }
    function ownRegion() {
        const bounds = known.bounds(read());
        if (!fallenBack)
            return bounds;
        const now = time.wall();
        const own = { earliest: now - fallbackSkewMs, latest: now + fallbackSkewMs };
        if (bounds === undefined)
            return own;
        return contradict(bounds, own) ? cover(bounds, own) : intersect(bounds, own);
    }
    return {
        regionSkewMs,
        atLeast,
        atMost,
        sleep,
        alarm,
        ...(stay && { stay }),
        isCurrent,
        wall,
        listen() {
            const sent = read();
            return (header) => {
                const date = parseDateHeader(header);
                if (date === undefined)
                    fallBack(header);
                else
                    learn(date, sent);
            };
        },
    };
}
const DATE_HEADER = /^(Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/;
export function parseDateHeader(header) {
    if (header === undefined || !DATE_HEADER.test(header))
        return undefined;
    const date = Date.parse(header);
    return Number.isFinite(date) ? date : undefined;
}
const iso = (time) => new Date(Math.round(time)).toISOString();
const DATE_STEP_MS = 1_000;
export function fromReply(date, sent, now) {
    return { earliest: date, latest: date + DATE_STEP_MS + longest(sent, now), at: now };
}
export function age(time, now) {
    return { earliest: time.earliest + shortest(time.at, now), latest: time.latest + longest(time.at, now), at: now };
}
const CONFIRM_MS = 60_000;
export class Candidates {
    #all = [];
    bounds(now) {
        const [first, ...others] = this.#all;
        if (first === undefined)
            return undefined;
        const { earliest, latest } = others.reduce((sum, { time }) => cover(sum, age(time, now)), age(first.time, now));
        return { earliest, latest };
    }
    hear(reply, sent) {
        const now = reply.at;
        const aged = this.#all.map((candidate) => ({ ...candidate, time: age(candidate.time, now), from: candidate.time }));
        const agreeing = new Set(aged.filter(({ time }) => !contradict(time, reply)));
        const heard = aged.map((candidate) => {
            const { time, from, isConfirmed } = candidate;
            if (!agreeing.has(candidate))
                return { time, agreedSince: undefined, isConfirmed };
            const agreedSince = candidate.agreedSince ?? now.atLeast;
            const isEvidence = aged.length === 1 || agreeing.size < aged.length;
            return {
                time: narrowed(time, reply, from.at),
                agreedSince,
                isConfirmed: isConfirmed || (isEvidence && sent.atLeast - agreedSince >= CONFIRM_MS),
            };
        });
        if (agreeing.size === 0) {
            this.#all = withOneMore(heard, { time: reply, agreedSince: now.atLeast, isConfirmed: false });
            return heard.length === 0 ? "agreed" : "contradicted";
        }
        const winner = heard.find((candidate, index) => {
            return candidate.isConfirmed && agreeing.has(aged[index]);
        });
        const isDecided = winner !== undefined && agreeing.size < aged.length;
        this.#all = isDecided ? [winner] : heard;
        return isDecided && winner !== heard[0] ? "replaced" : "agreed";
    }
}
function narrowed(time, reply, from) {
    if (!jumped(from, reply.at))
        return intersect(time, reply);
    return { ...reply, earliest: Math.max(time.earliest, reply.earliest) };
}
function withOneMore([known, other], more) {
    if (known === undefined)
        return [more];
    return [known, other === undefined ? more : { ...more, time: cover(more.time, other.time) }];
}
