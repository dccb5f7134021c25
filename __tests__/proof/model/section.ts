import { relies } from "./deadline.js";
import { hasGuards } from "./limits.js";
import { claimantOf, type Lease, type State, type Who, withClaimant } from "./state.js";
import type { Invariant, Model } from "./step.js";
import { addressOf } from "./watching.js";

/**
 * A section begins on a lease: the state after that, and what it breaks. Where no guards are, sections need no number.
 *
 * @param token of the hand-off that it goes on from, if it does.
 */
export function beginsSection(
  model: Model,
  state: State,
  who: Who,
  lease: Lease,
  token?: string,
): { readonly next: State; readonly broken: Invariant | undefined } {
  const claimant = claimantOf(state, who);
  const isCounted = hasGuards(model.limits);
  const section = isCounted ? state.begun + 1 : 1;
  const begun = isCounted ? section : 0;
  const exclusive = claimant.host.side === "reader" ? state.exclusive : begun;
  const after = { ...claimant, seen: [], flags: undefined, lease: { ...lease, section, enters: false } };
  const isSpent = token !== undefined && state.spent.includes(token);
  const spent = token === undefined || isSpent ? state.spent : [...state.spent, token].sort();
  const next = withClaimant({ ...state, begun, exclusive, spent }, who, after);
  if (isSpent) return { next, broken: "a token is resumed once" };
  if (state.ended.includes(lease.uuid)) return { next, broken: "an ended uuid stays ended" };
  // Its own lease may be over already: whoever was handed out a lock begins all the same.
  const others = [...state.claimants.keys()].filter((other) => other !== who && relies(model, state, other));
  return { next, broken: others.map((other) => excludes(state, who, other)).find((broken) => broken !== undefined) };
}

/** What is broken where these two rely on their leases at the same true time. */
function excludes(state: State, one: Who, other: Who): Invariant | undefined {
  const claimants = [one, other].map((who) => claimantOf(state, who));
  const sides = claimants.map(({ host }) => host.side);
  const [permit, another] = claimants.map(({ host, lease }) => addressOf(host.side, lease?.uuid ?? "").sort);
  if (sides.includes("permit") && permit !== another) return undefined;
  if (sides.every((side) => side === "reader")) return undefined;
  return sides.every((side) => side !== "reader") ? "one holder" : "readers or one writer";
}

/** What is broken because two rely on their leases at the same true time. */
export function brokenAt(model: Model, state: State): Invariant | undefined {
  const holders = [...state.claimants.keys()].filter((who) => relies(model, state, who));
  for (const [index, one] of holders.entries()) {
    for (const other of holders.slice(index + 1)) {
      const broken = excludes(state, one, other);
      if (broken !== undefined) return broken;
    }
  }
  const { permits } = model.limits;
  return permits > 0 && holders.length > permits ? "no more holders than permits" : undefined;
}
