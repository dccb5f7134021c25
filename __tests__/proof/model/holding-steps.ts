import type { Check, Renew, Transfer } from "../../../lib/protocol/writes.js";
import { relies } from "./deadline.js";
import { withMessage } from "./messages.js";
import { beginsSection } from "./section.js";
import { memoryIn, releaseOf, sends, tokenIn } from "./sending.js";
import { claimantOf, type Lease, type State, type Who, withClaimant } from "./state.js";
import type { Model, Step } from "./step.js";
import { boundsAt } from "./time.js";
import { addressOf } from "./watching.js";

/** A section runs on the lease, or is to begin; or the lease is lost, or being passed on or handed off. */
export function holdingSteps(model: Model, state: State, who: Who, lease: Lease, steps: Step[]): void {
  const isFree = claimantOf(state, who).request === undefined;
  const isRelied = relies(model, state, who);
  if (isFree && (isRelied || lease.enters)) renews(model, state, who, lease, steps);
  if (isRelied) {
    guards(model, state, who, lease, steps);
    if (isFree && lease.guarded) passesOn(model, state, who, lease, steps);
    if (isFree) handsOff(model, state, who, lease, steps);
  }
  releases(model, state, who, lease, steps);
}

function renews(model: Model, state: State, who: Who, lease: Lease, steps: Step[]): void {
  const { rules, limits } = model;
  const claimant = claimantOf(state, who);
  const { host, renewed } = claimant;
  if (renewed >= (limits.renewals[who] ?? 0)) return;
  const { uuid } = lease;
  const at = addressOf(host.side, uuid);
  for (const width of limits.widths) {
    const expires = rules.stamp(boundsAt(state.time, width), host.ttlMs, lease.lastStamp);
    const renew: Renew = { kind: "renew", at, uuid, expires, remembers: memoryIn(limits) };
    const sentAt = rules.leaseWatch(state.time, claimant);
    const end = rules.countsUnanswered ? sentAt + host.ttlMs : lease.end;
    const after = { ...claimant, renewed: renewed + 1, lease: { ...lease, lastStamp: expires, end } };
    steps.push(sends(model, state, who, renew, after));
  }
}

/** A transaction of the section: its reply decides nothing here. */
function guards({ rules, limits, messages }: Model, state: State, who: Who, lease: Lease, steps: Step[]): void {
  const claimant = claimantOf(state, who);
  const isRenewed = lease.expires > lease.firstStamp || !rules.guardsAfterRenewal;
  if (claimant.guards >= (limits.guards[who] ?? 0) || !isRenewed) return;
  const { uuid, fence, section } = lease;
  const after = rules.guardsAfterRenewal ? lease.firstStamp : 0;
  const check: Check = { kind: "check", at: addressOf(claimant.host.side, uuid), uuid, after, fence };
  const message = messages.of(who, check, section);
  const sender = { ...claimant, guards: claimant.guards + 1, lease: { ...lease, guarded: true } };
  const next = withClaimant({ ...state, network: withMessage(state.network, message) }, who, sender);
  steps.push({ what: "sends", who, message, next });
}

/** The section ends, and the next of the same process is to begin on its lease. A reader's row is never reissued. */
function passesOn(model: Model, state: State, who: Who, lease: Lease, steps: Step[]): void {
  const { rules, limits } = model;
  const claimant = claimantOf(state, who);
  const { host, reissued } = claimant;
  if (reissued >= limits.reissues || host.side === "reader") return;
  if (!rules.reissuesAfterGuard) {
    const idle = { ...claimant, reissued: reissued + 1 };
    const { next } = beginsSection(model, withClaimant(state, who, idle), who, { ...lease, guarded: false });
    steps.push({ what: "goes on with the same lease", who, next });
    return;
  }
  for (const width of limits.widths) {
    const expires = rules.stamp(boundsAt(state.time, width), host.ttlMs, lease.lastStamp);
    const uuids = { from: lease.uuid, uuid: `${lease.uuid}'` };
    const token = tokenIn(limits);
    const at = addressOf(host.side, lease.uuid);
    const reissue: Transfer = { kind: "reissue", at, ...uuids, expires, token, remembers: memoryIn(limits) };
    const idle = { ...lease, lastStamp: expires, section: 0, guarded: false };
    steps.push(sends(model, state, who, reissue, { ...claimant, reissued: reissued + 1, lease: idle }));
  }
}

/** The section ends, and whoever gets the token goes on. The row is to have been renewed, as for a guard. */
function handsOff(model: Model, state: State, who: Who, lease: Lease, steps: Step[]): void {
  const { rules, limits } = model;
  const claimant = claimantOf(state, who);
  const { host, handedOff } = claimant;
  if (handedOff >= limits.handOffs || lease.expires <= lease.firstStamp) return;
  const { uuid: from, firstStamp: after } = lease;
  const { withinMs } = limits;
  const uuids = { from, uuid: rules.opens(`${from}?`) };
  const at = addressOf(host.side, from);
  for (const width of limits.widths) {
    const expires = rules.stamp(boundsAt(state.time, width), withinMs);
    const to = {
      expires,
      ttlMs: withinMs,
      owner: claimant.host.side,
      token: tokenIn(limits),
      remembers: memoryIn(limits),
    };
    const transfer: Transfer = { kind: "transfer", at, ...uuids, after, ...to };
    const idle = { ...lease, section: 0, guarded: false };
    steps.push(sends(model, state, who, transfer, { ...claimant, handedOff: handedOff + 1, lease: idle }));
  }
}

/** The section ends. A renewal in flight is not waited for any longer; a new uuid in flight is released as well. */
function releases(model: Model, state: State, who: Who, lease: Lease, steps: Step[]): void {
  const claimant = claimantOf(state, who);
  const { request } = claimant;
  if (request?.phase === "answered") return;
  let from = state;
  const write = request?.message.write;
  if (write?.kind === "reissue" || write?.kind === "transfer") {
    const other = model.messages.of(who, releaseOf(model.limits, claimant.host, write.uuid));
    from = { ...state, network: withMessage(state.network, other) };
  }
  const after = { ...claimant, lease: undefined, flags: undefined };
  steps.push(sends(model, from, who, releaseOf(model.limits, claimant.host, lease.uuid), after));
}
