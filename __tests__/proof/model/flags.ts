import { READERS } from "../../../lib/protocol/addresses.js";
import { earliestOf } from "../../../lib/protocol/lease-time.js";
import type { Attributes } from "../../../lib/protocol/row.js";
import type { Remove } from "../../../lib/protocol/writes.js";
import { lost, overdue, stands } from "./deadline.js";
import { isShared, type Side } from "./limits.js";
import { withMessage } from "./messages.js";
import type { Rows } from "./rows.js";
import { beginsSection } from "./section.js";
import {
  type Claimant,
  claimantOf,
  type Flags,
  type Lease,
  type Seen,
  type State,
  type Who,
  withClaimant,
} from "./state.js";
import type { Meaning, Model, Step } from "./step.js";
import { boundsAt } from "./time.js";
import { addressOf, knownAt, noted, rowOf } from "./watching.js";

/** A side of a shared mutex whose own flag stands looks at those of the other, and enters or waits. */
export function looksAtFlags(model: Model, state: State, who: Who, steps: Step[]): void {
  const claimant = claimantOf(state, who);
  const { flags, lease, host } = claimant;
  if (!isShared(host.side)) return;
  if (flags === undefined) {
    if (mayLook(model, state, who)) isShown(model, state, who, steps);
  } else if (lease?.enters) {
    for (const judged of knowledgeToJudgeBy(model, state, claimant, flags)) {
      new Judging(model, state, who, judged, lease, steps).judge();
    }
  }
}

function mayLook(model: Model, state: State, who: Who): boolean {
  const { rules, limits } = model;
  const claimant = claimantOf(state, who);
  const { host, lease, request, taken } = claimant;
  if (lease?.enters) {
    return rules.enters(host.side) !== "on a lease that stood since its look" || stands(model, state.time, claimant);
  }
  const looks = rules.looks(host.side);
  if (looks === "after its flag is answered" || lease !== undefined) return false;
  if (request !== undefined) return request.message.write.kind === "take";
  return looks === "before its flag" && taken < (limits.takes[who] ?? 0);
}

/**
 * The look leaves and is answered at one moment; the answer arrives later. One that leaves earlier knows less of the time,
 * so it finds fewer dead.
 */
function isShown({ rules, limits }: Model, state: State, who: Who, steps: Step[]): void {
  const claimant = claimantOf(state, who);
  const { side } = claimant.host;
  for (const rows of rules.isConsistent(side) ? [state.rows] : [state.rows, state.stale]) {
    const shown = others(side, rows);
    for (const known of knowledgeNow({ rules, limits }, state, claimant, shown)) {
      const next = withClaimant(state, who, { ...claimant, flags: { rows: shown, ...known } });
      steps.push({ what: "is shown the flags", who, next });
    }
  }
}

type Then = Omit<Flags, "rows">;

/** What is known now, for each of the bounds that the clock may show. Where no row was shown, nothing is judged by it. */
function knowledgeNow(
  { rules, limits }: Pick<Model, "rules" | "limits">,
  { time }: State,
  claimant: Claimant,
  shown: Rows,
): readonly Then[] {
  if (shown === NOBODY) return [{ earliest: 0, askedAt: 0 }];
  const askedAt = rules.watcherWatch(time, claimant);
  const widths = claimant.host.takeover === "unchanged" ? [undefined] : limits.widths;
  return widths.map((width) => {
    const bounds = width === undefined ? undefined : rules.boundsToJudgeBy(boundsAt(time, width));
    return { earliest: earliestOf(bounds), askedAt };
  });
}

function knowledgeToJudgeBy(model: Model, state: State, claimant: Claimant, flags: Flags): readonly Flags[] {
  const { rows } = flags;
  if (model.rules.judgesBy(claimant.host.side) === "request") return [flags];
  return knowledgeNow(model, state, claimant, rows).map((then) => ({ rows, ...then }));
}

const NOBODY: Rows = {};

/** Which of the rows are those of the other side: kept, so that the same rows have the same text. */
function others(side: Side, rows: Rows): Rows {
  let known = OTHERS.get(rows);
  if (known === undefined) {
    const shown = (isOther: (sort: string) => boolean): Rows => {
      const entries = Object.entries(rows).filter(([sort]) => isOther(sort));
      return entries.length === 0 ? NOBODY : Object.fromEntries(entries);
    };
    const isReader = (sort: string): boolean => sort >= READERS.first && sort <= READERS.last;
    known = { writer: shown(isReader), reader: shown((sort) => sort === addressOf("writer", "").sort) };
    OTHERS.set(rows, known);
  }
  return side === "writer" ? known.writer : known.reader;
}

const OTHERS = new WeakMap<Rows, { readonly writer: Rows; readonly reader: Rows }>();

class Judging {
  readonly #model: Model;
  readonly #state: State;
  readonly #who: Who;
  readonly #lease: Lease;
  readonly #steps: Step[];
  /** It has noted what it was shown. */
  readonly #claimant: Claimant;
  readonly #living: readonly Attributes[];
  readonly #dead: readonly Attributes[];

  constructor(model: Model, state: State, who: Who, { rows, earliest, askedAt }: Flags, lease: Lease, steps: Step[]) {
    this.#model = model;
    this.#state = state;
    this.#who = who;
    this.#lease = lease;
    this.#steps = steps;
    const { rules } = model;
    const claimant = claimantOf(state, who);
    const { host } = claimant;
    const atMs = rules.watcherWatch(state.time, claimant);
    const shown = Object.values(rows).map((row) => ({ row, at: addressOf(other(host.side), String(row.uuid)) }));
    // What was seen of others before, and is there no more, is forgotten.
    const before = claimant.seen.filter(({ at }) => rows[at.sort] !== undefined);
    const seen = shown.reduce<readonly Seen[]>(
      (all, { at, row }) => noted(all, at, row, { atMs, host }, rules),
      before,
    );
    const isDead = ({ at, row }: (typeof shown)[number]): boolean => {
      return rules.mayTake(rowOf(row, at), knownAt(seen, at, { earliest, atMs: askedAt }));
    };
    this.#dead = shown.filter(isDead).map(({ row }) => row);
    this.#living = shown.filter((it) => !isDead(it)).map(({ row }) => row);
    this.#claimant = { ...claimant, seen, flags: undefined };
  }

  judge(): void {
    if (this.#claimant.host.side === "reader") this.#asReader();
    else this.#asWriter();
  }

  /** Gives its row back and waits, if a writer has the other. */
  #asReader(): void {
    const { givesWay, deadWriter } = this.#model.rules;
    if (this.#living.length > 0 && givesWay) {
      // What it has asked for its row does not matter any more.
      const after = { ...lost(this.#claimant), request: undefined };
      this.#sees("a reader gives way", withClaimant(this.#state, this.#who, after));
    } else if (this.#dead.length > 0 && deadWriter === "removes it") {
      this.#sees("a dead writer is removed", this.#removesDead());
    } else {
      this.#enters(this.#dead.length > 0 ? "a dead writer is passed by" : "a section begins");
    }
  }

  /** Enters when nobody is left, and looks again until then. */
  #asWriter(): void {
    const { entersOn } = this.#model.rules;
    if (this.#living.length === 0 && (this.#dead.length === 0 || entersOn === "no living reader")) {
      this.#enters("a section begins");
    } else {
      this.#sees(this.#dead.length > 0 ? "a dead reader is removed" : "a writer waits", this.#removesDead());
    }
  }

  #removesDead(): State {
    const { messages } = this.#model;
    const side = other(this.#claimant.host.side);
    const network = this.#dead.reduce((all, row) => {
      const [seenUuid, seenExpires] = [String(row.uuid), Number(row.expires)];
      const write: Remove = { kind: "remove", at: addressOf(side, seenUuid), seenUuid, seenExpires };
      return withMessage(all, messages.of(this.#who, write, this.#claimant.taken));
    }, this.#state.network);
    return withClaimant({ ...this.#state, network }, this.#who, this.#claimant);
  }

  #enters(meaning: Meaning): void {
    const enters = this.#model.rules.enters(this.#claimant.host.side);
    // It may be renewed, and enter by what it was shown before.
    if (enters !== "on any lease" && !stands(this.#model, this.#state.time, this.#claimant)) return;
    const from = withClaimant(this.#state, this.#who, this.#claimant);
    const { next, broken } = beginsSection(this.#model, from, this.#who, this.#lease);
    this.#steps.push({ what: meaning, who: this.#who, next: overdue(this.#model, next), broken });
  }

  #sees(meaning: Meaning, next: State): void {
    this.#steps.push({ what: meaning, who: this.#who, next });
  }
}

const other = (side: Side): Side => (side === "reader" ? "writer" : "reader");
