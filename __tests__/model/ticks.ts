import { lockAt } from "../../lib/protocol/addresses.js";
import { apply } from "../../lib/protocol/apply.js";
import { type Attributes, parseRow, type Row } from "../../lib/protocol/row.js";
import { wasApplied } from "../../lib/protocol/was-applied.js";
import type { RecordSuccess, Take, Write } from "../../lib/protocol/writes.js";
import { breadthFirst, type Explored, type Next } from "./breadth-first.js";

/** The rules of ticks until success that can be switched off. */
export interface TickRules {
  /** The take for a further run asks for the attempt that was seen. Without, it counts one up, whatever it meets. */
  readonly attemptAsSeen: boolean;
  /** A success was recorded only if the row shows the run's own attempt. */
  readonly ownAttempt: boolean;
  /** The same: only if it shows that the tick is not due any more. */
  readonly notDue: boolean;
  /** The record ends the tick: no further run is granted. */
  readonly recordEnds: boolean;
  /** `due` and `attempt` count only for the tick that `due` names. */
  readonly dueNamesTick: boolean;
}

export interface TickLimits {
  /** The tick that each run is for. */
  readonly ticks: readonly number[];
  readonly maxAttempts: number;
  readonly lateCopies: number;
  /** How often a process that knows no such ticks takes the row for tick 6: it keeps attributes that it does not know. */
  readonly olderUses: number;
}

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

const AT = lockAt("model");
const OLDER_TICK = 6;
/** Stamps of leases: that of a run may count as over at any moment, or not. */
const [NOBODY_IS_OVER, ALL_ARE_OVER] = [1, 100];

const idOf = (index: number): string => `run ${index}`;

/** Every interleaving is explored, the shortest first. */
export function exploreTicks(rules: TickRules, limits: TickLimits): Explored {
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
  const keyOf = ({ lock, sent, ...rest }: State): string =>
    JSON.stringify([lock?.uuid, lock?.expires, lock?.tick, lock?.due, lock?.attempt, sent.map(wordsOf), rest]);
  return breadthFirst(first, keyOf, (state) => stepsFrom(state, rules, limits));
}

function* stepsFrom(state: State, rules: TickRules, limits: TickLimits): Generator<Next<State>> {
  for (const index of state.runs.keys()) yield* runSteps(state, index, rules, limits);
  if (state.lateCopies > 0) {
    for (const write of state.sent) {
      const next = arrived({ ...state, lateCopies: state.lateCopies - 1 }, write, rules);
      yield { what: `late ${wordsOf(write)}`, state: next.state, violation: countedTooFar(next.state) };
    }
  }
  const { lock } = state;
  if (state.olderUses > 0 && lock !== undefined && Number(lock.tick) < OLDER_TICK) {
    const taken = { ...lock, tick: OLDER_TICK, uuid: "older", expires: 50 };
    yield {
      what: "an older process",
      state: { ...state, lock: taken, olderUses: state.olderUses - 1, olderRan: true },
    };
  }
}

function* runSteps(state: State, index: number, rules: TickRules, limits: TickLimits): Generator<Next<State>> {
  const run = state.runs[index] as Run;
  const uuid = idOf(index);
  const tick = limits.ticks[index] as number;
  const become = (from: State, change: Partial<Run>): State => ({
    ...from,
    runs: from.runs.map((one, other) => (other === index ? { ...one, ...change } : one)),
  });
  const row = rowOf(state.lock);
  const record: RecordSuccess = { kind: "record", at: AT, uuid, tick, attempt: run.attempt };
  switch (run.stage) {
    case "idle": {
      const isDue = rules.dueNamesTick ? row?.due === tick && row.tick === tick : row?.due !== undefined;
      yield {
        what: `${uuid} looks`,
        state: become(state, { stage: "looked", seen: isDue ? row?.attempt : undefined }),
      };
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
        yield { what: `${uuid} takes`, state: granted };
      }
      return;
    }
    case "granted": {
      // What the model of the mutex shows: nobody begins on a lease that another may have taken over.
      if (row?.uuid !== uuid) return;
      const begun = { ...state.begun, [tick]: (state.begun[tick] ?? 0) + 1 };
      const violation = wrongBegin(state, tick, begun[tick] as number, limits);
      yield { what: `${uuid} begins`, state: { ...become(state, { stage: "running" }), begun }, violation };
      const back: Write = {
        ...{ kind: "vacate", at: AT, uuid, leaves: { kind: "free" }, remembers: "tick", attempt: run.attempt - 1 },
      };
      const given = arrived({ ...state, sent: [...state.sent, back] }, back, rules).state;
      yield { what: `${uuid} gives back`, state: become(given, { stage: "ended" }) };
      return;
    }
    case "running": {
      yield { what: `${uuid} fails`, state: become(state, { stage: "ended" }) };
      const { state: next, isApplied } = arrived({ ...state, sent: [...state.sent, record] }, record, rules);
      if (isApplied) yield* told(become(next, { stage: "ended" }), uuid, tick);
      yield { what: `${uuid} hears nothing of its record`, state: become(next, { stage: "unsure" }) };
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
function isRecorded(record: RecordSuccess, row: Row | undefined, { ownAttempt, notDue }: TickRules): boolean {
  const shown = row && {
    ...row,
    attempt: ownAttempt ? row.attempt : record.attempt,
    due: notDue ? row.due : undefined,
  };
  return wasApplied(record, shown) === "yes";
}

function* told(state: State, uuid: string, tick: number): Generator<Next<State>> {
  const own = state.recorded[tick] === uuid;
  yield {
    what: `${uuid} is told that its success is recorded`,
    state: { ...state, told: { ...state.told, [tick]: uuid } },
    violation:
      own && state.told[tick] === undefined ? undefined : `the success of ${uuid} is not the one that is recorded`,
  };
}

function wrongBegin(state: State, tick: number, begun: number, { maxAttempts }: TickLimits): string | undefined {
  if (state.recorded[tick] !== undefined) return `tick ${tick} is run after its success`;
  if (begun > maxAttempts) return `tick ${tick} is run ${begun} times`;
  return tick === OLDER_TICK && state.olderRan ? "a tick that was granted once is run again" : undefined;
}

/** A late copy counts no run that nobody asks for: or the tick is given up too early. */
function countedTooFar({ lock, sent }: State): string | undefined {
  const row = rowOf(lock);
  const takes = sent.filter((write) => write.kind === "take" && write.tick === row?.due);
  const { attempt = 0, due } = row ?? {};
  return due !== undefined && attempt > takes.length
    ? `${attempt} attempts are counted, of ${takes.length}`
    : undefined;
}

function arrived(state: State, write: Write, rules: TickRules): { readonly state: State; readonly isApplied: boolean } {
  const { lock } = state;
  const applied = apply(metBy(write, lock, rules), asSent(write, lock, rules));
  if (applied.kind === "refused") return { state, isApplied: false };
  const isSuccess = write.kind === "record";
  const recorded = isSuccess ? { [write.tick]: write.uuid, ...state.recorded } : state.recorded;
  const after = isSuccess && !rules.recordEnds ? lock : applied.after;
  return { state: { ...state, lock: after, recorded }, isApplied: true };
}

/** The row as a write meets it: without the rule, `due` is taken for that of whatever tick the row has. */
function metBy(write: Write, lock: Attributes | undefined, { dueNamesTick }: TickRules): Attributes | undefined {
  const isForeign = write.kind === "take" && !dueNamesTick && lock?.due !== undefined;
  return isForeign ? { ...lock, due: lock.tick as number } : lock;
}

/** The write as it is sent: without the rule, a take counts up from what it meets. */
function asSent(write: Write, lock: Attributes | undefined, { attemptAsSeen }: TickRules): Write {
  if (attemptAsSeen || write.kind !== "take" || write.seenAttempt === undefined) return write;
  const seenAttempt = Number(lock?.attempt ?? 0);
  return { ...write, seenAttempt, attempt: seenAttempt + 1 };
}

function rowOf(item: Attributes | undefined): Row | undefined {
  const parsed = item && parseRow(AT, item);
  return parsed && "row" in parsed ? parsed.row : undefined;
}

const wordsOf = (write: Write): string =>
  `${write.kind} of ${"uuid" in write ? write.uuid : ""}${write.kind === "take" ? ` ${write.knowledge.earliest} ${write.seenAttempt}` : ""}`;
