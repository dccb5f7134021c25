import { lockAt } from "../../../lib/protocol/addresses.js";
import { apply } from "../../../lib/protocol/apply.js";
import type { Sighting } from "../../../lib/protocol/may-take.js";
import type { Attributes } from "../../../lib/protocol/row.js";
import { wasApplied } from "../../../lib/protocol/was-applied.js";
import type { Take, Vacate } from "../../../lib/protocol/writes.js";
import type { Space, StepOf } from "./search.js";
import { SET_RULES, type SetInvariant, type SetLimits, type SetRules } from "./set-switches.js";
import { rowOf, sightingOf } from "./watching.js";

/** A host that wants some rows at once. `asking`: its claim is on its way. `unsure`: that was sent again, or had no answer. */
interface Host {
  readonly stage: "idle" | "asking" | "unsure" | "held";
  readonly claims: number;
  /** What it asks for, or holds. */
  readonly takes: readonly Take[];
  /** The rows that were in its way, by name. */
  readonly seen: Readonly<Record<string, Sighting>>;
  /** Its uuids that no section uses: rows with them it takes over at once. */
  readonly abandoned: readonly string[];
}

interface State {
  readonly rows: Readonly<Record<string, Attributes>>;
  /** Whatever was sent: the takes of a claim, or a release. */
  readonly sent: readonly (readonly Sent[])[];
  readonly hosts: readonly Host[];
  /** The stamps whose leases are over: others may take them over, and no section relies on them. */
  readonly over: readonly number[];
  /** Uuids that a host releases as soon as it finds the first of them. */
  readonly leaves: readonly (readonly string[])[];
  /** Uuids that end by their stamps alone: of a host that has crashed, or brought by a late copy. */
  readonly excused: readonly string[];
  readonly lateCopies: number;
  readonly crashes: number;
  readonly forced: number;
}

type Sent = Take | Vacate;

interface Step extends StepOf<State> {
  readonly broken?: SetInvariant | undefined;
}

const NOTHING = { stage: "idle", takes: [], seen: {}, abandoned: [] } as const;

/** The permits that several hosts want some of. */
const PERMITS = ["a", "b", "c"];

const letterOf = (index: number): string => "ABC"[index] as string;
const nameIn = (uuid: string): string => uuid.slice(-1);
const uuidsOf = (takes: readonly Take[]): readonly string[] => takes.map(({ uuid }) => uuid);

/** Every run of some hosts, each of which takes all of its rows at once or none. */
export function setsOf(limits: SetLimits, off: Partial<SetRules> = {}): Space<State, Step> {
  const { claims, lateCopies, crashes, forced } = limits;
  const hosts = claims.map(() => ({ ...NOTHING, claims: 0 }));
  const first: State = { rows: {}, sent: [], hosts, over: [], leaves: [], excused: [], lateCopies, crashes, forced };
  const rules = { ...SET_RULES, ...off };
  return { beginnings: [first], keyOf, stepsFrom: (state) => stepsFrom(state, rules, limits), brokenAt };
}

/** Without late copies, what is on no row and on its way to none does not matter any more. */
const keyOf = ({ rows, sent, hosts, over, leaves, excused, ...rest }: State): string => {
  const onTable = Object.entries(rows)
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .map(([name, { uuid, expires }]) => [name, uuid, expires]);
  const takes = hosts.flatMap((host) => host.takes);
  const known = hosts.map((host) => ({ ...host, takes: host.takes.map(wordsOf) }));
  if (rest.lateCopies > 0) {
    const words = sent.map((writes) => writes.map(wordsOf).join()).sort();
    return JSON.stringify([onTable, words, known, over, [...leaves].sort(), excused, rest], orNull);
  }
  const met = [...Object.values(rows), ...takes, ...hosts.flatMap(({ seen }) => Object.values(seen))];
  const isMet = (uuid: string): boolean => met.some((one) => one.uuid === uuid);
  const stamps = over.filter((expires) => met.some((one) => one.expires === expires));
  const found = leaves.filter((chain) => chain.some(isMet)).sort();
  const idle = known.map((host) => ({ ...host, abandoned: host.abandoned.filter(isMet) }));
  return JSON.stringify([onTable, idle, stamps, found, excused.filter(isMet), rest], orNull);
};

const orNull = (_: string, part: unknown): unknown => part ?? null;

function* stepsFrom(state: State, rules: SetRules, limits: SetLimits): Generator<Step> {
  for (const index of state.hosts.keys()) yield* hostSteps(state, index, rules, limits);
  for (const chain of state.leaves) yield* finds(state, chain, rules);
  for (const [name, { uuid, expires }] of Object.entries(state.rows)) {
    if (!state.over.includes(Number(expires))) yield leaseEnds(state, Number(expires), rules);
    if (state.forced === 0 || typeof uuid !== "string") continue;
    const force: Vacate = { ...releaseOf(uuid), leaves: { kind: "untilExpires" } };
    const next = { ...arrived(state, [force], rules).state, forced: state.forced - 1 };
    yield { what: `${name} is unlocked by force`, next };
  }
  if (state.lateCopies === 0) return;
  for (const writes of state.sent) {
    const { state: after } = arrived({ ...state, lateCopies: state.lateCopies - 1 }, writes, rules);
    if (after.rows === state.rows) continue;
    const ended = writes.flatMap(({ kind, uuid }) => (kind === "vacate" || isAwaited(after, uuid) ? [] : [uuid]));
    yield { what: `late ${writes.map(wordsOf)}`, next: { ...after, excused: union(after.excused, ended) } };
  }
}

function* hostSteps(state: State, index: number, rules: SetRules, limits: SetLimits): Generator<Step> {
  const host = state.hosts[index] as Host;
  const letter = letterOf(index);
  switch (host.stage) {
    case "idle": {
      yield* looks(state, index);
      for (const wanted of choicesOf(state, index, limits)) {
        const takes = takesOf(state, index, wanted, rules, limits);
        if (takes === undefined) continue;
        const stage = limits.weights === undefined ? "unsure" : "asking";
        const asking: Host = { ...host, stage, claims: host.claims + 1, takes, seen: {} };
        const sent: State = { ...withHost(state, index, asking), sent: [...state.sent, takes] };
        if (stage === "asking") {
          // Others may take what it has just seen as free.
          yield { what: `${letter} asks for ${wanted}`, next: sent };
          continue;
        }
        yield answered(sent, index, rules, { isRepeated: false });
        yield { what: `${letter} asks, and nothing arrives`, next: sent };
        yield { what: `${letter} asks, and hears nothing`, next: arrived(sent, takes, rules).state };
      }
      return;
    }
    case "asking": {
      yield answered(state, index, rules, { isRepeated: false });
      const unsure = withHost(state, index, { ...host, stage: "unsure" });
      yield { what: `${letter} asks in vain`, next: unsure };
      yield { what: `${letter} hears nothing`, next: arrived(unsure, host.takes, rules).state };
      break;
    }
    case "unsure":
      yield answered(state, index, rules, { isRepeated: true });
      yield { what: `${letter} gives up`, next: abandoned(state, index, lookedFor(host.takes, rules)) };
      break;
    case "held":
      yield { what: `${letter} unlocks`, next: left(state, index) };
      break;
    default:
      host.stage satisfies never;
  }
  if (state.crashes > 0) yield { what: `${letter} crashes`, next: crashed(state, index) };
}

/** Which rows it may ask for: those that it wants, or as many as it needs of the permits. */
function choicesOf(state: State, index: number, { wants, weights }: SetLimits): readonly (readonly string[])[] {
  if (weights === undefined) return [wants[index] ?? []];
  const free = PERMITS.filter((name) => {
    const row = state.rows[name];
    return row === undefined || isFreeFor(state, index, sightingOf(row));
  });
  const weight = weights[index] ?? 1;
  if (free.length < weight) return [];
  // Permits are alike, so the first and the last that are free stand for any others.
  return free.length === weight ? [free] : [free.slice(0, weight), free.slice(-weight)];
}

/** Whether it would take a row that it has seen so. */
function isFreeFor(state: State, index: number, { uuid, expires }: Sighting): boolean {
  return state.over.includes(expires) || (state.hosts[index] as Host).abandoned.includes(uuid ?? "");
}

/** It watches the rows that were in its way. */
function* looks(state: State, index: number): Generator<Step> {
  const host = state.hosts[index] as Host;
  for (const [name, { uuid, expires }] of Object.entries(host.seen)) {
    const row = state.rows[name];
    if (row?.uuid === uuid && row?.expires === expires) continue;
    const { [name]: _, ...others } = host.seen;
    const seen = row === undefined ? others : { ...host.seen, [name]: sightingOf(row) };
    yield { what: `${letterOf(index)} looks at ${name}`, next: withHost(state, index, { ...host, seen }) };
  }
}

/** Takes of all of these rows; undefined while one of them is in its way. Permits it has just looked at. */
function takesOf(
  state: State,
  index: number,
  wanted: readonly string[],
  rules: SetRules,
  limits: SetLimits,
): readonly Take[] | undefined {
  const { seen, claims } = state.hosts[index] as Host;
  if (claims >= (limits.claims[index] ?? 0)) return undefined;
  const takes: Take[] = [];
  for (const [place, name] of wanted.entries()) {
    const row = state.rows[name];
    const inTheWay = limits.weights === undefined ? seen[name] : row && sightingOf(row);
    if (inTheWay !== undefined && !isFreeFor(state, index, inTheWay)) return undefined;
    takes.push({
      ...{ kind: "take", at: lockAt(name), uuid: `${letterOf(index)}${rules.hasFreshUuids ? claims : ""}${name}` },
      ...{ expires: 100 * (index + 1) + 10 * claims + place, ttlMs: 1, owner: "host", acquired: 0 },
      ...{ knowledge: { earliest: 1, unchanged: inTheWay }, remembers: "nothing" },
    });
  }
  return takes;
}

/** A copy of its claim arrives, and so does the answer. */
function answered(state: State, index: number, rules: SetRules, { isRepeated }: { isRepeated: boolean }): Step {
  const host = state.hosts[index] as Host;
  const { takes } = host;
  const letter = letterOf(index);
  const { state: after, refusedBy } = arrived(state, takes, rules);
  const refusals = takes.map((take, place) => {
    const row = rowOf(refusedBy?.[place], take.at);
    return { take, row, isOwn: row !== undefined && wasApplied(take, row) !== "no" };
  });
  const own = refusals.filter(({ isOwn }) => isOwn);
  if (refusedBy === undefined || (rules.allAreOwn ? own.length === takes.length : own.length > 0)) {
    if (takes.some(({ expires }) => state.over.includes(expires))) {
      return {
        what: `${letter} is too late`,
        next: abandoned(
          after,
          index,
          takes.map(({ uuid }) => [uuid]),
        ),
      };
    }
    const isWhole = takes.every(({ at, uuid }) => after.rows[at.name]?.uuid === uuid);
    const broken = isWhole ? undefined : "a set begins with all of its rows";
    return { what: `${letter} begins`, next: withHost(after, index, { ...host, stage: "held" }), broken };
  }
  // An earlier copy may have been applied, or may still arrive. Rows that the refusal shows as its own are given back.
  const shown = own.map(({ take }) => [take.uuid]);
  const next = abandoned(after, index, isRepeated ? lookedFor(takes, rules) : shown);
  const others = refusals.flatMap(({ row, isOwn }) =>
    row === undefined || isOwn ? [] : [[row.name, sightingOf(row)]],
  );
  const seen = Object.fromEntries(others);
  return { what: `${letter} is refused`, next: withHost(next, index, { ...(next.hosts[index] as Host), seen }) };
}

function lookedFor(takes: readonly Take[], { looksForGivenUp, looksAtBoth }: SetRules): readonly (readonly string[])[] {
  if (!looksForGivenUp) return [];
  return looksAtBoth ? takes.map(({ uuid }) => [uuid]) : [uuidsOf(takes)];
}

/** The claim is over, and nobody uses what it has taken or may still take. */
function abandoned(state: State, index: number, chains: readonly (readonly string[])[]): State {
  const host = state.hosts[index] as Host;
  const idle: Host = { ...host, stage: "idle", takes: [], abandoned: union(host.abandoned, uuidsOf(host.takes)) };
  return withHost({ ...state, leaves: [...state.leaves, ...chains] }, index, idle);
}

/** The section has ended, and each of the rows is released. */
function left(state: State, index: number): State {
  const host = state.hosts[index] as Host;
  const leaves = [...state.leaves, ...uuidsOf(host.takes).map((uuid) => [uuid])];
  return withHost({ ...state, leaves }, index, { ...host, stage: "idle", takes: [] });
}

function crashed(state: State, index: number): State {
  const { claims, takes } = state.hosts[index] as Host;
  const isOwn = ([uuid]: readonly string[]): boolean => uuid?.startsWith(letterOf(index)) === true;
  const excused = union(state.excused, [...uuidsOf(takes), ...state.leaves.filter(isOwn).flat()]);
  const leaves = state.leaves.filter((chain) => !isOwn(chain));
  return withHost({ ...state, excused, leaves, crashes: state.crashes - 1 }, index, { ...NOTHING, claims });
}

/** The host finds a row of its own on which no section relies, and releases it. */
function* finds(state: State, chain: readonly string[], rules: SetRules): Generator<Step> {
  const [uuid, ...rest] = chain as [string];
  if (state.rows[nameIn(uuid)]?.uuid !== uuid) return;
  const release = releaseOf(uuid);
  const { state: after } = arrived({ ...state, sent: [...state.sent, [release]] }, [release], rules);
  const leaves = [...state.leaves.filter((other) => other !== chain), ...rest.map((other) => [other])];
  yield { what: `${uuid} is released`, next: { ...after, leaves } };
}

function leaseEnds(state: State, expires: number, { isLostWhole }: SetRules): Step {
  const ended: State = { ...state, over: [...state.over, expires].sort() };
  const index = state.hosts.findIndex(({ stage, takes }) => {
    return stage === "held" && takes.some((take) => take.expires === expires);
  });
  return { what: `lease ${expires} ends`, next: index === -1 || !isLostWhole ? ended : left(ended, index) };
}

const releaseOf = (uuid: string): Vacate => {
  return { kind: "vacate", at: lockAt(nameIn(uuid)), uuid, leaves: { kind: "free" }, remembers: "nothing" };
};

/** Whether a host still asks for a row, holds it, or releases it as soon as it looks. */
function isAwaited({ hosts, leaves, rows }: State, uuid: string): boolean {
  if (hosts.some(({ takes }) => uuidsOf(takes).includes(uuid))) return true;
  return leaves.some((chain) => chain.includes(uuid) && chain[0] === rows[nameIn(chain[0] ?? "")]?.uuid);
}

function brokenAt(state: State): SetInvariant | undefined {
  const held = state.hosts.flatMap(({ stage, takes }) => (stage === "held" ? takes.map(({ at }) => at.name) : []));
  if (new Set(held).size < held.length) return "one holder of a row";
  const isLeft = Object.values(state.rows).some(({ uuid, expires }) => {
    if (typeof uuid !== "string" || state.over.includes(Number(expires))) return false;
    return !state.excused.includes(uuid) && !isAwaited(state, uuid);
  });
  return isLeft ? "nothing is left behind" : undefined;
}

interface Arrived {
  readonly state: State;
  /** For each write the row that has refused it; undefined where all were applied. */
  readonly refusedBy: readonly (Attributes | undefined)[] | undefined;
}

/** The writes of one transaction: all or none. */
function arrived(state: State, writes: readonly Sent[], rules: SetRules): Arrived {
  const all = writes.map((write) => {
    const row = state.rows[write.at.name];
    return { name: write.at.name, applied: apply(row, asSent(write, row, rules)) };
  });
  const isRefused = all.some(({ applied }) => applied.kind === "refused");
  const refusedBy = isRefused
    ? all.map(({ applied }) => (applied.kind === "refused" ? applied.by : undefined))
    : undefined;
  if (isRefused && (rules.isOneTransaction || writes.length === 1)) return { state, refusedBy };
  const changed = all.flatMap(({ name, applied }) =>
    applied.kind === "applied" ? [[name, applied.after] as const] : [],
  );
  const rows = Object.entries({ ...state.rows, ...Object.fromEntries(changed) }).filter(([, row]) => row !== undefined);
  return { state: { ...state, rows: Object.fromEntries(rows) as State["rows"] }, refusedBy };
}

/** The write as it is sent: without the rule, a takeover names whatever lease is there. */
function asSent(write: Sent, row: Attributes | undefined, { namesSeen }: SetRules): Sent {
  if (namesSeen || row === undefined || write.kind !== "take" || write.knowledge.unchanged === undefined) return write;
  return { ...write, knowledge: { ...write.knowledge, unchanged: sightingOf(row) } };
}

const wordsOf = (write: Sent): string =>
  `${write.kind} ${write.uuid}${write.kind === "take" ? ` over ${JSON.stringify(write.knowledge.unchanged)}` : ""}`;

const union = (one: readonly string[], other: readonly string[]): readonly string[] => {
  return [...new Set([...one, ...other])].sort();
};

const withHost = (state: State, index: number, host: Host): State => {
  return { ...state, hosts: state.hosts.with(index, host) };
};
