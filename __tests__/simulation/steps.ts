import type { Kind } from "./locks.js";
import { type Schedule, SHORT_PAUSE_MS, type Step } from "./schedule.js";

/** A step as a schedule plays it: of one of its locks, as fast as it is in a hurry. */
export function stepIn(schedule: Schedule, step: Step): Step {
  const { crowd, hurry } = schedule;
  const of = kindIn(schedule, step);
  return {
    ...step,
    of,
    // The sides of a shared mutex cannot be handed off.
    kind: step.kind === "handOff" && of !== "mutex" && of !== "permit" ? "lock" : step.kind,
    beside: of === "shared" || of === "permit" ? step.beside : 0,
    name: crowd ?? step.name,
    pauseMs: pauseIn(schedule, step) / hurry,
    holdMs: step.holdMs / hurry,
  };
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
