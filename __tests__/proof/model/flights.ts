import { lockAt, resultAt } from "../../../lib/protocol/addresses.js";
import { apply } from "../../../lib/protocol/apply.js";
import { countingResult, overBy } from "../../../lib/protocol/flight-result.js";
import type { Attributes } from "../../../lib/protocol/row.js";
import type { Write } from "../../../lib/protocol/writes.js";
import type { Space, StepOf } from "./search.js";
import type { Switches } from "./switch.js";
import { rowOf } from "./watching.js";

const RULES = {
  /** A take names the result that was seen last. */
  takeNamesLast: true,
  /** A value counts only where the lock's row names it. */
  valueIsNamed: true,
  /** A value that nothing names may be that of a flight which was over. */
  unnamedMayBeOver: true,
  /** The first look of a call is consistent, and comes after the call. */
  looksFirst: true,
};

type Rules = typeof RULES;

interface Limits {
  readonly flights: number;
  readonly lateCopies: number;
  /** How often a process that knows no flights takes the lock and deletes its row. */
  readonly olderUses: number;
}

export const FLIGHTS = {
  flights: { flights: 2, lateCopies: 3, olderUses: 0 },
  "flights and an older process": { flights: 2, lateCopies: 2, olderUses: 1 },
} satisfies Record<string, Limits>;

type Invariant = "no call gets a flight that was over before it" | "no call gets a flight that has not ended";

export const FLIGHT_SWITCHES: Switches<keyof typeof FLIGHTS, Limits, Rules, Invariant> = {
  flights: {
    "a flight's take names no result": {
      takesOut: ["protocol#late-copies: take of a flight", "single-flight#what-is-promised: With freshMs: 0"],
      breaks: "no call gets a flight that was over before it",
      off: { takeNamesLast: false },
    },
    "a value counts that the lock's row does not name": {
      takesOut: ["protocol#late-copies: take of a flight"],
      more: { lateCopies: 0 },
      breaks: "no call gets a flight that has not ended",
      off: { valueIsNamed: false },
    },
    "a call does not look before it counts what is over": {
      takesOut: ["single-flight#what-is-promised: With freshMs: 0"],
      more: { flights: 1, lateCopies: 0 },
      breaks: "no call gets a flight that was over before it",
      off: { looksFirst: false },
    },
  },
  "flights and an older process": {
    "a value that nothing names is taken for one of a later flight": {
      takesOut: ["single-flight#what-is-promised: With freshMs: 0"],
      more: { flights: 1 },
      breaks: "no call gets a flight that was over before it",
      off: { unnamedMayBeOver: false },
    },
  },
};

/** A flight: `looked` has seen which result was the last. */
interface Flight {
  readonly stage: "idle" | "looked" | "taken" | "put" | "ended";
  readonly lastId: string | undefined;
  /** Whether its release has named its result. */
  readonly isOver: boolean;
}

/** A call with `freshMs` 0, and which flights were over when it began. */
interface Call {
  readonly stage: "idle" | "asked" | "looked" | "served";
  readonly over: readonly string[];
  /** What it believes to have been over. */
  readonly seen: readonly string[];
}

interface State {
  readonly lock: Attributes | undefined;
  readonly value: Attributes | undefined;
  readonly sent: readonly Write[];
  readonly flights: readonly Flight[];
  readonly call: Call;
  readonly lateCopies: number;
  readonly olderUses: number;
}

interface Step extends StepOf<State> {
  readonly broken?: Invariant | undefined;
}

const AT = lockAt("model");
const VALUE_AT = resultAt("model");
/** Stamps of leases: those of a flight may count as over, or not. */
const [NOBODY_IS_OVER, ALL_ARE_OVER] = [1, 100];

const idOf = (index: number): string => `flight ${index}`;

/** Every run of some flights and a call. */
export function flightsOf({ flights, ...limits }: Limits, off: Partial<Rules> = {}): Space<State, Step> {
  const idle: Flight = { stage: "idle", lastId: undefined, isOver: false };
  const first: State = {
    lock: undefined,
    value: undefined,
    sent: [],
    flights: Array.from({ length: flights }, () => idle),
    call: { stage: "idle", over: [], seen: [] },
    ...limits,
  };
  const rules = { ...RULES, ...off };
  return { beginnings: [first], keyOf, stepsFrom: (state) => stepsFrom(state, rules) };
}

/** What decides what can follow: of a row who has it, whether it is free, and which result it names. */
const keyOf = ({ lock, value, sent, ...rest }: State): string => {
  const words = sent.map(wordsOf);
  return JSON.stringify([lock?.uuid, lock?.expires, lock?.result, value?.uuid, words, rest], (_, part) => part ?? null);
};

function* stepsFrom(state: State, rules: Rules): Generator<Step> {
  for (const index of state.flights.keys()) yield* flightSteps(state, index, rules);
  yield* callSteps(state, rules);
  if (state.lateCopies > 0) {
    const fewer = { ...state, lateCopies: state.lateCopies - 1 };
    for (const write of state.sent) yield { what: `late ${wordsOf(write)}`, next: arrived(fewer, write).state };
  }
  // Its put asks for no result, and its delete leaves nothing.
  if (state.olderUses > 0 && state.lock !== undefined && state.lock.expires === 0) {
    yield { what: "an older process", next: { ...state, lock: undefined, olderUses: state.olderUses - 1 } };
  }
}

function* flightSteps(state: State, index: number, rules: Rules): Generator<Step> {
  const flight = state.flights[index] as Flight;
  const uuid = idOf(index);
  const become = (from: State, change: Partial<Flight>): State => ({
    ...from,
    flights: from.flights.with(index, { ...flight, ...change }),
  });
  const send = (write: Write, change: Partial<Flight>, refused: Partial<Flight>): State => {
    const { state: next, isApplied } = arrived({ ...state, sent: [...state.sent, write] }, write);
    return become(next, isApplied ? change : refused);
  };
  const named = { id: uuid, made: index, freshUntil: index };
  switch (flight.stage) {
    case "idle":
      yield { what: `${uuid} looks`, next: become(state, { stage: "looked", lastId: rowOf(state.lock)?.result?.id }) };
      return;
    case "looked":
      for (const earliest of [NOBODY_IS_OVER, ALL_ARE_OVER]) {
        const take: Write = {
          ...{ kind: "take", at: AT, uuid, expires: 50, ttlMs: 1, owner: "host", acquired: 0, remembers: "fence" },
          knowledge: { earliest },
          after: rules.takeNamesLast ? { id: flight.lastId } : undefined,
        };
        yield { what: `${uuid} takes`, next: send(take, { stage: "taken" }, { stage: "ended" }) };
      }
      return;
    case "taken": {
      const put: Write = { kind: "put-result", at: VALUE_AT, result: named, owner: "host", data: { value: uuid } };
      yield { what: `${uuid} puts`, next: send(put, { stage: "put" }, {}) };
      return;
    }
    case "put": {
      const leaves = { kind: "free", result: named } as const;
      const release: Write = { kind: "vacate", at: AT, uuid, leaves, remembers: "fence" };
      yield { what: `${uuid} ends`, next: send(release, { stage: "ended", isOver: true }, { stage: "ended" }) };
      return;
    }
    case "ended":
      return;
    default:
      flight.stage satisfies never;
  }
}

function* callSteps(state: State, rules: Rules): Generator<Step> {
  const { call } = state;
  const [lock, value] = [rowOf(state.lock), rowOf(state.value)];
  if (call.stage === "idle") {
    const over = state.flights.flatMap(({ isOver }, index) => (isOver ? idOf(index) : []));
    yield { what: "a call", next: { ...state, call: { ...call, stage: "asked", over } } };
  } else if (call.stage === "asked") {
    const all = rules.unnamedMayBeOver ? overBy(lock, value) : overBy(lock, undefined);
    const seen = rules.looksFirst ? [...all] : [];
    yield { what: "it looks", next: { ...state, call: { ...call, stage: "looked", seen } } };
  } else if (call.stage === "looked") {
    const id = rules.valueIsNamed ? countingResult(lock, value)?.id : value?.uuid;
    if (id === undefined || call.seen.includes(id)) return;
    const next: State = { ...state, call: { ...call, stage: "served" } };
    yield { what: `it takes ${id}`, next, broken: brokenBy(state, id) };
  }
}

function brokenBy({ call, flights }: State, id: string): Invariant | undefined {
  if (call.over.includes(id)) return "no call gets a flight that was over before it";
  const hasEnded = flights.some(({ stage }, index) => idOf(index) === id && stage === "ended");
  return hasEnded ? undefined : "no call gets a flight that has not ended";
}

function arrived(state: State, write: Write): { readonly state: State; readonly isApplied: boolean } {
  const part = write.kind === "put-result" ? "value" : "lock";
  const applied = apply(state[part], write);
  if (applied.kind === "refused") return { state, isApplied: false };
  return { state: { ...state, [part]: applied.after }, isApplied: true };
}

const wordsOf = (write: Write): string =>
  `${write.kind} of ${"uuid" in write ? write.uuid : "result" in write ? write.result.id : ""}`;
