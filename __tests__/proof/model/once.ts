import { lockAt } from "../../../lib/protocol/addresses.js";
import { apply } from "../../../lib/protocol/apply.js";
import type { Attributes, Row } from "../../../lib/protocol/row.js";
import { wasApplied } from "../../../lib/protocol/was-applied.js";
import type { Take, Vacate } from "../../../lib/protocol/writes.js";
import type { Space, StepOf } from "./search.js";
import type { Switches } from "./switch.js";
import { rowOf } from "./watching.js";

const RULES = {
  /** A take asks for a row without its tick. */
  asksForTick: true,
  /** The same: without a later one. */
  asksForLater: true,
  /** A take without a tick keeps the row's. */
  takeKeepsTick: true,
  /** So does a release. */
  releaseKeepsTick: true,
  /** A call with a claim that got no answer does not say `done` for its tick. */
  doubtsUnanswered: true,
  /** Nor one whose refused claim has taken it since, by a late copy. */
  doubtsRefused: true,
};

type Rules = typeof RULES;

interface Limits {
  /** The tick that each call is for. */
  readonly ticks: readonly number[];
  /** Of each call. */
  readonly claims: number;
  /** How often somebody takes the row without a tick. */
  readonly plainUses: number;
  readonly lateCopies: number;
}

export const ONCE = {
  "ticks at most once": { ticks: [5, 5], claims: 2, plainUses: 1, lateCopies: 1 },
  "later ticks": { ticks: [5, 6], claims: 2, plainUses: 0, lateCopies: 1 },
} satisfies Record<string, Limits>;

export const LARGE_ONCE: Readonly<Record<keyof typeof ONCE, Limits>> = {
  "ticks at most once": { ...ONCE["ticks at most once"], ticks: [5, 5, 5], claims: 1, lateCopies: 2 },
  "later ticks": { ...ONCE["later ticks"], plainUses: 2, lateCopies: 2 },
};

type Invariant =
  | "a tick is run once"
  | "no tick is run after a later one"
  | "`done` is said of what another call was granted";

export const ONCE_SWITCHES: Switches<keyof typeof ONCE, Limits, Rules, Invariant> = {
  "ticks at most once": {
    "a take asks for no tick": {
      takesOut: ["protocol#ticks: With a tick"],
      breaks: "a tick is run once",
      off: { asksForTick: false },
    },
    "a take without a tick forgets the row's": {
      takesOut: ["protocol#the-row: What a row remembers"],
      breaks: "a tick is run once",
      off: { takeKeepsTick: false },
    },
    "a release forgets the row's tick": {
      takesOut: ["protocol#the-row: What a row remembers", "protocol#releasing 2"],
      breaks: "a tick is run once",
      off: { releaseKeepsTick: false },
    },
    "`done` is said after a claim without an answer": {
      takesOut: ["protocol#ticks: With a tick", "protocol#abandoned-claims: A call never"],
      more: { lateCopies: 0 },
      breaks: "`done` is said of what another call was granted",
      off: { doubtsUnanswered: false },
    },
    "`done` is said of a late copy of a refused claim": {
      takesOut: ["protocol#ticks: With a tick"],
      breaks: "`done` is said of what another call was granted",
      off: { doubtsRefused: false },
    },
  },
  "later ticks": {
    "a take asks for another tick": {
      takesOut: ["protocol#ticks: With a tick", "protocol#late-copies: take for a tick"],
      breaks: "no tick is run after a later one",
      off: { asksForLater: false },
    },
  },
};

/** A call that asks for a tick. `unsure`: its claim has had no answer yet. */
interface Call {
  readonly stage: "idle" | "unsure" | "granted" | "running" | "ended";
  readonly claims: number;
  readonly take: Take | undefined;
  /** Whether a claim got no answer. */
  readonly isDoubtful: boolean;
  readonly refused: readonly string[];
  /** The uuids of all of its claims. */
  readonly own: readonly string[];
}

interface State {
  readonly lock: Attributes | undefined;
  readonly sent: readonly Sent[];
  readonly calls: readonly Call[];
  /** The ticks that were run, in order. */
  readonly run: readonly number[];
  /** Whose claim has taken a tick first. */
  readonly takenBy: Readonly<Record<number, string>>;
  readonly plainUses: number;
  readonly lateCopies: number;
}

type Sent = Take | Vacate;

interface Step extends StepOf<State> {
  readonly broken?: Invariant | undefined;
}

const AT = lockAt("model");
const PLAIN = "plain";
/** Stamps of leases: that of a claim may count as over at any moment, or not. */
const [NOBODY_IS_OVER, ALL_ARE_OVER] = [1, 100];

/** Every run of some calls, each of which asks for a tick that is granted at most once. */
export function onceOf(limits: Limits, off: Partial<Rules> = {}): Space<State, Step> {
  const { ticks, plainUses, lateCopies } = limits;
  const call: Call = { stage: "idle", claims: 0, take: undefined, isDoubtful: false, refused: [], own: [] };
  const calls = ticks.map(() => call);
  const first: State = { lock: undefined, sent: [], calls, run: [], takenBy: {}, plainUses, lateCopies };
  const rules = { ...RULES, ...off };
  return { beginnings: [first], keyOf, stepsFrom: (state) => stepsFrom(state, rules, limits) };
}

const keyOf = ({ lock, sent, calls, ...rest }: State): string => {
  const late = rest.lateCopies > 0 ? sent.map(wordsOf) : [];
  const known = calls.map((call) => ({ ...call, take: call.take && wordsOf(call.take) }));
  return JSON.stringify([lock?.uuid, lock?.expires, lock?.tick, late, known, rest], (_, part) => part ?? null);
};

function* stepsFrom(state: State, rules: Rules, limits: Limits): Generator<Step> {
  for (const index of state.calls.keys()) yield* callSteps(state, index, rules, limits);
  const { lock, plainUses, lateCopies } = state;
  for (const earliest of plainUses === 0 ? [] : earliestFor(state)) {
    const { state: next, isApplied } = arrived({ ...state, plainUses: plainUses - 1 }, takeOf(PLAIN, earliest), rules);
    if (isApplied) yield { what: "somebody takes the row without a tick", next };
  }
  if (lock?.uuid === PLAIN) yield { what: "its section ends", next: arrived(state, releaseOf(PLAIN), rules).state };
  if (lateCopies === 0) return;
  for (const write of state.sent) {
    const { state: next, isApplied } = arrived({ ...state, lateCopies: lateCopies - 1 }, write, rules);
    if (isApplied) yield { what: `late ${wordsOf(write)}`, next };
  }
}

function* callSteps(state: State, index: number, rules: Rules, limits: Limits): Generator<Step> {
  const call = state.calls[index] as Call;
  const { stage, take, claims } = call;
  const letter = "ABC"[index] as string;
  const tick = limits.ticks[index] as number;
  switch (stage) {
    case "idle":
      if (claims >= limits.claims) return;
      for (const earliest of earliestFor(state)) {
        const claim = { ...takeOf(`${letter}${claims}`, earliest), tick };
        const asking = withCall(state, index, {
          ...call,
          stage: "unsure",
          claims: claims + 1,
          take: claim,
          own: [...call.own, claim.uuid],
        });
        const sent = { ...asking, sent: [...state.sent, claim] };
        yield answered(sent, index, rules);
        yield { what: `${letter} asks, and nothing arrives`, next: sent };
        yield { what: `${letter} asks, and hears nothing`, next: arrived(sent, claim, rules).state };
      }
      return;
    case "unsure": {
      yield answered(state, index, rules);
      const next = withCall(state, index, { ...call, stage: "idle", take: undefined, isDoubtful: true });
      yield { what: `${letter} gives up`, next };
      return;
    }
    case "granted": {
      // What the model of the mutex shows: nobody begins on a lease that another may have taken over.
      if (state.lock?.uuid !== take?.uuid) return;
      const next = withCall({ ...state, run: [...state.run, tick] }, index, { ...call, stage: "running" });
      yield { what: `${letter} runs`, next, broken: brokenByRun(state, tick) };
      return;
    }
    case "running": {
      const release = releaseOf(take?.uuid as string);
      const sent = { ...state, sent: [...state.sent, release] };
      const next = withCall(arrived(sent, release, rules).state, index, { ...call, stage: "ended" });
      yield { what: `${letter} ends`, next };
      return;
    }
    case "ended":
      return;
    default:
      stage satisfies never;
  }
}

/** A claim is answered in its lease: until then nobody takes over what it may have. */
function earliestFor({ calls, lock }: State): readonly number[] {
  const isAsked = calls.some(({ stage, take }) => stage === "unsure" && take?.uuid === lock?.uuid);
  return isAsked ? [NOBODY_IS_OVER] : [NOBODY_IS_OVER, ALL_ARE_OVER];
}

/** A copy of its claim arrives, and so does the answer. */
function answered(state: State, index: number, rules: Rules): Step {
  const call = state.calls[index] as Call;
  const take = call.take as Take;
  const letter = "ABC"[index] as string;
  const { state: after, isApplied } = arrived(state, take, rules);
  const row = rowOf(after.lock);
  if (isApplied || wasApplied(take, row) === "yes") {
    return { what: `${letter} is granted its tick`, next: withCall(after, index, { ...call, stage: "granted" }) };
  }
  const tick = take.tick as number;
  const ended = withCall(after, index, { ...call, stage: "ended" });
  if (row?.tick === undefined || row.tick < tick) {
    const refused = [...call.refused, take.uuid];
    const next = withCall(after, index, { ...call, stage: "idle", take: undefined, refused });
    return { what: `${letter} is refused`, next };
  }
  if (mayBeOwn(call, row, tick, rules)) return { what: `${letter} fails: the tick may be its own`, next: ended };
  return {
    what: `${letter} is told that the tick is done`,
    next: ended,
    broken: brokenByDone(state, call, row, tick),
  };
}

function mayBeOwn({ isDoubtful, refused }: Call, { tick: found, uuid }: Row, tick: number, rules: Rules): boolean {
  if (rules.doubtsUnanswered && isDoubtful && found === tick) return true;
  return rules.doubtsRefused && uuid !== undefined && refused.includes(uuid);
}

function brokenByRun({ run }: State, tick: number): Invariant | undefined {
  if (run.includes(tick)) return "a tick is run once";
  return run.some((other) => other > tick) ? "no tick is run after a later one" : undefined;
}

/** A late copy of a refused claim may have taken the tick. Where others have taken the row since, nothing shows that. */
function brokenByDone({ takenBy }: State, call: Call, row: Row, tick: number): Invariant | undefined {
  const first = takenBy[tick] ?? "";
  const isOwn = row.tick === tick && (call.refused.includes(first) ? row.uuid === first : call.own.includes(first));
  return isOwn ? "`done` is said of what another call was granted" : undefined;
}

const takeOf = (uuid: string, earliest: number): Take => ({
  ...{ kind: "take", at: AT, uuid, expires: 50, ttlMs: 1, owner: "host", acquired: 0, remembers: "tick" },
  knowledge: { earliest },
});

const releaseOf = (uuid: string): Vacate => {
  return { kind: "vacate", at: AT, uuid, leaves: { kind: "free" }, remembers: "tick" };
};

function arrived(state: State, write: Sent, rules: Rules): { readonly state: State; readonly isApplied: boolean } {
  const { lock, takenBy } = state;
  const applied = apply(metBy(write, lock, rules), write);
  if (applied.kind === "refused") return { state, isApplied: false };
  const forgets = write.kind === "vacate" && !rules.releaseKeepsTick;
  const isTaken = write.kind === "take" && write.tick !== undefined;
  const taken = isTaken ? { [write.tick as number]: write.uuid, ...takenBy } : takenBy;
  return { state: { ...state, lock: forgets ? undefined : applied.after, takenBy: taken }, isApplied: true };
}

/** The row as a take meets it: without a rule, its tick is not there, or earlier. */
function metBy(write: Sent, lock: Attributes | undefined, rules: Rules): Attributes | undefined {
  if (write.kind !== "take" || lock?.tick === undefined) return lock;
  const { tick: _, ...without } = lock;
  if (write.tick === undefined) return rules.takeKeepsTick ? lock : without;
  const isLater = Number(lock.tick) > write.tick;
  return !rules.asksForTick || (isLater && !rules.asksForLater) ? without : lock;
}

const wordsOf = (write: Sent): string =>
  `${write.kind} of ${write.uuid}${write.kind === "take" ? ` ${write.knowledge.earliest}` : ""}`;

const withCall = (state: State, index: number, call: Call): State => {
  return { ...state, calls: state.calls.with(index, call) };
};
