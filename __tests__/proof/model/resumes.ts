import { lockAt } from "../../../lib/protocol/addresses.js";
import { apply } from "../../../lib/protocol/apply.js";
import type { Sighting } from "../../../lib/protocol/may-take.js";
import type { Attributes } from "../../../lib/protocol/row.js";
import { wasApplied } from "../../../lib/protocol/was-applied.js";
import type { Take, Transfer, Vacate } from "../../../lib/protocol/writes.js";
import { RESUME_RULES, type ResumeInvariant, type ResumeLimits, type ResumeRules } from "./resume-switches.js";
import type { Space, StepOf } from "./search.js";
import { rowOf, sightingOf } from "./watching.js";

/** Who gets the token. `reads`: the row that it has read has the uuid of the token. `unsure`: its resume is on its way. */
interface Host {
  readonly stage: "idle" | "reads" | "unsure" | "held";
  readonly resumes: number;
  readonly takes: number;
  /** What it asks for, or holds. */
  readonly uuid: string | undefined;
  /** The row that was in its way. */
  readonly seen: Sighting | undefined;
  /** Its uuids that no section uses: a row with one of them it takes over at once. */
  readonly abandoned: readonly string[];
}

interface State {
  readonly row: Attributes | undefined;
  readonly sent: readonly Sent[];
  /** Who hands the lock off. `unsure`: it has had no answer yet. `handed`: others have its token. */
  readonly giver: "holds" | "unsure" | "handed" | "ended";
  readonly hosts: readonly Host[];
  /** The stamps that have passed: others may take these leases over, and no section relies on them. */
  readonly over: readonly number[];
  /** Nobody else is to have the lock before its hold is over, unless a holder dies. */
  readonly holdLasts: boolean;
  /** Uuids that somebody releases where the row has them. */
  readonly leaves: readonly string[];
  readonly givenUp: readonly string[];
  /** Uuids that end by their stamps alone: of a host that has crashed, or brought by a late copy. */
  readonly excused: readonly string[];
  readonly isOpened: boolean;
  readonly lateCopies: number;
  readonly crashes: number;
}

type Sent = Take | Transfer | Vacate;

interface Step extends StepOf<State> {
  readonly broken?: ResumeInvariant | undefined;
}

const AT = lockAt("model");
const [GIVER, TOKEN] = ["giver", "token"];
/** Stamps: the first one of the giver, that of its renewal, that of the hand-off, and the end of the hold. */
const [FIRST, RENEWED, HANDED, HOLD] = [10, 11, 12, 900];

const NOTHING = { stage: "idle", uuid: undefined, seen: undefined, abandoned: [] } as const;
const BY_HOST = { ttlMs: 1, owner: "host", remembers: "nothing" } as const;
const TAKE: Take = {
  ...{ kind: "take", at: AT, uuid: GIVER, expires: RENEWED, acquired: 0, knowledge: { earliest: 1 } },
  ...BY_HOST,
};
const HAND_OFF: Transfer = {
  ...{ kind: "transfer", at: AT, from: GIVER, after: FIRST, uuid: TOKEN, expires: HANDED },
  ...BY_HOST,
};

/** Every run of a hand-off, and of the hosts that get its token or take the lock. */
export function resumesOf(limits: ResumeLimits, off: Partial<ResumeRules> = {}): Space<State, Step> {
  const { resumes, hasHold, lateCopies, crashes } = limits;
  const taken = apply(undefined, TAKE);
  const first: State = {
    row: taken.kind === "applied" ? taken.after : undefined,
    ...{ sent: [], giver: "holds", hosts: resumes.map(() => ({ ...NOTHING, resumes: 0, takes: 0 })) },
    ...{ over: hasHold ? [] : [HOLD], holdLasts: hasHold, leaves: [], givenUp: [], excused: [], isOpened: false },
    ...{ lateCopies, crashes },
  };
  const rules = { ...RESUME_RULES, ...off };
  return { beginnings: [first], keyOf, stepsFrom: (state) => stepsFrom(state, rules, limits), brokenAt };
}

const keyOf = ({ row, sent, ...rest }: State): string => {
  const late = rest.lateCopies > 0 ? sent.map(wordsOf).sort() : [];
  return JSON.stringify([row?.uuid, row?.expires, late, rest], (_, part) => part ?? null);
};

function* stepsFrom(state: State, rules: ResumeRules, limits: ResumeLimits): Generator<Step> {
  yield* giverSteps(state, rules);
  for (const index of state.hosts.keys()) yield* hostSteps(state, index, rules, limits);
  for (const uuid of state.leaves) {
    if (state.row?.uuid === uuid) yield { what: `${uuid} is released`, next: released(state, uuid, rules) };
  }
  yield* timePasses(state, rules);
  if (state.lateCopies === 0) return;
  for (const write of state.sent) {
    const { state: after } = arrived({ ...state, lateCopies: state.lateCopies - 1 }, write);
    if (after.row === state.row) continue;
    const isExcused = write.kind === "take" && !isAwaited(state, write.uuid);
    const excused = isExcused ? [...state.excused, write.uuid] : state.excused;
    yield { what: `late ${wordsOf(write)}`, next: { ...after, excused } };
  }
}

function* giverSteps(state: State, { releasesBoth }: ResumeRules): Generator<Step> {
  const { giver } = state;
  if (giver === "holds") {
    const sent: State = { ...state, sent: [...state.sent, HAND_OFF], giver: "unsure" };
    yield { what: "the lock is handed off", next: { ...arrived(sent, HAND_OFF).state, giver: "handed" } };
    yield { what: "a hand-off does not arrive", next: sent };
    yield { what: "a hand-off has no answer", next: arrived(sent, HAND_OFF).state };
  } else if (giver === "unsure") {
    const { state: after, isApplied, by } = arrived(state, HAND_OFF);
    const isHanded = isApplied || wasApplied(HAND_OFF, rowOf(by)) === "yes";
    if (isHanded) yield { what: "the lock is handed off", next: { ...after, giver: "handed" } };
    const leaves = [...state.leaves, ...(releasesBoth ? [GIVER, TOKEN] : [GIVER])];
    yield { what: "a hand-off is given up", next: { ...state, giver: "ended", leaves } };
  }
}

function* hostSteps(state: State, index: number, rules: ResumeRules, limits: ResumeLimits): Generator<Step> {
  const host = state.hosts[index] as Host;
  const letter = "AB"[index] as string;
  const { row } = state;
  switch (host.stage) {
    case "idle": {
      if (state.giver === "handed" && host.resumes < (limits.resumes[index] ?? 0)) {
        const stage = row?.uuid === TOKEN && !state.over.includes(HANDED) ? "reads" : "idle";
        const next = withHost(state, index, { ...host, stage, resumes: host.resumes + 1 });
        yield {
          what: `${letter} reads ${stage === "reads" ? "the row of the token" : "that the token is spent"}`,
          next,
        };
      }
      if (host.takes < (limits.takes[index] ?? 0)) yield* takes(state, index);
      return;
    }
    case "reads": {
      const resume = resumeOf(state, index, rules);
      const asking: State = { ...state, sent: [...state.sent, resume] };
      const sent = withHost(asking, index, { ...host, stage: "unsure", uuid: resume.uuid });
      yield answered(sent, index, resume, rules);
      yield { what: `${letter} resumes, and nothing arrives`, next: sent };
      yield { what: `${letter} resumes, and hears nothing`, next: arrived(sent, resume).state };
      break;
    }
    case "unsure":
      yield answered(state, index, resumeOf(state, index, rules), rules);
      yield { what: `${letter} gives up`, next: gaveUp(state, index, rules) };
      break;
    case "held":
      yield { what: `${letter} unlocks`, next: left(state, index) };
      break;
    default:
      host.stage satisfies never;
  }
  if (state.crashes > 0) yield { what: `${letter} crashes`, next: crashed(state, index) };
}

function resumeOf({ hosts, row }: State, index: number, { hasFreshUuid, namesToken }: ResumeRules): Transfer {
  const { resumes } = hosts[index] as Host;
  const uuid = hasFreshUuid ? `${"AB"[index]}${resumes}` : TOKEN;
  const from = namesToken || typeof row?.uuid !== "string" ? TOKEN : row.uuid;
  const expires = 20 + 10 * index + resumes;
  return { kind: "transfer", at: AT, from, uuid, expires, ...BY_HOST };
}

/** It takes the lock if it knows nothing against that, and looks at the row that was in its way. */
function* takes(state: State, index: number): Generator<Step> {
  const host = state.hosts[index] as Host;
  const letter = "AB"[index];
  const { row, over } = state;
  const { seen } = host;
  if (seen !== undefined && (row?.uuid !== seen.uuid || row?.expires !== seen.expires)) {
    yield { what: `${letter} looks`, next: withHost(state, index, { ...host, seen: row && sightingOf(row) }) };
  }
  const isFree = seen === undefined || over.includes(seen.expires) || host.abandoned.includes(seen.uuid ?? "");
  if (!isFree) return;
  const uuid = `${letter}t${host.takes}`;
  const take: Take = {
    ...TAKE,
    uuid,
    expires: 60 + 10 * index + host.takes,
    knowledge: { earliest: 1, unchanged: seen },
  };
  const { state: after, by } = arrived({ ...state, sent: [...state.sent, take] }, take);
  if (by !== undefined) {
    const next = withHost(state, index, { ...host, seen: sightingOf(by) });
    yield { what: `${letter} is refused`, next };
    return;
  }
  const isDead = row !== undefined && row.uuid !== TOKEN && over.includes(Number(row.expires));
  const next = withHost(after, index, { ...host, stage: "held", takes: host.takes + 1, uuid, seen: undefined });
  const broken = state.holdLasts && !isDead ? "a hold lasts" : undefined;
  yield { what: `${letter} takes the lock`, next: { ...next, holdLasts: false }, broken };
}

/** A copy of its resume arrives, and so does the answer. */
function answered(state: State, index: number, resume: Transfer, rules: ResumeRules): Step {
  const host = state.hosts[index] as Host;
  const letter = "AB"[index];
  const { state: after, isApplied, by } = arrived(state, resume);
  const verdict = isApplied ? "yes" : wasApplied(resume, rowOf(by));
  if (verdict === "no" || (verdict === "maybe" && rules.asksForOwn)) {
    return { what: `${letter} hears that the token is spent`, next: withHost(after, index, idle(host)) };
  }
  if (state.over.includes(resume.expires)) return { what: `${letter} is too late`, next: gaveUp(after, index, rules) };
  const next: State = { ...withHost(after, index, { ...host, stage: "held" }), isOpened: true };
  return { what: `${letter} goes on with the lock`, next, broken: brokenByBegin(state, resume.uuid) };
}

function brokenByBegin({ isOpened, givenUp }: State, uuid: string): ResumeInvariant | undefined {
  if (givenUp.includes(uuid)) return "what is given up is never held";
  return isOpened ? "a token is resumed once" : undefined;
}

const idle = (host: Host): Host => ({ ...host, stage: "idle", uuid: undefined });

/** The caller has had its answer, and no section uses what was taken or may still be. */
function gaveUp(state: State, index: number, rules: ResumeRules): State {
  const host = state.hosts[index] as Host;
  const uuid = host.uuid as string;
  const isAbandoned = state.over.includes(HOLD) || !rules.abandonsAfterHold;
  const after = { ...host, abandoned: isAbandoned ? [...host.abandoned, uuid] : host.abandoned };
  const leaves = rules.looksForGivenUp ? union(state.leaves, uuid) : state.leaves;
  const next = { ...state, leaves, givenUp: union(state.givenUp, uuid) };
  return withHost(next, index, rules.givesUpForGood ? idle(after) : after);
}

/** The section has ended, or has lost its lease: the row is released. */
function left(state: State, index: number): State {
  const host = state.hosts[index] as Host;
  return withHost({ ...state, leaves: union(state.leaves, host.uuid as string) }, index, idle(host));
}

/** It starts again, and knows nothing: the token may be delivered to it again. */
function crashed(state: State, index: number): State {
  const { resumes, takes, uuid } = state.hosts[index] as Host;
  const own = [...state.leaves, ...(uuid === undefined ? [] : [uuid])].filter((one) => one[0] === "AB"[index]);
  const leaves = state.leaves.filter((one) => !own.includes(one));
  const next = { ...state, leaves, excused: own.reduce(union, state.excused), crashes: state.crashes - 1 };
  return withHost(next, index, { ...NOTHING, resumes, takes });
}

/** What came of a hand-off leaves the rest of its hold, and a lock that was taken since leaves nothing. */
function released(state: State, uuid: string, { leavesHold }: ResumeRules): State {
  const hasHold = !state.over.includes(HOLD) && uuid[1] !== "t" && (leavesHold || !state.givenUp.includes(uuid));
  const leaves = hasHold ? ({ kind: "held", expires: HOLD, ttlMs: 1 } as const) : ({ kind: "free" } as const);
  const vacate: Vacate = { kind: "vacate", at: AT, uuid, leaves, remembers: "nothing" };
  const rest = state.leaves.filter((other) => other !== uuid);
  return arrived({ ...state, sent: [...state.sent, vacate], leaves: rest }, vacate).state;
}

/** The lease of a row ends, or the hold. A hand-off lasts for as long as its hold. */
function* timePasses(state: State, { lastsForHold }: ResumeRules): Generator<Step> {
  const { row, over, hosts, giver } = state;
  const expires = Number(row?.expires ?? HOLD);
  const after = (passed: number): State => ({ ...state, over: [...over, passed].sort() });
  if (!over.includes(HOLD)) yield { what: "the hold is over", next: { ...after(HOLD), holdLasts: false } };
  const isHandedOff = expires === HANDED && lastsForHold && !over.includes(HOLD);
  if (expires === HOLD || over.includes(expires) || isHandedOff) return;
  const what = `the lease of ${row?.uuid} ends`;
  const index = hosts.findIndex(({ stage, uuid }) => stage === "held" && uuid === row?.uuid);
  if (index !== -1) yield { what, next: left(after(expires), index) };
  else if (giver === "holds") yield { what, next: { ...after(expires), giver: "ended", leaves: [GIVER] } };
  else yield { what, next: after(expires) };
}

function isAwaited({ giver, hosts, leaves }: State, uuid: string): boolean {
  const isGivers = uuid === GIVER && (giver === "holds" || giver === "unsure");
  const isTokens = uuid === TOKEN && (giver === "handed" || giver === "unsure");
  return isGivers || isTokens || leaves.includes(uuid) || hosts.some((host) => host.uuid === uuid);
}

function brokenAt(state: State): ResumeInvariant | undefined {
  const { row, over, excused, hosts, giver } = state;
  const holders = hosts.filter(({ stage }) => stage === "held").length + (giver === "holds" ? 1 : 0);
  if (holders > 1) return "one holder";
  if (typeof row?.uuid !== "string" || over.includes(Number(row.expires)) || excused.includes(row.uuid))
    return undefined;
  return isAwaited(state, row.uuid) ? undefined : "nothing is left behind";
}

/** @returns also the row that has refused the write. */
function arrived(state: State, write: Sent) {
  const applied = apply(state.row, write);
  if (applied.kind === "refused") return { state, isApplied: false, by: applied.by };
  return { state: { ...state, row: applied.after }, isApplied: true, by: undefined };
}

const wordsOf = (write: Sent): string =>
  `${write.kind} ${write.uuid} ${write.kind === "take" ? JSON.stringify(write.knowledge.unchanged) : ""}`;

const union = (some: readonly string[], one: string): readonly string[] => [...new Set([...some, one])].sort();

const withHost = (state: State, index: number, host: Host): State => {
  return { ...state, hosts: state.hosts.with(index, host) };
};
