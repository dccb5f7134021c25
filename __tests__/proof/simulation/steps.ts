import { seededRandom } from "../../support/seeded-random.js";
import type { Kind } from "./locks.js";
import { type Due, QUIET_HOST, type Schedule, SHORT_PAUSE_MS, type Step } from "./schedule.js";

/** A step as a schedule plays it: of one of its locks, as fast as it is in a hurry. */
export function stepIn(schedule: Schedule, step: Step): Step {
  const { crowd, hurry } = schedule;
  const of = kindIn(schedule, step);
  const due = dueIn(schedule, step, of);
  const kind = due && step.kind !== "every" ? "once" : actIn(schedule, step, of);
  const permits = permitsIn(schedule, step, of);
  const rateMs = of === "permit" ? perMsIn(schedule) : undefined;
  const isBeside = of === "shared" || of === "permit" || kind === "flight" || due !== undefined;
  return {
    ...step,
    ...(due && { due, times: step.times + 2, tick: kind === "every" ? step.tick : 1 + Math.floor(step.tick / 4) }),
    of,
    kind,
    ...(rateMs !== undefined && { rateMs, holdAtLeastMs: rateMs }),
    extends: step.holdMs % 3 === 0,
    permits,
    // A lock of several permits cannot be handed off.
    weight: kind === "handOff" ? 1 : Math.min(permits, weightIn(schedule, step, of)),
    beside: isBeside ? step.beside : 0,
    // A server whose clock is wrong may call a result young that is not.
    withinMs: kind === "flight" && (step.careless || schedule.network.wrongDates !== undefined) ? 0 : step.withinMs,
    name: crowd ?? nameIn(schedule, step),
    set: setIn(schedule, step),
    waitMs: waitIn(schedule, step),
    pauseMs: pauseIn(schedule, step) / hurry,
    holdMs: step.holdMs / hurry,
  };
}

/** What the names are numbered from that only schedules of large sets have. */
const FURTHER = 4;
const MOST_NAMES = 12;

/** In a fifth of the schedules sets are of 5 to 12 names. */
const hasLargeSets = ({ seed }: Schedule): boolean => seededRandom(seed, "large sets")() < 0.2;

/** The names of a set, in no order: which of the further ones it has depends on the step. */
function setIn(schedule: Schedule, { set, holdMs, tick, withinMs }: Step): readonly number[] {
  if (!hasLargeSets(schedule)) return set;
  const random = seededRandom(schedule.seed, "set", holdMs, tick, withinMs);
  const size = 5 + Math.floor(random() * (MOST_NAMES - 4));
  const further = Array.from({ length: MOST_NAMES - set.length }, (_, index) => ({
    name: FURTHER + index,
    at: random(),
  }));
  const chosen = further.sort((one, other) => one.at - other.at).slice(0, size - set.length);
  return [...chosen.map(({ name }) => name), ...set];
}

/** Who has one of the further names alone is in the way of sets. */
function nameIn(schedule: Schedule, { kind, name, holdMs }: Step): number {
  const isFurther = name === 1 && kind === "lock" && hasLargeSets(schedule);
  return isFurther ? FURTHER + (holdMs % 6) : name;
}

/** In every third schedule, by its seed, mutexes have flights: so all others are as they were without. */
const isFlying = ({ seed }: Schedule): boolean => seed % 3 === 0;

/** In the rest, they have elections. */
const isElecting = ({ seed }: Schedule): boolean => seed % 3 === 2;

/** In every other schedule with several permits, half of the calls for them ask for more than one. */
function weightIn({ seed, permits }: Schedule, { tick }: Step, of: Kind): number {
  return of === "permit" && seed % 2 === 1 ? Math.min(permits, Math.max(1, tick - 1)) : 1;
}

/** In half of the schedules with several permits, some callers know of one less, also within a process. */
function permitsIn({ seed, permits }: Schedule, { tick, holdMs }: Step, of: Kind): number {
  if (of !== "permit" || permits === 1 || seededRandom(seed, "fewer permits")() >= 0.5) return permits;
  return permits - ((tick + holdMs) % 2);
}

/** In a quarter of the schedules one of four hosts, if there are so many, only extends its locks. */
export function renewsIn({ seed }: Schedule, host: number): boolean {
  const random = seededRandom(seed, "renewed by hand");
  return random() >= 0.25 || host !== Math.floor(random() * 4);
}

/** In a third of the schedules, semaphores have a rate: a permit is not handed out again for so long. It fits all hosts' leases. */
export function perMsIn({ seed, hosts }: Schedule): number | undefined {
  const ttlMs = Math.min(...[QUIET_HOST, ...hosts].map((host) => host.ttlMs));
  return seededRandom(seed, "rate")() < 1 / 3 ? Math.floor(ttlMs * 0.61) : undefined;
}

/** For how long a tick is the one that everybody asks for. */
const NEXT_TICK_AFTER_MS = 2_500;

/** In another third, they have ticks that are run until they succeed. */
function dueIn({ seed }: Schedule, { kind, withData, careless, holdMs }: Step, of: Kind): Due | undefined {
  const isOne = ["run", "tryLock", "every"].includes(kind) || (kind === "lock" && !withData && careless);
  if (seed % 3 !== 1 || of !== "mutex" || !isOne) return undefined;
  return { maxAttempts: holdMs % 4 || Number.POSITIVE_INFINITY, nextAfterMs: NEXT_TICK_AFTER_MS };
}

function actIn(schedule: Schedule, { kind, withData, careless }: Step, of: Kind): Step["kind"] {
  // The sides of a shared mutex cannot be handed off.
  if (kind === "handOff" && of !== "mutex" && of !== "permit") return "lock";
  const mayFly = of === "mutex" && (kind === "run" || (kind === "lock" && !withData));
  if (mayFly && isFlying(schedule)) return "flight";
  return mayFly && isElecting(schedule) && (kind === "run" || careless) ? "elect" : kind;
}

/** Ticks and sets are those of mutexes. */
function kindIn({ mix }: Schedule, { kind, of, side }: Step): Kind {
  if (mix === "mutexes" || kind === "once" || kind === "every" || kind === "set") return "mutex";
  if (mix === "permits") return "permit";
  return mix === "sides" ? side : of;
}

/** In every fifth schedule sets that wait for a while only try. */
function waitIn({ seed }: Schedule, { kind, waitMs }: Step): number {
  return kind === "set" && seed % 5 === 0 && waitMs !== Number.POSITIVE_INFINITY ? 0 : waitMs;
}

/** In an hour a clock that is trusted would drift out of its skew. */
function pauseIn({ clock }: Schedule, { pauseMs }: Step): number {
  return clock === "table" ? pauseMs : Math.min(pauseMs, SHORT_PAUSE_MS);
}

/** One short section, and nothing that goes wrong. */
export function probeOf(of: Kind, name: string): Step {
  return {
    kind: "lock",
    of,
    side: "shared",
    beside: 0,
    withinMs: 0,
    deliveries: [],
    attacks: [],
    name: Number(name.split("-").at(-1)),
    set: [],
    times: 1,
    pauseMs: 0,
    holdMs: 0,
    holdAtLeastMs: 0,
    withData: false,
    tick: 0,
    waitMs: Number.POSITIVE_INFINITY,
    abortAfterMs: undefined,
    guarded: false,
    careless: false,
    throws: false,
  };
}
