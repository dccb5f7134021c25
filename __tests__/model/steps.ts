import { claimantSteps } from "./claimant-steps.js";
import { hasFinished, overdue } from "./deadline.js";
import { claimantOf, type State, withClaimant } from "./state.js";
import type { Model, Step } from "./step.js";
import { arrivals } from "./table-steps.js";

/** Everything that may happen next: a message arrives, a claimant does something, or time passes. */
export function stepsFrom(model: Model, state: State): readonly Step[] {
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
  steps.push({ event: { kind: "time passes" }, next: overdue(model, later) });
  for (const who of state.claimants.keys()) {
    const claimant = claimantOf(state, who);
    if (claimant.missed >= limits.suspends || hasFinished(model, state, who)) continue;
    const next = withClaimant(later, who, { ...claimant, missed: claimant.missed + 1 });
    steps.push({ event: { kind: "time passes", suspended: who }, next: overdue(model, next) });
  }
}
