import { showDuration } from "./durations.js";
import { Failure } from "./failure.js";
import type { TableArguments } from "./open-table.js";

/** The options of `run` as they were given. Durations are milliseconds. */
export interface RunOptions extends TableArguments {
  /** How long to wait; false: not at all; true or undefined: as long as it takes. */
  readonly wait?: number | boolean;
  readonly ttl?: number;
  readonly fair?: boolean;
  readonly atLeast?: number;
  readonly once?: number;
  readonly every?: number;
  readonly permits?: number;
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

const DEFAULT_TTL_MS = 30_000;

/** @throws {@link Failure} for options that do not go together. */
export function planRun(options: RunOptions): RunPlan {
  const { wait, once, every, permits, ttl: ttlMs = DEFAULT_TTL_MS } = options;
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
    throw new Failure(`${tick} is for one run at a time: leave --permits out, or use --at-least with it`);
  }
  const safetyMarginMs = Math.ceil(ttlMs / 10);
  const { killAfter: killAfterMs = Math.floor((safetyMarginMs * 2) / 3) } = options;
  if (killAfterMs >= safetyMarginMs) throw tooLong(killAfterMs, safetyMarginMs);
  const isTried = tick !== undefined || wait === false || wait === 0;
  const waitMs = typeof wait === "number" ? wait : Number.POSITIVE_INFINITY;
  return { waitMs: isTried ? undefined : waitMs, ttlMs, safetyMarginMs, killAfterMs };
}

function tooLong(killAfterMs: number, safetyMarginMs: number): Failure {
  const [asked, margin, ttl] = [killAfterMs, safetyMarginMs, (killAfterMs + 1) * 10].map(showDuration);
  return new Failure(
    `--kill-after ${asked} must be less than the safety margin of ${margin}, a tenth of --ttl: the command has to be gone ` +
      `before another host may get the lock. Make it shorter, or give a --ttl of more than ${ttl}`,
  );
}
