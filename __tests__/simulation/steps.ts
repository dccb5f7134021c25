import type { Kind } from "./locks.js";
import { type Due, type Schedule, SHORT_PAUSE_MS, type Step } from "./schedule.js";

/** A step as a schedule plays it: of one of its locks, as fast as it is in a hurry. */
export function stepIn(schedule: Schedule, step: Step): Step {
  const { crowd, hurry } = schedule;
  const of = kindIn(schedule, step);
  const due = dueIn(schedule, step, of);
  const kind = due && step.kind !== "every" ? "once" : actIn(schedule, step, of);
  const isBeside = of === "shared" || of === "permit" || kind === "flight" || due !== undefined;
  return {
    ...step,
    ...(due && { due, times: step.times + 2, tick: kind === "every" ? step.tick : 1 + Math.floor(step.tick / 4) }),
    of,
    kind,
    beside: isBeside ? step.beside : 0,
    // A server whose clock is wrong may call a result young that is not.
    withinMs: kind === "flight" && (step.careless || schedule.network.wrongDates !== undefined) ? 0 : step.withinMs,
    name: crowd ?? step.name,
    pauseMs: pauseIn(schedule, step) / hurry,
    holdMs: step.holdMs / hurry,
  };
}

/** In every third schedule, by its seed, mutexes have flights: so all others are as they were without. */
const isFlying = ({ seed }: Schedule): boolean => seed % 3 === 0;

/** In the rest, they have elections. */
const isElecting = ({ seed }: Schedule): boolean => seed % 3 === 2;

/** For how long a tick is the one that everybody asks for. */
const NEXT_TICK_AFTER_MS = 2_500;

/** In another third, they have ticks that are run until they succeed. */
function dueIn({ seed }: Schedule, { kind, withData, careless, holdMs }: Step, of: Kind): Due | undefined {
  const isOne = ["run", "tryLock", "every"].includes(kind) || (kind === "lock" && !withData && careless);
  if (seed % 3 !== 1 || of !== "mutex" || !isOne) return undefined;
  return { maxAttempts: holdMs % 4 || Number.POSITIVE_INFINITY, nextAfterMs: NEXT_TICK_AFTER_MS };
}

function actIn(schedule: Schedule, { kind, withData, careless }: Step, of: Kind): Step["kind"] {
  // The sides of a shared mutex cannot be handed off.
  if (kind === "handOff" && of !== "mutex" && of !== "permit") return "lock";
  const mayFly = of === "mutex" && (kind === "run" || (kind === "lock" && !withData));
  if (mayFly && isFlying(schedule)) return "flight";
  return mayFly && isElecting(schedule) && (kind === "run" || careless) ? "elect" : kind;
}

/** Ticks and sets are those of mutexes. */
function kindIn({ mix }: Schedule, { kind, of, side }: Step): Kind {
  if (mix === "mutexes" || kind === "once" || kind === "every" || kind === "set") return "mutex";
  if (mix === "permits") return "permit";
  return mix === "sides" ? side : of;
}

/** In an hour a clock that is trusted would drift out of its skew. */
function pauseIn({ clock }: Schedule, { pauseMs }: Step): number {
  return clock === "table" ? pauseMs : Math.min(pauseMs, SHORT_PAUSE_MS);
}
