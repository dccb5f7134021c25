import { type Claimant, claimantOf, type State, type Who, withClaimant } from "./state.js";
import type { Model } from "./step.js";

/** Whether a section relies on its lease at this moment: `lock.held`. */
export function relies({ rules }: Model, state: State, who: Who): boolean {
  const { time } = state;
  const claimant = claimantOf(state, who);
  const { lease, host } = claimant;
  if (lease === undefined || lease.section === 0) return false;
  return rules.leaseWatch(time, claimant) < lease.end - rules.marginMs(host.ttlMs);
}

/** Leases whose deadline has passed are lost, once and for ever: no reply to a renewal brings them back. */
export function overdue(model: Model, state: State): State {
  return state.claimants.reduce((before, _, who) => overdueOf(model, before, who), state);
}

function overdueOf(model: Model, state: State, who: Who): State {
  const claimant = claimantOf(state, who);
  const { lease, request } = claimant;
  if (lease === undefined || lease.section === 0 || relies(model, state, who)) return state;
  const isRenewal = request?.message.write.kind === "renew";
  return withClaimant(state, who, { ...lost(claimant), request: isRenewal ? undefined : request });
}

/** No section relies on the lease any more. Nothing of it matters but its uuid, which is to be released. */
export function lost(claimant: Claimant): Claimant {
  const { lease } = claimant;
  if (lease === undefined) return claimant;
  const { uuid } = lease;
  const nothing = { fence: undefined, firstStamp: 0, expires: 0, lastStamp: 0, end: 0, section: 0, guarded: false };
  return { ...claimant, lease: { uuid, ...nothing } };
}

/** Whether a claimant has nothing left to do: what happens to its host does not matter. */
export function hasFinished({ limits }: Model, state: State, who: Who): boolean {
  const { taken, lease, request } = claimantOf(state, who);
  return taken >= (limits.takes[who] ?? 0) && lease === undefined && request === undefined;
}
