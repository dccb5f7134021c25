import { type Applied, apply } from "../../../lib/protocol/apply.js";
import { leaseEnd, type Stamped, stamp } from "../../../lib/protocol/lease-time.js";
import { mayTake } from "../../../lib/protocol/may-take.js";
import type { Attributes } from "../../../lib/protocol/row.js";
import { wasApplied } from "../../../lib/protocol/was-applied.js";
import type { Write } from "../../../lib/protocol/writes.js";
import type { Bounds } from "../../../lib/time/clock.js";
import type { Side } from "./limits.js";
import { atLeastAt, atMostAt, type Stopwatches } from "./time.js";

/** What the explorer asks of the protocol: the library's own functions, and how their callers in `lib/` use them. */
export interface Rules {
  readonly apply: (row: Attributes | undefined, write: Write) => Applied;
  readonly mayTake: typeof mayTake;
  readonly wasApplied: typeof wasApplied;
  readonly leaseEnd: (stamped: Stamped) => number;
  readonly stamp: typeof stamp;
  /** The bounds that `knowledge` gets for a take, of what the clock shows. */
  readonly boundsToJudgeBy: (bounds: Bounds) => Bounds;
  /** The stopwatch of a holder, and that of a watcher. */
  readonly leaseWatch: (tick: number, of: Stopwatches) => number;
  readonly watcherWatch: (tick: number, of: Stopwatches) => number;
  /** Whether a row counts as seen since the reply came, or since the read was sent. */
  readonly seenSince: "reply" | "request";
  /** How long a row has to stay unchanged, of its own ttl and the watcher's. */
  readonly watchedTtl: (row: number, own: number) => number;
  readonly marginMs: (ttlMs: number) => number;
  /** From which copy of a write its lease counts. */
  readonly countsFrom: "first copy" | "last copy";
  /** Whether a renewal counts before it is answered. */
  readonly countsUnanswered: boolean;
  /** Whether a guard waits for the first renewal under its uuid. */
  readonly guardsAfterRenewal: boolean;
  /** Whether a lease changes its uuid between a section with a guard and the next. */
  readonly reissuesAfterGuard: boolean;
  /** The uuid that a token opens whose secret this is. Who has seen a uuid may try it as a secret. */
  readonly opens: (secret: string) => string;
  /** The uuid that a lease that was handed off goes on with. */
  readonly resumedAs: (token: string, fresh: string) => string;
  /** When a side of a shared mutex may be shown the flags of the other. */
  readonly looks: (side: Side) => "after its flag is answered" | "after its flag is sent" | "before its flag";
  readonly isConsistent: (side: Side) => boolean;
  /** What the flags that a look shows are judged by. */
  readonly judgesBy: (side: Side) => "request" | "reply";
  readonly givesWay: boolean;
  /** What a writer enters on. */
  readonly entersOn: "no reader" | "no living reader";
  /** What a reader does about the row of a writer that is dead. */
  readonly deadWriter: "passes it by" | "removes it";
  /** What a side is handed out on. A lease that has lapsed before may be renewed, if it looks again after that. */
  readonly enters: (side: Side) => "on a lease that stood since its look" | "on a lease that stands" | "on any lease";
  /** Whether a writer's lease that lapses while it is being passed on is lost, whatever the answer. */
  readonly losesWhilePassedOn: boolean;
  /** How many permits a process takes the semaphore to have. */
  readonly permitsOf: (permits: number) => number;
  /** Which acquisition of its process a uuid names. */
  readonly uuidOf: (name: string, acquisition: number) => string;
}

/** The least margin that the options allow: a 500th of the ttl, twice what two hosts can differ by. */
const leastMarginMs = (ttlMs: number): number => Math.ceil(ttlMs / 500);

export const RULES: Rules = {
  apply,
  mayTake,
  wasApplied,
  leaseEnd,
  stamp,
  boundsToJudgeBy: (bounds) => bounds,
  leaseWatch: atMostAt,
  watcherWatch: atLeastAt,
  seenSince: "reply",
  watchedTtl: (row) => row,
  marginMs: leastMarginMs,
  countsFrom: "first copy",
  countsUnanswered: false,
  guardsAfterRenewal: true,
  reissuesAfterGuard: true,
  opens: (secret) => `#${secret}`,
  resumedAs: (_, fresh) => fresh,
  looks: () => "after its flag is answered",
  isConsistent: () => true,
  judgesBy: () => "request",
  givesWay: true,
  entersOn: "no reader",
  deadWriter: "passes it by",
  enters: () => "on a lease that stood since its look",
  losesWhilePassedOn: true,
  permitsOf: (permits) => permits,
  uuidOf: (name, acquisition) => `${name}${acquisition}`,
};
