import { lockAt } from "../../../lib/protocol/addresses.js";
import { apply } from "../../../lib/protocol/apply.js";
import type { Attributes, Row } from "../../../lib/protocol/row.js";
import { wasApplied } from "../../../lib/protocol/was-applied.js";
import type { RecordSuccess, Take, Write } from "../../../lib/protocol/writes.js";
import type { Space, StepOf } from "./search.js";
import type { Switches } from "./switch.js";
import { rowOf } from "./watching.js";

const RULES = {
  /** The take for a further run asks for the attempt that was seen. Without, it counts one up, whatever it meets. */
  attemptAsSeen: true,
  /** A success was recorded only if the row shows the run's own attempt. */
  ownAttempt: true,
  /** The same: only if it shows that the tick is not due any more. */
  notDue: true,
  /** The record ends the tick: no further run is granted. */
  recordEnds: true,
  /** `due` and `attempt` count only for the tick that `due` names. */
  dueNamesTick: true,
};

type Rules = typeof RULES;

interface Limits {
  /** The tick that each run is for. */
  readonly ticks: readonly number[];
  readonly maxAttempts: number;
  readonly lateCopies: number;
  /** How often a process that knows no such ticks takes the row for tick 6: it keeps attributes that it does not know. */
  readonly olderUses: number;
}

export const TICKS = {
  ticks: { ticks: [5, 5, 5], maxAttempts: 2, lateCopies: 1, olderUses: 0 },
  "late copies of ticks": { ticks: [5, 5], maxAttempts: 2, lateCopies: 4, olderUses: 0 },
  "ticks and an older process": { ticks: [5, 5, 6], maxAttempts: 3, lateCopies: 1, olderUses: 1 },
} satisfies Record<string, Limits>;

type Invariant =
  | "no late copy uses an attempt up"
  | "a run that is told of its success has the one on record"
  | "no run begins after a success"
  | "a tick has no more runs than it may"
  | "a tick that was granted once is not run again";

const TWO_RUNS: Partial<Limits> = { ticks: [5, 5], maxAttempts: 3, lateCopies: 0 };

export const TICK_SWITCHES: Switches<keyof typeof TICKS, Limits, Rules, Invariant> = {
  ticks: {
    "a take counts an attempt up from what it meets": {
      takesOut: ["protocol#ticks: The first form"],
      more: { ...TWO_RUNS, lateCopies: 1 },
      breaks: "no late copy uses an attempt up",
      off: { attemptAsSeen: false },
    },
    "a success counts as recorded whichever attempt the row shows": {
      takesOut: ["protocol#ticks: The success"],
      more: TWO_RUNS,
      breaks: "a run that is told of its success has the one on record",
      off: { ownAttempt: false },
    },
    "a success counts as recorded although its tick is due": {
      takesOut: ["protocol#ticks: The success"],
      more: TWO_RUNS,
      breaks: "a run that is told of its success has the one on record",
      off: { notDue: false },
    },
    "a recorded success leaves its tick due": {
      takesOut: ["protocol#ticks: The success"],
      more: TWO_RUNS,
      breaks: "no run begins after a success",
      off: { recordEnds: false },
    },
  },
  "ticks and an older process": {
    "`due` counts for whatever tick the row has": {
      takesOut: ["protocol#ticks: With untilSuccess"],
      more: { ticks: [5, 6], lateCopies: 0 },
      breaks: "a tick that was granted once is not run again",
      off: { dueNamesTick: false },
    },
  },
};

/** A host that asks for a tick once. */
interface Run {
  readonly stage: "idle" | "looked" | "granted" | "running" | "unsure" | "ended";
  /** How many runs of its tick had begun when it looked; undefined where the tick was not due. */
  readonly seen: number | undefined;
  readonly attempt: number;
}

interface State {
  readonly lock: Attributes | undefined;
  readonly sent: readonly Write[];
  readonly runs: readonly Run[];
  /** How many runs of a tick have begun, by tick. */
  readonly begun: Readonly<Record<number, number>>;
  /** Whose success is on the row, or was, by tick. */
  readonly recorded: Readonly<Record<number, string>>;
  /** Who has been told that its success is recorded, by tick. */
  readonly told: Readonly<Record<number, string>>;
  readonly lateCopies: number;
  readonly olderUses: number;
  readonly olderRan: boolean;
}

interface Step extends StepOf<State> {
  readonly broken?: Invariant | undefined;
}

const AT = lockAt("model");
const OLDER_TICK = 6;
/** Stamps of leases: that of a run may count as over at any moment, or not. */
const [NOBODY_IS_OVER, ALL_ARE_OVER] = [1, 100];

const idOf = (index: number): string => `run ${index}`;

/** Every run of some hosts that ask for a tick. */
export function ticksOf(limits: Limits, off: Partial<Rules> = {}): Space<State, Step> {
  const first: State = {
    lock: undefined,
    sent: [],
    runs: limits.ticks.map(() => ({ stage: "idle", seen: undefined, attempt: 0 })),
    begun: {},
    recorded: {},
    told: {},
    lateCopies: limits.lateCopies,
    olderUses: limits.olderUses,
    olderRan: false,
  };
  const rules = { ...RULES, ...off };
  return { beginnings: [first], keyOf, stepsFrom: (state) => stepsFrom(state, rules, limits) };
}

const keyOf = ({ lock, sent, ...rest }: State): string =>
  JSON.stringify([lock?.uuid, lock?.expires, lock?.tick, lock?.due, lock?.attempt, sent.map(wordsOf), rest]);

function* stepsFrom(state: State, rules: Rules, limits: Limits): Generator<Step> {
  for (const index of state.runs.keys()) yield* runSteps(state, index, rules, limits);
  if (state.lateCopies > 0) {
    for (const write of state.sent) {
      const next = arrived({ ...state, lateCopies: state.lateCopies - 1 }, write, rules).state;
      yield { what: `late ${wordsOf(write)}`, next, broken: countedTooFar(next) };
    }
  }
  const { lock } = state;
  if (state.olderUses > 0 && lock !== undefined && Number(lock.tick) < OLDER_TICK) {
    const taken = { ...lock, tick: OLDER_TICK, uuid: "older", expires: 50 };
    const next = { ...state, lock: taken, olderUses: state.olderUses - 1, olderRan: true };
    yield { what: "an older process", next };
  }
}

function* runSteps(state: State, index: number, rules: Rules, limits: Limits): Generator<Step> {
  const run = state.runs[index] as Run;
  const uuid = idOf(index);
  const tick = limits.ticks[index] as number;
  const become = (from: State, change: Partial<Run>): State => ({
    ...from,
    runs: from.runs.with(index, { ...run, ...change }),
  });
  const row = rowOf(state.lock);
  const record: RecordSuccess = { kind: "record", at: AT, uuid, tick, attempt: run.attempt };
  switch (run.stage) {
    case "idle": {
      const isDue = rules.dueNamesTick ? row?.due === tick && row.tick === tick : row?.due !== undefined;
      const seen = isDue ? row?.attempt : undefined;
      yield { what: `${uuid} looks`, next: become(state, { stage: "looked", seen }) };
      return;
    }
    case "looked": {
      const attempt = (run.seen ?? 0) + 1;
      if (attempt > limits.maxAttempts) return;
      for (const earliest of [NOBODY_IS_OVER, ALL_ARE_OVER]) {
        const take: Take = {
          ...{ kind: "take", at: AT, uuid, expires: 50, ttlMs: 1, owner: "host", acquired: 0, remembers: "tick" },
          ...{ knowledge: { earliest }, tick, attempt, seenAttempt: run.seen },
        };
        const { state: next, isApplied } = arrived({ ...state, sent: [...state.sent, take] }, take, rules);
        const granted = become(next, isApplied ? { stage: "granted", attempt } : { stage: "ended" });
        yield { what: `${uuid} takes`, next: granted };
      }
      return;
    }
    case "granted": {
      // What the model of the mutex shows: nobody begins on a lease that another may have taken over.
      if (row?.uuid !== uuid) return;
      const begun = { ...state.begun, [tick]: (state.begun[tick] ?? 0) + 1 };
      const broken = brokenByBegin(state, tick, limits);
      yield { what: `${uuid} begins`, next: { ...become(state, { stage: "running" }), begun }, broken };
      const back: Write = {
        ...{ kind: "vacate", at: AT, uuid, leaves: { kind: "free" }, remembers: "tick", attempt: run.attempt - 1 },
      };
      const given = arrived({ ...state, sent: [...state.sent, back] }, back, rules).state;
      yield { what: `${uuid} gives back`, next: become(given, { stage: "ended" }) };
      return;
    }
    case "running": {
      yield { what: `${uuid} fails`, next: become(state, { stage: "ended" }) };
      const { state: next, isApplied } = arrived({ ...state, sent: [...state.sent, record] }, record, rules);
      if (isApplied) yield* told(become(next, { stage: "ended" }), uuid, tick);
      yield { what: `${uuid} hears nothing of its record`, next: become(next, { stage: "unsure" }) };
      return;
    }
    case "unsure": {
      const { state: next, isApplied } = arrived(state, record, rules);
      if (isApplied || isRecorded(record, row, rules)) yield* told(become(next, { stage: "ended" }), uuid, tick);
      return;
    }
    case "ended":
      return;
    default:
      run.stage satisfies never;
  }
}

/** What a host makes of the row that has refused its record. */
function isRecorded(record: RecordSuccess, row: Row | undefined, { ownAttempt, notDue }: Rules): boolean {
  const shown = row && {
    ...row,
    attempt: ownAttempt ? row.attempt : record.attempt,
    due: notDue ? row.due : undefined,
  };
  return wasApplied(record, shown) === "yes";
}

function* told(state: State, uuid: string, tick: number): Generator<Step> {
  const isFirst = state.recorded[tick] === uuid && state.told[tick] === undefined;
  yield {
    what: `${uuid} is told that its success is recorded`,
    next: { ...state, told: { ...state.told, [tick]: uuid } },
    broken: isFirst ? undefined : "a run that is told of its success has the one on record",
  };
}

function brokenByBegin({ recorded, begun, olderRan }: State, tick: number, limits: Limits): Invariant | undefined {
  if (recorded[tick] !== undefined) return "no run begins after a success";
  if ((begun[tick] ?? 0) >= limits.maxAttempts) return "a tick has no more runs than it may";
  return tick === OLDER_TICK && olderRan ? "a tick that was granted once is not run again" : undefined;
}

/** A late copy counts no run that nobody asks for: or the tick is given up too early. */
function countedTooFar({ lock, sent }: State): Invariant | undefined {
  const { attempt = 0, due } = rowOf(lock) ?? {};
  const takes = sent.filter((write) => write.kind === "take" && write.tick === due);
  return due !== undefined && attempt > takes.length ? "no late copy uses an attempt up" : undefined;
}

function arrived(state: State, write: Write, rules: Rules): { readonly state: State; readonly isApplied: boolean } {
  const { lock } = state;
  const applied = apply(metBy(write, lock, rules), asSent(write, lock, rules));
  if (applied.kind === "refused") return { state, isApplied: false };
  const isSuccess = write.kind === "record";
  const recorded = isSuccess ? { [write.tick]: write.uuid, ...state.recorded } : state.recorded;
  const after = isSuccess && !rules.recordEnds ? lock : applied.after;
  return { state: { ...state, lock: after, recorded }, isApplied: true };
}

/** The row as a write meets it: without the rule, `due` is taken for that of whatever tick the row has. */
function metBy(write: Write, lock: Attributes | undefined, { dueNamesTick }: Rules): Attributes | undefined {
  const isForeign = write.kind === "take" && !dueNamesTick && lock?.due !== undefined;
  return isForeign ? { ...lock, due: lock.tick as number } : lock;
}

/** The write as it is sent: without the rule, a take counts up from what it meets. */
function asSent(write: Write, lock: Attributes | undefined, { attemptAsSeen }: Rules): Write {
  if (attemptAsSeen || write.kind !== "take" || write.seenAttempt === undefined) return write;
  const seenAttempt = Number(lock?.attempt ?? 0);
  return { ...write, seenAttempt, attempt: seenAttempt + 1 };
}

const wordsOf = (write: Write): string =>
  `${write.kind} of ${"uuid" in write ? write.uuid : ""}${write.kind === "take" ? ` ${write.knowledge.earliest} ${write.seenAttempt}` : ""}`;
