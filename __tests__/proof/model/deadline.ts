import { type Claimant, claimantOf, type State, type Who, withClaimant } from "./state.js";
import type { Model } from "./step.js";

/** Whether a section relies on its lease at this moment: `lock.held`. */
export function relies(model: Model, state: State, who: Who): boolean {
  const claimant = claimantOf(state, who);
  return claimant.lease !== undefined && claimant.lease.section !== 0 && stands(model, state.time, claimant);
}

/** Whether a lease has not reached its deadline. */
export function stands({ rules }: Model, time: number, claimant: Claimant): boolean {
  const { lease, host } = claimant;
  return lease !== undefined && rules.leaseWatch(time, claimant) < lease.end - rules.marginMs(host.ttlMs);
}

/** Leases whose deadline has passed are lost, once and for ever: no reply to a renewal brings them back. */
export function overdue(model: Model, state: State): State {
  return state.claimants.reduce((before, _, who) => overdueOf(model, before, who), state);
}

function overdueOf(model: Model, state: State, who: Who): State {
  const claimant = claimantOf(state, who);
  const { lease, request } = claimant;
  if (lease === undefined || stands(model, state.time, claimant)) return state;
  if (lease.enters) return withClaimant(state, who, lapsed(model, claimant));
  if (lease.section === 0 && !isPassedOnByWriter(model, claimant)) return state;
  const isRenewal = request?.message.write.kind === "renew";
  return withClaimant(state, who, { ...lost(claimant), request: isRenewal ? undefined : request });
}

/** Nobody was handed it out yet, so it may come back by a renewal: but the other side may have come in meanwhile. */
function lapsed({ rules }: Model, claimant: Claimant): Claimant {
  const looksAgain =
    rules.enters(claimant.host.side) === "on a lease that stood since its look" && claimant.flags !== undefined;
  return looksAgain ? { ...claimant, flags: undefined } : claimant;
}

function isPassedOnByWriter({ rules }: Model, { host, request }: Claimant): boolean {
  return host.side === "writer" && request?.message.write.kind === "reissue" && rules.losesWhilePassedOn;
}

/** No section relies on the lease any more. Nothing of it matters but its uuid, which is to be released. */
export function lost(claimant: Claimant): Claimant {
  const { lease } = claimant;
  if (lease === undefined) return claimant;
  const { uuid } = lease;
  const nothing = { fence: undefined, firstStamp: 0, expires: 0, lastStamp: 0, end: 0, section: 0 };
  return { ...claimant, flags: undefined, lease: { uuid, ...nothing, enters: false, guarded: false } };
}

/** Whether a claimant has nothing left to do: what happens to its host does not matter. */
export function hasFinished({ limits }: Model, state: State, who: Who): boolean {
  const { taken, resumed, lease, request } = claimantOf(state, who);
  return taken >= (limits.takes[who] ?? 0) && resumed >= limits.resumes && lease === undefined && request === undefined;
}
