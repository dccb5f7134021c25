import type { Take, Transfer } from "../../../lib/protocol/writes.js";
import { memoryIn, sends, tokenIn } from "./sending.js";
import { type Claimant, claimantOf, nameOf, type State, type Who, withClaimant } from "./state.js";
import type { Model, Step } from "./step.js";
import { boundsAt } from "./time.js";
import { addressOf, awaitedBy, knowledgeOf, noted, rowOf, seenAt } from "./watching.js";

/** What a claimant without a lease may do. */
export function takingSteps(model: Model, state: State, who: Who, steps: Step[]): void {
  takes(model, state, who, steps);
  resumes(model, state, who, steps);
  if (model.limits.polls[who]) looks(model, state, who, steps);
}

function takes(model: Model, state: State, who: Who, steps: Step[]): void {
  const { rules, limits } = model;
  const { host, taken } = claimantOf(state, who);
  if (taken >= (limits.takes[who] ?? 0)) return;
  const uuid = rules.uuidOf(nameOf(who), taken + 1);
  if (host.side !== "permit") takesRow(model, state, who, uuid, steps);
  // Any of them: which ones a look has shown as free is a hint, and may be stale.
  for (let permit = 0; permit < rules.permitsOf(limits.permits); permit += 1) {
    takesRow(model, state, who, `${uuid}.${permit}`, steps);
  }
}

/** Takes what it has not seen yet, or what looks free. A reader's row is its own: it may come for one try. */
function takesRow({ rules, limits, ...model }: Model, state: State, who: Who, uuid: string, steps: Step[]): void {
  const claimant = claimantOf(state, who);
  const { host, seen, taken } = claimant;
  const at = addressOf(host.side, uuid);
  const inTheWay = seenAt(seen, at);
  for (const width of limits.widths) {
    const bounds = boundsAt(state.time, width);
    const atMs = rules.watcherWatch(state.time, claimant);
    const knowledge = knowledgeOf(seen, at, host, rules.boundsToJudgeBy(bounds), atMs);
    if (inTheWay !== undefined && !rules.mayTake(rowOf(inTheWay.row), knowledge)) continue;
    const take: Take = {
      kind: "take",
      at,
      uuid,
      expires: rules.stamp(bounds, host.ttlMs),
      ttlMs: host.ttlMs,
      owner: nameOf(who),
      acquired: 0,
      knowledge,
      remembers: memoryIn(limits),
      token: tokenIn(limits),
    };
    const sender = { ...claimant, taken: taken + 1, look: undefined };
    steps.push(sends({ rules, limits, ...model }, state, who, take, sender));
  }
}

/** Goes on with a lease that was handed off, by its token: whoever has it, however often it is delivered, and forged or not. */
function resumes(model: Model, state: State, who: Who, steps: Step[]): void {
  const { rules, limits } = model;
  const claimant = claimantOf(state, who);
  const { host, resumed } = claimant;
  if (resumed >= limits.resumes) return;
  const forged = limits.forges ? Object.values(state.rows).map(({ uuid }) => rules.opens(String(uuid))) : [];
  for (const token of [...state.tokens, ...forged]) {
    for (const width of limits.widths) {
      const transfer: Transfer = {
        kind: "transfer",
        at: addressOf(host.side, token),
        from: token,
        uuid: rules.resumedAs(token, `${nameOf(who)}'${resumed + 1}`),
        expires: rules.stamp(boundsAt(state.time, width), host.ttlMs),
        ttlMs: host.ttlMs,
        owner: nameOf(who),
        token: tokenIn(limits),
        remembers: memoryIn(limits),
      };
      const sender = { ...claimant, resumed: resumed + 1, look: undefined };
      steps.push(sends(model, state, who, transfer, sender));
    }
  }
}

/** Reads the row. The reply shows it as it was at some moment before it comes. */
function looks({ rules, limits }: Model, state: State, who: Who, steps: Step[]): void {
  const claimant = claimantOf(state, who);
  if (claimant.taken >= (limits.takes[who] ?? 0)) return;
  const { look, host, seen } = claimant;
  const at = awaitedBy(host.side);
  const atMs = rules.watcherWatch(state.time, claimant);
  const set = (what: "looks" | "is shown the row" | "sees the row", change: Partial<Claimant>): void => {
    steps.push({ what, who, next: withClaimant(state, who, { ...claimant, ...change }) });
  };
  if (look === undefined && rules.seenSince === "request") {
    set("looks", { look: { askedAt: atMs, shown: false, row: undefined } });
  } else if (look === undefined || !look.shown) {
    set("is shown the row", { look: { askedAt: look?.askedAt ?? 0, shown: true, row: state.rows[at.sort] } });
  } else {
    const since = rules.seenSince === "request" ? look.askedAt : atMs;
    set("sees the row", { look: undefined, seen: noted(seen, at, look.row, { atMs: since, host }, rules) });
  }
}
