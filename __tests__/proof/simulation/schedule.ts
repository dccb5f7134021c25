import fc from "fast-check";
import type { Forgery } from "./forged-tokens.js";
import type { Kind } from "./locks.js";
import type { MachinePlan } from "./machine.js";
import type { NetworkPlan, Outage, Stranger, WrongDates } from "./network.js";

/** A token is given to a host: once, twice, late, or never. */
export interface Delivery {
  readonly host: number;
  readonly afterMs: number;
}

/** Somebody without a token tries to go on with a lock that was handed off, whoever has it by then. */
export interface Attack extends Delivery {
  readonly how: Forgery;
}

/** How a tick is asked for that stays due until a run of it succeeds. */
export interface Due {
  readonly maxAttempts: number;
  /** After how long, for all hosts, the next tick follows that of a `once`. */
  readonly nextAfterMs: number;
}

/** One use of a lock. */
export interface Step {
  /**
   * `once` and `every` are tries for a tick; `force` takes the lock away from whoever has it; `set` takes several; `handOff`
   * gives it to another host; `flight` shares what its section comes to, and `elect` stands for leader: a schedule of flights, or of
   * elections, has some in the place of others.
   */
  readonly kind: "lock" | "tryLock" | "run" | "once" | "every" | "force" | "set" | "handOff" | "flight" | "elect";
  /** Of which kind the lock is, where that is not said by `kind`: ticks and sets are those of mutexes. */
  readonly of: Kind;
  /** The same in a schedule of shared mutexes alone. */
  readonly side: "exclusive" | "shared";
  /** How many others of its process do the same at the same time, on the shared side and for permits. */
  readonly beside: number;
  /** For how long a lock that is handed off waits to be resumed, and who gets its token. */
  readonly withinMs: number;
  readonly deliveries: readonly Delivery[];
  readonly attacks: readonly Attack[];
  /** How many permits its semaphore has, as far as it knows. Default: as many as the schedule says. */
  readonly permits?: number;
  /** How many of them it asks for at once. Default 1. */
  readonly weight?: number;
  /** Which of the locks. */
  readonly name: number;
  /** Which locks a set takes, in the order in which it asks for them. */
  readonly set: readonly number[];
  /** How many sections follow one another, for `lock` and `run`: so does a process that has much to do. */
  readonly times: number;
  /** How long before it starts. */
  readonly pauseMs: number;
  readonly holdMs: number;
  /** For how long the lock stays taken at least, however short the section. */
  readonly holdAtLeastMs: number;
  /** Of a semaphore with a rate: for how long a permit is not handed out again. It is held for as long by the semaphore's option alone. */
  readonly rateMs?: number;
  /** Whether its section extends the lease, now and then. Default: it does not. */
  readonly extends?: boolean;
  /** Whether its row carries data: then its lease is not passed on. */
  readonly withData: boolean;
  /** Which tick, for `once`; how long a period is, in seconds, for `every`. */
  readonly tick: number;
  /** A tick that is run until it succeeds: a schedule of such ticks has them in the place of other steps. */
  readonly due?: Due;
  /** Infinity waits for ever. */
  readonly waitMs: number;
  /** When the caller gives up, if it does. */
  readonly abortAfterMs: number | undefined;
  /** Whether the section writes through a guard, in its middle and at its end. */
  readonly guarded: boolean;
  /** Whether the section goes on although its lock is lost. */
  readonly careless: boolean;
  /** Whether the section throws at its end; of a set, whether it gives back one of its locks halfway. */
  readonly throws: boolean;
}

/** What happens to a machine. */
export type Mishap =
  | { readonly kind: "crash"; readonly atMs: number; readonly forMs: number; readonly restarts: boolean }
  | { readonly kind: "freeze" | "suspend"; readonly atMs: number; readonly forMs: number }
  | { readonly kind: "step"; readonly atMs: number; readonly byMs: number }
  | CloseMishap;

/** A deployment: the process closes its table and exits, at once or when its last section has ended. */
export interface CloseMishap {
  readonly kind: "close";
  readonly atMs: number;
  readonly drainMs: number;
  readonly lingers: boolean;
  /** Whether another process goes on with its programs. */
  readonly restarts: boolean;
}

export interface HostPlan {
  readonly machine: MachinePlan;
  readonly ttlMs: number;
  readonly takeover: "expired" | "unchanged";
  readonly maxHoldMs: number;
  /** Whether locks are renewed by themselves. Default: they are. */
  readonly autoRenew?: boolean;
  readonly fencing: boolean;
  readonly handOverMs: number;
  readonly releaseWithinMs: number;
  /** Whether its mutexes are fair where others may be plain: the locks exclude one another, and keep no order. */
  readonly fair: boolean;
  /** By how much longer each of its messages takes, either way. Default: nothing. */
  readonly farMs?: number;
  /** How its mutexes poll. Default: as the library does. */
  readonly poll?: { readonly minMs: number; readonly maxMs: number };
  /** Within how long each of its calls that waits for a mutex has it, where something promises that. */
  readonly servedWithinMs?: number;
  /** How many renewals of it may be under way at once, and a tenth of it of other requests: few, where throttling has made them few. */
  readonly slots: number;
  /** Programs that run beside each other in the host's process. */
  readonly programs: readonly (readonly Step[])[];
  readonly mishaps: readonly Mishap[];
}

/** More than a host of a schedule ever needs. */
export const MANY_SLOTS = 480;

/** One to which nothing happens, and whose clocks are right. */
export const QUIET_HOST: Omit<HostPlan, "programs"> = {
  machine: { aheadMs: 0, monotonicPpm: 0, wallPpm: 0 },
  ttlMs: 1_000,
  takeover: "expired",
  maxHoldMs: Number.POSITIVE_INFINITY,
  fencing: false,
  handOverMs: 500,
  releaseWithinMs: 5_000,
  fair: false,
  slots: MANY_SLOTS,
  mishaps: [],
};

/** A whole run, but for the protocol under test. Nothing else decides what happens. */
export interface Schedule {
  /** Of the dice that the world throws. */
  readonly seed: number;
  readonly clock: "table" | "system";
  /** When the faults stop. */
  readonly calmAtMs: number;
  /** The one lock that everybody wants, sets apart. */
  readonly crowd: number | undefined;
  /** Of which kinds the locks are. */
  readonly mix: "mutexes" | "permits" | "sides" | "all";
  /** How many permits a semaphore has: some callers know of fewer. */
  readonly permits: number;
  /** What pauses and holds are divided by: the more, the more of them meet. */
  readonly hurry: number;
  readonly hosts: readonly HostPlan[];
  readonly network: NetworkPlan;
}

/** What names in the simulation begin with, and no others: the channels are those of the whole process. */
const SIMULATED = "sim-";

/** The name of a lock. */
export function simulatedName(number: number): string {
  return `${SIMULATED}${number}`;
}

/** Whether a message on a channel is of the simulation. Of a set, it has all names. */
export function isSimulated({ name }: { readonly name?: string | undefined }): boolean {
  return name === undefined || name.startsWith(SIMULATED);
}

/** By how much hosts' clocks may be wrong where they are trusted. */
export const MAX_SKEW_MS = 1_000;

/** Which of the locks only fair mutexes use. */
export const FAIR = 3;
export const FAIR_NAME: string = simulatedName(FAIR);

const HOUR_MS = 3_600_000;

const between = (min: number, max: number) => fc.integer({ min, max });
const weighted = <Value>(weight: number, arbitrary: fc.Arbitrary<Value>) => ({ weight, arbitrary });

const calmAtMs = between(2_000, 15_000);
const momentMs = between(0, 12_000);
const ppm = between(-500, 500);

/** The longest pause that is no silence. */
export const SHORT_PAUSE_MS = 1_500;

/** So long that a clock which learns from replies knows the time no longer. */
const silence = between(2_000_000, 3_600_000);

const delivery = {
  host: fc.nat(3),
  afterMs: fc.oneof(between(0, 300), between(0, 6_000)),
};

const step: fc.Arbitrary<Step> = fc.record({
  kind: fc.oneof(
    weighted(5, fc.constant("lock")),
    weighted(3, fc.constantFrom("run", "tryLock")),
    weighted(1, fc.constantFrom("once", "every", "force")),
    weighted(1, fc.constant("set")),
    weighted(1, fc.constant("handOff")),
  ),
  of: fc.constantFrom<Kind>("mutex", "permit", "permit", "shared", "shared", "exclusive"),
  side: fc.constantFrom("shared", "shared", "exclusive"),
  beside: fc.constantFrom(0, 0, 1, 2),
  withinMs: fc.oneof(between(100, 1_500), between(100, 8_000)),
  deliveries: fc.array(fc.record(delivery), { maxLength: 3 }),
  attacks: fc.array(fc.record({ ...delivery, how: fc.constantFrom<Forgery>("seen", "foreign", "edited", "old") }), {
    maxLength: 3,
  }),
  name: fc.constantFrom(0, 0, 0, 1, FAIR, FAIR),
  set: fc.shuffledSubarray([0, 1, FAIR], { minLength: 2 }),
  times: fc.oneof(weighted(4, fc.constant(1)), weighted(1, between(2, 8))),
  pauseMs: fc.oneof(weighted(40, between(0, SHORT_PAUSE_MS)), weighted(1, silence)),
  holdMs: fc.oneof(between(0, 300), between(0, 4_000)),
  holdAtLeastMs: fc.oneof(weighted(4, fc.constant(0)), weighted(1, between(1, 3_000))),
  withData: fc.constantFrom(false, false, true),
  tick: between(1, 4),
  waitMs: fc.oneof(weighted(2, fc.constant(Number.POSITIVE_INFINITY)), weighted(1, between(0, 3_000))),
  abortAfterMs: fc.oneof(
    weighted(2, fc.constant(undefined)),
    weighted(1, between(0, SHORT_PAUSE_MS)),
    // While the first write is under way.
    weighted(1, between(0, 30)),
  ),
  guarded: fc.boolean(),
  careless: fc.boolean(),
  throws: fc.boolean(),
});

/** Mostly shorter than a lease, or somewhat longer. */
const pauseLength = fc.oneof(between(1, 600), between(1, 6_000));

const mishap: fc.Arbitrary<Mishap> = fc.oneof(
  fc.record({ kind: fc.constant("crash"), atMs: momentMs, forMs: pauseLength, restarts: fc.boolean() }),
  fc.record({ kind: fc.constant("freeze"), atMs: momentMs, forMs: pauseLength }),
  fc.record({ kind: fc.constant("suspend"), atMs: momentMs, forMs: pauseLength }),
  fc.record({
    kind: fc.constant("step"),
    atMs: momentMs,
    byMs: fc.oneof(between(-2_000, 2_000), fc.constantFrom(-HOUR_MS, HOUR_MS)),
  }),
  fc.record({
    kind: fc.constant("close"),
    atMs: momentMs,
    drainMs: fc.oneof(fc.constant(0), between(0, 500), between(0, 6_000)),
    lingers: fc.boolean(),
    restarts: fc.boolean(),
  }),
);

const host: fc.Arbitrary<HostPlan> = fc.record({
  machine: fc.record({
    aheadMs: fc.oneof(between(-900, 900), fc.constantFrom(0, -HOUR_MS, HOUR_MS, HOUR_MS, -5_000, 5_000)),
    monotonicPpm: ppm,
    wallPpm: ppm,
  }),
  ttlMs: fc.constantFrom(400, 1_000, 1_000, 2_500, 12_000),
  takeover: fc.constantFrom("expired", "expired", "unchanged"),
  maxHoldMs: fc.constantFrom(Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY, 3_000),
  fencing: fc.constantFrom(false, false, true),
  handOverMs: fc.constantFrom(1, 100, 300),
  releaseWithinMs: fc.constantFrom(5_000, 5_000, 1_000),
  fair: fc.constantFrom(false, false, true),
  slots: fc.constantFrom(MANY_SLOTS, MANY_SLOTS, MANY_SLOTS, 2),
  programs: fc.array(fc.array(step, { minLength: 1, maxLength: 4 }), { minLength: 1, maxLength: 3 }),
  mishaps: fc.array(mishap, { maxLength: 3 }),
});

const outage: fc.Arbitrary<Outage> = fc.record({
  atMs: momentMs,
  forMs: pauseLength,
  how: fc.constantFrom("refuse", "hang", "error", "credentials", "signature"),
});

/** Also before the table has answered for the first time. */
const stranger: fc.Arbitrary<Stranger> = fc.record({
  atMs: fc.oneof(fc.constant(0), momentMs),
  forMs: between(1, 4_000),
  share: fc.constantFrom(10, 50, 100),
  forwards: fc.boolean(),
});

const deaths = fc.array(fc.record({ atMs: momentMs, how: fc.constantFrom("reset", "silent") }), { maxLength: 2 });

/** Somebody else answers in a quarter of the schedules. */
const strangers = fc.oneof(
  weighted(3, fc.constant([])),
  weighted(1, fc.array(stranger, { minLength: 1, maxLength: 2 })),
);

const passes = fc.constantFrom(true, true, false);

/** Further off than any bounds are wide. */
const wrongBy = fc.oneof(between(60_000, 120_000), fc.constant(HOUR_MS));

const wrongDates: fc.Arbitrary<WrongDates> = fc.record({
  aheadMs: fc.oneof(
    wrongBy,
    wrongBy.map((ms) => -ms),
  ),
  share: fc.constantFrom(0, 2, 10, 50),
  spell: fc.record({
    atMs: momentMs,
    forMs: between(100, 60_000),
    share: fc.constantFrom(20, 80, 100),
  }),
});

/** In a third of the schedules. */
const mostlyRight = fc.oneof(weighted(2, fc.constant(undefined)), weighted(1, wrongDates));

const share = (most: number) => fc.oneof(fc.constant(0), between(0, most));

/** Everything that can go wrong on the way. */
const lossy: fc.Arbitrary<NetworkPlan> = fc.record({
  delayMs: between(2, 60),
  slow: share(20),
  slowMs: between(100, 3_000),
  requestLoss: share(25),
  replyLoss: share(30),
  duplicates: share(40),
  lateMs: between(10, 5_000),
  throttling: share(25),
  stale: share(50),
  clientRetries: fc.boolean(),
  outages: fc.array(outage, { maxLength: 2 }),
  passes,
  unreadable: share(5),
  strangers,
  deaths,
  wrongDates: mostlyRight,
});

/** Nothing gets lost, but much of it comes late, twice and out of order. */
const unruly: fc.Arbitrary<NetworkPlan> = fc.record({
  delayMs: between(2, 60),
  slow: between(10, 60),
  slowMs: between(100, 5_000),
  requestLoss: fc.constant(0),
  replyLoss: share(20),
  duplicates: between(20, 100),
  lateMs: between(10, 3_000),
  throttling: fc.constant(0),
  stale: share(50),
  clientRetries: fc.boolean(),
  outages: fc.constant([]),
  passes,
  unreadable: share(5),
  strangers,
  deaths,
  wrongDates: mostlyRight,
});

const network = fc.oneof(weighted(3, lossy), weighted(1, unruly));

export const schedules: fc.Arbitrary<Schedule> = fc.record({
  seed: fc.noShrink(fc.nat(0x7fffffff)),
  clock: fc.constantFrom("table", "table", "table", "system"),
  calmAtMs,
  crowd: fc.constantFrom(undefined, undefined, undefined, 0, FAIR, FAIR),
  mix: fc.constantFrom("mutexes", "mutexes", "mutexes", "permits", "sides", "all"),
  permits: fc.constantFrom(1, 2, 2, 3),
  hurry: fc.constantFrom(1, 1, 10),
  hosts: fc.array(host, { minLength: 1, maxLength: 4 }),
  network,
});
