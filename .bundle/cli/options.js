import { InvalidArgumentError } from "commander";
import { Failure } from "./failure.js";
const UNITS = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };
const DURATION = /^(\d+(\.\d+)?(ms|s|m|h|d))+$/;
export function duration(text) {
    const parts = text.matchAll(/([\d.]+)([a-z]+)/g);
    const amounts = [...parts].map(([, amount, unit]) => Number(amount) * UNITS[unit]);
    const ms = Number(amounts.reduce((sum, amount) => sum + amount, 0).toFixed(2));
    if ((DURATION.test(text) || text === "0") && Number.isSafeInteger(ms))
        return ms;
    throw new InvalidArgumentError("Give a number and a unit of ms, s, m, h or d: 500ms, 30s, 1h30m.");
}
export function showDuration(ms) {
    if (ms < UNITS.s)
        return `${Math.max(0, Math.floor(ms))}ms`;
    const whole = (unit, of = Number.POSITIVE_INFINITY) => Math.floor((ms % of) / unit);
    const all = `${whole(UNITS.d)}d${whole(UNITS.h, UNITS.d)}h${whole(UNITS.m, UNITS.h)}m${whole(UNITS.s, UNITS.m)}s`;
    return /[1-9]\d*[a-z](?:[1-9]\d*[a-z])?/.exec(all)?.[0] ?? all;
}
const DATE = /^(\d{4}-\d\d-\d\d)(T(\d\d):\d\d(:\d\d(\.\d{1,3})?)?(Z|[+-]\d\d:\d\d))?$/;
export const showTick = (tick) => tick >= 1e12 && tick < 1e13 ? new Date(tick).toISOString() : String(tick);
export function tick(text) {
    const [, day, , hour = ""] = DATE.exec(text) ?? [];
    const key = day === undefined ? Number(text) : Date.parse(text);
    const exists = hour !== "24" && Number.isFinite(key) && (day === undefined || new Date(day).toJSON().startsWith(day));
    if (day !== undefined && !exists)
        throw new InvalidArgumentError("This date does not exist: correct the day or the time.");
    if (exists && (day !== undefined || /^-?\d+$/.test(text)) && Number.isSafeInteger(key))
        return key;
    throw new InvalidArgumentError("Give a whole number or a date with its zone, such as 2026-05-04T10:00Z: ticks have an order. A text that is done once " +
        "can be a part of NAME.");
}
const LONGEST_TIMER_MS = 2_147_483_647;
export function timer(text) {
    const ms = duration(text);
    if (ms <= LONGEST_TIMER_MS)
        return ms;
    throw new InvalidArgumentError(`Give at most ${showDuration(LONGEST_TIMER_MS)}, the longest that a timer can run.`);
}
export function wholeNumber(least, most, remedy = "") {
    return (text) => {
        const value = Number(text);
        if (/^\d+$/.test(text) && value >= least && value <= most)
            return value;
        throw new InvalidArgumentError(`Give a whole number from ${least} to ${most}. ${remedy}`.trimEnd());
    };
}
export function planRun(options) {
    const { wait, once, every, permits, take = 1, ttl: ttlMs = 30_000 } = options;
    const tick = every !== undefined ? "--every" : once !== undefined ? "--once" : undefined;
    if (every !== undefined && once !== undefined) {
        throw new Failure("--every and --once both say what a tick is: leave one of them out");
    }
    if (tick !== undefined && typeof wait === "number" && wait > 0) {
        throw new Failure(`${tick} does not wait, because a tick that another host has is not granted again: leave --wait out`);
    }
    if (tick !== undefined && permits !== undefined) {
        throw new Failure(`${tick} is for one run at a time: leave --permits out, or use --at-least with it`);
    }
    if (options.take !== undefined && (permits === undefined || take > permits)) {
        throw new Failure(`--take ${take} is out of so many permits: give --permits ${take} or more as well, the same on every host`);
    }
    if (options.untilSuccess !== undefined && tick === undefined) {
        throw new Failure("--until-success says when a tick is used up: give --every or --once as well");
    }
    const safetyMarginMs = Math.ceil(ttlMs / 10);
    const { killAfter: killAfterMs = Math.floor((safetyMarginMs * 2) / 3) } = options;
    if (killAfterMs >= safetyMarginMs) {
        const [asked, margin, least] = [killAfterMs, safetyMarginMs, (killAfterMs + 1) * 10].map(showDuration);
        throw new Failure(`--kill-after ${asked} must be less than the safety margin of ${margin}, a tenth of --ttl: the command has to be gone ` +
            `before another host may get the lock. Make it shorter, or give a --ttl of more than ${least}`);
    }
    const isTried = tick !== undefined || wait === false || wait === 0;
    const waitMs = typeof wait === "number" ? wait : Number.POSITIVE_INFINITY;
    return { waitMs: isTried ? undefined : waitMs, ttlMs, safetyMarginMs, killAfterMs };
}
