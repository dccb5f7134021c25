import type { Reissue, Renew, Take, Write } from "../../lib/protocol/writes.js";
import { hasFinished, overdue, relies } from "./deadline.js";
import type { Limits } from "./limits.js";
import { withMessage } from "./messages.js";
import { replies } from "./replies.js";
import {
  type Claimant,
  claimantOf,
  type Lease,
  nameOf,
  type Request,
  type State,
  type Who,
  withClaimant,
} from "./state.js";
import type { Event, Model, Step } from "./step.js";
import { boundsAt } from "./time.js";
import { AT, knowledgeOf, noted, rowOf } from "./watching.js";

/** Everything that a claimant may do now. */
export function claimantSteps(model: Model, state: State, who: Who, steps: Step[]): void {
  const { lease, request, seen } = claimantOf(state, who);
  if (state.crashes > 0 && (lease ?? request ?? seen) !== undefined) crash(state, who, steps);
  clockJumps(model, state, who, steps);
  if (request !== undefined) {
    replies(model, state, who, steps);
    waits(model, state, who, request, steps);
  } else if (lease === undefined) {
    takes(model, state, who, steps);
    looks(model, state, who, steps);
  }
  if (lease !== undefined) holds(model, state, who, steps);
}

/** It starts again at once, and knows nothing. */
function crash(state: State, who: Who, steps: Step[]): void {
  const claimant = {
    ...claimantOf(state, who),
    seen: undefined,
    look: undefined,
    lease: undefined,
    request: undefined,
  };
  const next = withClaimant({ ...state, crashes: state.crashes - 1 }, who, claimant);
  steps.push({ event: { kind: "crashes", who }, next });
}

function clockJumps(model: Model, state: State, who: Who, steps: Step[]): void {
  const claimant = claimantOf(state, who);
  if (claimant.jumped >= model.limits.jumps || hasFinished(model, state, who)) return;
  const next = withClaimant(state, who, { ...claimant, jumped: claimant.jumped + 1 });
  steps.push({ event: { kind: "sets its clock forward", who }, next: overdue(model, next) });
}

/** The reply is late or lost: it sends another copy, or gives up. */
function waits({ rules, messages, ...model }: Model, state: State, who: Who, request: Request, steps: Step[]): void {
  const claimant = claimantOf(state, who);
  if (request.phase === "silent" || (request.phase === "sent" && !request.repeated)) {
    const sentAt = rules.countsFrom === "first copy" ? request.sentAt : rules.leaseWatch(state.time, claimant);
    const again = { ...request, phase: "sent", repeated: true, sentAt } as const;
    steps.push({
      event: { kind: "sends again", who },
      next: withClaimant(state, who, { ...claimant, request: again }),
    });
  }
  const { write } = request.message;
  // A lease that is being passed on is released instead.
  if (write.kind === "reissue") return;
  const given = withClaimant(state, who, { ...claimant, request: undefined });
  if (write.kind !== "take") {
    steps.push({ event: { kind: "gives up", who }, next: given });
    return;
  }
  // Its process looks for the claim in the background, and releases it.
  const network = withMessage(state.network, messages.of(who, vacate(model.limits, write.uuid)));
  steps.push({ event: { kind: "gives up", who }, next: { ...given, network } });
}

/** Takes what it has not seen yet, or what looks free. */
function takes(model: Model, state: State, who: Who, steps: Step[]): void {
  const { rules, limits } = model;
  const claimant = claimantOf(state, who);
  const { host, seen, taken } = claimant;
  if (taken >= (limits.takes[who] ?? 0)) return;
  for (const width of limits.widths) {
    const bounds = boundsAt(state.time, width);
    const atMs = rules.watcherWatch(state.time, claimant);
    const knowledge = knowledgeOf(seen, host, rules.boundsToJudgeBy(bounds), atMs);
    if (seen !== undefined && !rules.mayTake(rowOf(seen.row), knowledge)) continue;
    const take: Take = {
      kind: "take",
      at: AT,
      uuid: rules.uuidOf(nameOf(who), taken + 1),
      expires: rules.stamp(bounds, host.ttlMs),
      ttlMs: host.ttlMs,
      owner: nameOf(who),
      acquired: 0,
      knowledge,
      remembers: limits.fenced ? "fence" : "nothing",
      fenceSeed: limits.fenced ? 0 : undefined,
    };
    steps.push(sends(model, state, who, take, { ...claimant, taken: taken + 1, look: undefined }));
  }
}

/** Reads the row. The reply shows it as it was at some moment before it comes. */
function looks({ rules, limits }: Model, state: State, who: Who, steps: Step[]): void {
  const claimant = claimantOf(state, who);
  if (claimant.taken >= (limits.takes[who] ?? 0)) return;
  const { look, host, seen } = claimant;
  const atMs = rules.watcherWatch(state.time, claimant);
  const set = (kind: "looks" | "is shown the row" | "sees the row", change: Partial<Claimant>): void => {
    steps.push({ event: { kind, who }, next: withClaimant(state, who, { ...claimant, ...change }) });
  };
  if (look === undefined && rules.seenSince === "request") {
    set("looks", { look: { askedAt: atMs, shown: false, row: undefined } });
  } else if (look === undefined || !look.shown) {
    set("is shown the row", { look: { askedAt: look?.askedAt ?? 0, shown: true, row: state.rows[AT.sort] } });
  } else {
    const since = rules.seenSince === "request" ? look.askedAt : atMs;
    set("sees the row", { look: undefined, seen: noted(seen, look.row, { atMs: since, host }, rules) });
  }
}

/** A section runs on the lease, or the lease is lost, or being passed on. */
function holds(model: Model, state: State, who: Who, steps: Step[]): void {
  const claimant = claimantOf(state, who);
  const { lease, request } = claimant;
  if (lease === undefined) return;
  if (relies(model, state, who)) {
    if (request === undefined) renews(model, state, who, lease, steps);
    guards(model, state, who, lease, steps);
    if (request === undefined && lease.guarded) passesOn(model, state, who, lease, steps);
  }
  releases(model, state, who, lease, steps);
}

function renews(model: Model, state: State, who: Who, lease: Lease, steps: Step[]): void {
  const { rules, limits } = model;
  const claimant = claimantOf(state, who);
  const { host, renewed } = claimant;
  if (renewed >= (limits.renewals[who] ?? 0)) return;
  for (const width of limits.widths) {
    const bounds = boundsAt(state.time, width);
    const expires = rules.stamp(bounds, host.ttlMs, lease.lastStamp);
    const renew: Renew = { kind: "renew", at: AT, uuid: lease.uuid, expires, remembers: memory(model.limits) };
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
  if (claimant.guards >= limits.guards || !isRenewed) return;
  const after = rules.guardsAfterRenewal ? lease.firstStamp : 0;
  const message = messages.of(
    who,
    { kind: "check", at: AT, uuid: lease.uuid, after, fence: lease.fence },
    lease.section,
  );
  const sender = { ...claimant, guards: claimant.guards + 1, lease: { ...lease, guarded: true } };
  const next = withClaimant({ ...state, network: withMessage(state.network, message) }, who, sender);
  steps.push({ event: { kind: "sends", who, message }, next });
}

/** The section ends, and the next of the same process is to begin on its lease. */
function passesOn(model: Model, state: State, who: Who, lease: Lease, steps: Step[]): void {
  const { rules, limits } = model;
  const claimant = claimantOf(state, who);
  const { host, reissued } = claimant;
  if (reissued >= limits.reissues) return;
  if (!rules.reissuesAfterGuard) {
    const begun = state.begun + 1;
    const after = { ...claimant, reissued: reissued + 1, lease: { ...lease, section: begun, guarded: false } };
    steps.push({ event: { kind: "goes on", who }, next: withClaimant({ ...state, begun }, who, after) });
    return;
  }
  for (const width of limits.widths) {
    const expires = rules.stamp(boundsAt(state.time, width), host.ttlMs, lease.lastStamp);
    const uuids = { from: lease.uuid, uuid: `${lease.uuid}'` };
    const { fenced } = limits;
    const reissue: Reissue = { kind: "reissue", at: AT, ...uuids, expires, fenced, remembers: memory(limits) };
    const idle = { ...lease, lastStamp: expires, section: 0, guarded: false };
    steps.push(sends(model, state, who, reissue, { ...claimant, reissued: reissued + 1, lease: idle }));
  }
}

/** The section ends. A renewal in flight is not waited for any longer; a new uuid in flight is released as well. */
function releases(model: Model, state: State, who: Who, lease: Lease, steps: Step[]): void {
  const claimant = claimantOf(state, who);
  const { request } = claimant;
  if (request?.phase === "answered") return;
  let from = state;
  if (request?.message.write.kind === "reissue") {
    const other = model.messages.of(who, vacate(model.limits, request.message.write.uuid));
    from = { ...state, network: withMessage(state.network, other) };
  }
  const after = { ...claimant, lease: undefined, seen: undefined };
  steps.push(sends(model, from, who, vacate(model.limits, lease.uuid), after));
}

const memory = ({ fenced }: Limits): "fence" | "nothing" => (fenced ? "fence" : "nothing");

const vacate = (limits: Limits, uuid: string): Write => {
  return { kind: "vacate", at: AT, uuid, leaves: { kind: "free" }, remembers: memory(limits) };
};

/** The first copy leaves: the stopwatch is read now. */
function sends(model: Model, state: State, who: Who, write: Write, sender: Claimant): Step {
  const message = model.messages.of(who, write);
  const sentAt = write.kind === "vacate" ? 0 : model.rules.leaseWatch(state.time, sender);
  const request = { message, sentAt, repeated: false, phase: "sent", answer: undefined, applied: false } as const;
  const network = withMessage(state.network, message);
  const event: Event = { kind: "sends", who, message };
  return { event, next: withClaimant({ ...state, network }, who, { ...sender, request }) };
}
