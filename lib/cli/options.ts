import { InvalidArgumentError } from "commander";
import { Failure } from "./failure.js";
import type { TableArguments } from "./open-table.js";

const UNITS = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;

const DURATION = /^(\d+(\.\d+)?(ms|s|m|h|d))+$/;

/**
 * Milliseconds of `30s`, `1h30m`, `500ms` or `0`.
 * @throws what the parser of arguments makes one line of, for what is no duration, or is finer than 1 ms.
 */
export function duration(text: string): number {
  const parts = text.matchAll(/([\d.]+)([a-z]+)/g);
  const amounts = [...parts].map(([, amount, unit]) => Number(amount) * UNITS[unit as keyof typeof UNITS]);
  // As far as doubles can tell: 1.1 hours are 3960000.0000000005 ms.
  const ms = Number(amounts.reduce((sum, amount) => sum + amount, 0).toFixed(2));
  if ((DURATION.test(text) || text === "0") && Number.isSafeInteger(ms)) return ms;
  throw new InvalidArgumentError("Give a number and a unit of ms, s, m, h or d: 500ms, 30s, 1h30m.");
}

/** The same for people, in its two largest units: `2h5m`. Less than a second shows as such. */
export function showDuration(ms: number): string {
  if (ms < UNITS.s) return `${Math.max(0, Math.floor(ms))}ms`;
  const whole = (unit: number, of = Number.POSITIVE_INFINITY) => Math.floor((ms % of) / unit);
  const all = `${whole(UNITS.d)}d${whole(UNITS.h, UNITS.d)}h${whole(UNITS.m, UNITS.h)}m${whole(UNITS.s, UNITS.m)}s`;
  // From the first that is not 0, with the next one if that is not 0 either.
  return /[1-9]\d*[a-z](?:[1-9]\d*[a-z])?/.exec(all)?.[0] ?? all;
}

/** A date with a zone, or none at all: then it is midnight UTC, on every host the same. */
const DATE = /^(\d{4}-\d\d-\d\d)(T(\d\d):\d\d(:\d\d(\.\d{1,3})?)?(Z|[+-]\d\d:\d\d))?$/;

/** A tick for people: as a date if it can be one in epoch milliseconds, of 2001 to 2286. A smaller one is counted in something else. */
export const showTick = (tick: number): string =>
  tick >= 1e12 && tick < 1e13 ? new Date(tick).toISOString() : String(tick);

/** The tick that `--once` names: a whole number as it is, a date as its epoch milliseconds. @throws as {@link duration} does. */
export function tick(text: string): number {
  const [, day, , hour = ""] = DATE.exec(text) ?? [];
  const key = day === undefined ? Number(text) : Date.parse(text);
  // `Date` takes 30 February for 2 March, and 24:00 for the next day.
  const exists = hour !== "24" && Number.isFinite(key) && (day === undefined || new Date(day).toJSON().startsWith(day));
  if (day !== undefined && !exists)
    throw new InvalidArgumentError("This date does not exist: correct the day or the time.");
  if (exists && (day !== undefined || /^-?\d+$/.test(text)) && Number.isSafeInteger(key)) return key;
  throw new InvalidArgumentError(
    "Give a whole number or a date with its zone, such as 2026-05-04T10:00Z: ticks have an order. A text that is done once " +
      "can be a part of NAME.",
  );
}

/** The longest time that a timer of Node's can run. */
const LONGEST_TIMER_MS = 2_147_483_647;

/** A duration that a timer can run. */
export function timer(text: string): number {
  const ms = duration(text);
  if (ms <= LONGEST_TIMER_MS) return ms;
  throw new InvalidArgumentError(`Give at most ${showDuration(LONGEST_TIMER_MS)}, the longest that a timer can run.`);
}

export function wholeNumber(least: number, most: number, remedy = ""): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (/^\d+$/.test(text) && value >= least && value <= most) return value;
    throw new InvalidArgumentError(`Give a whole number from ${least} to ${most}. ${remedy}`.trimEnd());
  };
}

/** The options of `run` as they were given. Durations are milliseconds. */
export interface RunOptions extends TableArguments {
  /** How long to wait; false: not at all; true or undefined: as long as it takes. */
  readonly wait?: number | boolean;
  readonly ttl?: number;
  readonly fair?: boolean;
  readonly atLeast?: number;
  readonly once?: number;
  readonly every?: number;
  /** True, or how many runs of the tick may begin. */
  readonly untilSuccess?: true | number;
  readonly permits?: number;
  /** In what period so many may begin. */
  readonly per?: number;
  /** How many of them the command holds. */
  readonly take?: number;
  readonly busyCode?: number;
  readonly killAfter?: number;
}

/** What they come to. */
export interface RunPlan {
  /** Undefined: the lock is tried once. */
  readonly waitMs: number | undefined;
  readonly ttlMs: number;
  readonly safetyMarginMs: number;
  readonly killAfterMs: number;
}

/** @throws {@link Failure} for options that do not go together. */
export function planRun(options: RunOptions): RunPlan {
  const {
    wait,
    once,
    every,
    permits,
    per = 0,
    take = 1,
    ttl: ttlMs = Math.max(30_000, Math.ceil(1.2 * per)),
  } = options;
  const tick = every !== undefined ? "--every" : once !== undefined ? "--once" : undefined;
  if (every !== undefined && once !== undefined) {
    throw new Failure("--every and --once both say what a tick is: leave one of them out");
  }
  if (tick !== undefined && typeof wait === "number" && wait > 0) {
    throw new Failure(
      `${tick} does not wait, because a tick that another host has is not granted again: leave --wait out`,
    );
  }
  if (tick !== undefined && permits !== undefined) {
    throw new Failure(`${tick} is for one run at a time: leave --permits out, or give --per in its place`);
  }
  if (options.take !== undefined && (permits === undefined || take > permits)) {
    throw new Failure(
      `--take ${take} is out of so many permits: give --permits ${take} or more as well, the same on every host`,
    );
  }
  if (options.per !== undefined && permits === undefined) {
    throw new Failure(
      "--per is the period in which so many may begin: give --permits as well, both the same on every host",
    );
  }
  if (options.untilSuccess !== undefined && tick === undefined) {
    throw new Failure("--until-success says when a tick is used up: give --every or --once as well");
  }
  const safetyMarginMs = Math.ceil(ttlMs / 10);
  const { killAfter: killAfterMs = Math.floor((safetyMarginMs * 2) / 3) } = options;
  if (killAfterMs >= safetyMarginMs) {
    const [asked, margin, least] = [killAfterMs, safetyMarginMs, (killAfterMs + 1) * 10].map(showDuration);
    throw new Failure(
      `--kill-after ${asked} must be less than the safety margin of ${margin}, a tenth of --ttl: the command has to be gone ` +
        `before another host may get the lock. Make it shorter, or give a --ttl of more than ${least}`,
    );
  }
  const isTried = tick !== undefined || wait === false || wait === 0;
  const waitMs = typeof wait === "number" ? wait : Number.POSITIVE_INFINITY;
  return { waitMs: isTried ? undefined : waitMs, ttlMs, safetyMarginMs, killAfterMs };
}
