import { LOCK_SORT, permitOf } from "../../../lib/protocol/addresses.js";
import type { Applied } from "../../../lib/protocol/apply.js";
import { mayTake } from "../../../lib/protocol/may-take.js";
import type { Attributes } from "../../../lib/protocol/row.js";
import { drawnBy } from "../../../lib/protocol/rules.js";
import type { Message } from "./messages.js";
import { withRow } from "./rows.js";
import { type Answer, claimantOf, isAwaited, type Request, type State, withClaimant } from "./state.js";
import type { Invariant, Model, Step } from "./step.js";
import { rowOf } from "./watching.js";

/** A copy of any message that was ever sent reaches the table. */
export function arrivals(model: Model, state: State, steps: Step[]): void {
  for (const message of state.network) {
    const late = !isAwaited(state, message);
    if (late && state.lateCopies === 0) continue;
    const applied = outcomeOf(model, state.rows[message.write.at.sort], message);
    // A late copy that is refused changes nothing.
    if (late && applied.kind === "refused") continue;
    const what = `${late ? "late " : ""}${message.write.kind} ${howApplied(message, applied)}`;
    const broken = brokenBy(state, message, applied);
    const next = after(model, state, message, applied, late);
    const arrive = (next: State, how = ""): void => {
      steps.push({ what: `${what}${how}`, who: message.from, message, next, broken });
    };
    const sender = claimantOf(state, message.from);
    if (late || sender.request?.message !== message) {
      arrive(next);
      continue;
    }
    const hears = (request: Request | undefined): State => withClaimant(next, message.from, { ...sender, request });
    if (message.write.kind === "vacate" && !model.limits.hearsReleases) {
      arrive(hears(undefined));
      continue;
    }
    const request = { ...sender.request, applied: sender.request.applied || applied.kind === "applied" };
    arrive(hears({ ...request, phase: "answered", answer: answerOf(message, applied) }));
    if (model.limits.losses) arrive(hears({ ...request, phase: "silent", answer: undefined }), ", its reply is lost");
  }
}

/** A take says also why it was permitted. */
function howApplied({ write }: Message, applied: Applied): string {
  if (applied.kind === "refused" || write.kind !== "take" || applied.before?.uuid === undefined) return applied.kind;
  const byTime = mayTake(rowOf(applied.before), { earliest: write.knowledge.earliest });
  return `applied: takeover ${byTime ? "by the time" : "by watching"}`;
}

/** What the table does with a message: asked once for each row and message, for `apply` is pure. */
function outcomeOf({ rules, outcomes }: Model, row: Attributes | undefined, { id, write }: Message): Applied {
  let ofRow = outcomes.get(row);
  if (ofRow === undefined) {
    ofRow = [];
    outcomes.set(row, ofRow);
  }
  ofRow[id] ??= rules.apply(row, write);
  return ofRow[id];
}

function after({ rules }: Model, state: State, { write }: Message, applied: Applied, late: boolean): State {
  const lateCopies = late ? state.lateCopies - 1 : state.lateCopies;
  if (applied.kind === "refused") return { ...state, lateCopies };
  const { sort } = write.at;
  const uuid = state.rows[sort]?.uuid;
  const row = applied.after;
  const isMutex = sort === LOCK_SORT || permitOf(sort) !== undefined;
  const hasEnded = isMutex && typeof uuid === "string" && uuid !== row?.uuid && !state.ended.includes(uuid);
  const ended = hasEnded ? [...state.ended, uuid].sort() : state.ended;
  const rows = withRow(state.rows, sort, row);
  const isConsistent = rules.isConsistent("reader") && rules.isConsistent("writer");
  const stale = isConsistent || rows === state.rows ? state.stale : withRow(state.stale, sort, state.rows[sort]);
  return { ...state, rows, stale, lateCopies, ended };
}

function answerOf({ write }: Message, applied: Applied): Answer {
  if (applied.kind === "refused") return applied;
  return { kind: "applied", drawn: drawnBy(write, applied.before) };
}

function brokenBy(state: State, { from, write, section }: Message, applied: Applied): Invariant | undefined {
  if (applied.kind === "refused") return undefined;
  const { begun, exclusive, ended } = state;
  const row = state.rows[write.at.sort];
  const { after } = applied;
  if (row?.uuid !== undefined && row.uuid === after?.uuid && Number(after.expires) < Number(row.expires)) {
    return "expires never moves back under one uuid";
  }
  if (write.kind !== "check") return undefined;
  // Readers may be in together.
  const isCurrent = claimantOf(state, from).host.side === "reader" ? section > exclusive : section === begun;
  if (isCurrent && !ended.includes(write.uuid)) return undefined;
  return "a guard commits for its section alone";
}
