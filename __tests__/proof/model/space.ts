import { claimantSteps } from "./claimant-steps.js";
import { hasFinished, overdue } from "./deadline.js";
import type { Limits } from "./limits.js";
import { Messages } from "./messages.js";
import { RULES, type Rules } from "./rules.js";
import type { Space } from "./search.js";
import { brokenAt } from "./section.js";
import { beginnings, claimantOf, type State, withClaimant } from "./state.js";
import { StateKeys } from "./state-keys.js";
import type { Model, Step } from "./step.js";
import { arrivals } from "./table-steps.js";
import { traceOf } from "./trace.js";

/** Every run within the bounds: by the rules as they are, or with some of them switched off. */
export function spaceOf(limits: Limits, off: Partial<Rules> = {}): Space<State, Step> {
  const rules = { ...RULES, ...limits.rules, ...off };
  const model: Model = { rules, limits, messages: new Messages(), outcomes: new Map() };
  const keys = new StateKeys(limits);
  return {
    beginnings: beginnings(limits),
    keyOf: (state) => keys.of(state),
    stepsFrom: (state) => stepsFrom(model, state),
    brokenAt: (state) => brokenAt(model, state),
    traceOf,
  };
}

/** Everything that may happen next: a message arrives, a claimant does something, or time passes. */
function stepsFrom(model: Model, state: State): readonly Step[] {
  const steps: Step[] = [];
  arrivals(model, state, steps);
  for (const who of state.claimants.keys()) claimantSteps(model, state, who, steps);
  timePasses(model, state, steps);
  return steps;
}

function timePasses(model: Model, state: State, steps: Step[]): void {
  const { limits } = model;
  // Nothing has happened yet: the run begins now.
  const isBefore =
    state.network.length === 0 && state.claimants.every(({ look, flags }) => (look ?? flags) === undefined);
  if (state.time >= limits.ticks || isBefore) return;
  const later = { ...state, time: state.time + 1 };
  steps.push({ what: "time passes", next: overdue(model, later) });
  for (const who of state.claimants.keys()) {
    const claimant = claimantOf(state, who);
    if (claimant.missed >= limits.suspends || hasFinished(model, state, who)) continue;
    const next = withClaimant(later, who, { ...claimant, missed: claimant.missed + 1 });
    steps.push({ what: "is suspended while time passes", who, next: overdue(model, next) });
  }
}
