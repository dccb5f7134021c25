import { hasFinished, overdue } from "./deadline.js";
import { looksAtFlags } from "./flags.js";
import { holdingSteps } from "./holding-steps.js";
import { withMessage } from "./messages.js";
import { replies } from "./replies.js";
import { releaseOf } from "./sending.js";
import { claimantOf, type Request, type State, type Who, withClaimant } from "./state.js";
import type { Model, Step } from "./step.js";
import { takingSteps } from "./taking-steps.js";

/** Everything that a claimant may do now. */
export function claimantSteps(model: Model, state: State, who: Who, steps: Step[]): void {
  const { lease, request, seen } = claimantOf(state, who);
  if (state.crashes > 0 && ((lease ?? request) !== undefined || seen.length > 0)) crash(state, who, steps);
  clockJumps(model, state, who, steps);
  if (request !== undefined) {
    replies(model, state, who, steps);
    waits(model, state, who, request, steps);
  } else if (lease === undefined) {
    takingSteps(model, state, who, steps);
  }
  if (lease !== undefined) holdingSteps(model, state, who, lease, steps);
  looksAtFlags(model, state, who, steps);
}

/** It starts again at once, and knows nothing. */
function crash(state: State, who: Who, steps: Step[]): void {
  const nothing = { seen: [], look: undefined, flags: undefined, lease: undefined, request: undefined };
  const next = withClaimant({ ...state, crashes: state.crashes - 1 }, who, { ...claimantOf(state, who), ...nothing });
  steps.push({ what: "crashes", who, next });
}

function clockJumps(model: Model, state: State, who: Who, steps: Step[]): void {
  const claimant = claimantOf(state, who);
  if (claimant.jumped >= model.limits.jumps || hasFinished(model, state, who)) return;
  const next = withClaimant(state, who, { ...claimant, jumped: claimant.jumped + 1 });
  steps.push({ what: "sets its clock forward", who, next: overdue(model, next) });
}

/** The reply is late or lost: it sends another copy, or gives up. */
function waits({ rules, messages, limits }: Model, state: State, who: Who, request: Request, steps: Step[]): void {
  if (!limits.losses) return;
  const claimant = claimantOf(state, who);
  const { write } = request.message;
  const isSentOnce = write.kind === "vacate" && !limits.hearsReleases;
  if (!isSentOnce && (request.phase === "silent" || (request.phase === "sent" && !request.repeated))) {
    const sentAt = rules.countsFrom === "first copy" ? request.sentAt : rules.leaseWatch(state.time, claimant);
    const again = { ...request, phase: "sent", repeated: true, sentAt } as const;
    steps.push({
      what: "sends again",
      who,
      next: withClaimant(state, who, { ...claimant, request: again }),
    });
  }
  const given = { ...claimant, request: undefined };
  if (write.kind === "renew" || write.kind === "vacate") {
    steps.push({ what: "gives up", who, next: withClaimant(state, who, given) });
    return;
  }
  // A lease that is being passed on or handed off is released instead.
  if (claimant.lease !== undefined || !("uuid" in write)) return;
  // Its process looks for the claim in the background, and releases it.
  const network = withMessage(state.network, messages.of(who, releaseOf(limits, claimant.host, write.uuid)));
  const next = withClaimant({ ...state, network }, who, { ...given, flags: undefined });
  steps.push({ what: "gives up", who, next });
}
