import { type Bounds, JITTER_MS, type Reading } from "./clock.js";

/**
 * The largest difference between the clock rates of a host and the table, as a share: 500 ppm, the most by which NTP
 * slews a clock, and far more than a quartz drifts.
 */
export const RATE_DRIFT = 500e-6;

/** A Date header has whole seconds, truncated. */
const DATE_STEP_MS = 1_000;

/** Bounds on the table's clock at one moment of the host. */
export interface TableTime extends Bounds {
  readonly at: Reading;
}

/**
 * The bounds that one reply proves, at the moment when it is read. The table's clock showed `date` to `date + 1 s` at
 * some moment between sending and reading. So now it shows at least `date`, and at most `date + 1 s` and the longest
 * time that can have passed since sending.
 */
export function fromReply(date: number, sent: Reading, now: Reading): TableTime {
  return { earliest: date, latest: date + DATE_STEP_MS + longest(sent, now), at: now };
}

/** The same bounds at a later moment: each advances by the shortest or the longest time that can have passed. */
export function age(time: TableTime, now: Reading): TableTime {
  return { earliest: time.earliest + shortest(time.at, now), latest: time.latest + longest(time.at, now), at: now };
}

/** Whether two bounds on the same moment cannot both be true. */
export function contradict(one: Bounds, other: Bounds): boolean {
  return one.earliest > other.latest || other.earliest > one.latest;
}

/** The bounds that follow from two on the same moment. */
export function intersect<Time extends Bounds>(one: Time, other: Bounds): Time {
  return { ...one, earliest: Math.max(one.earliest, other.earliest), latest: Math.min(one.latest, other.latest) };
}

/** The bounds that are true if either of two is. */
export function cover<Time extends Bounds>(one: Time, other: Bounds): Time {
  return { ...one, earliest: Math.min(one.earliest, other.earliest), latest: Math.max(one.latest, other.latest) };
}

/**
 * Whether the wall clock jumped against the monotonic one. The later bound then cannot be carried over: the length of a
 * suspend is known only if the wall clock was right before and after it, and a wall clock that is set back hides one.
 */
export function jumped(from: Reading, to: Reading): boolean {
  return Math.abs(to.lead - from.lead) > JITTER_MS + 2 * RATE_DRIFT * Math.max(0, to.atLeast - from.atLeast);
}

/** The shortest time that can have passed on the table's clock: our stopwatch may run fast. */
function shortest(from: Reading, to: Reading): number {
  return Math.max(0, to.atLeast - from.atLeast) / (1 + RATE_DRIFT);
}

/** The longest time that can have passed on the table's clock, a suspend included: our stopwatch may run slow. */
function longest(from: Reading, to: Reading): number {
  return Math.max(0, to.atMost - from.atMost) / (1 - RATE_DRIFT);
}

/**
 * For so long replies have to agree with a time, and none with another, before it counts alone. One server with a wrong
 * clock may answer several times in a row, on one connection.
 */
const CONFIRM_MS = 60_000;

/** However often replies contradict all that was heard before: further times widen the last candidate. */
const MOST_CANDIDATES = 4;

/** A time that the table may show, and for how long replies have agreed with it. */
interface Candidate {
  readonly time: TableTime;
  /** When the first of the replies came that all agreed with it, on `atLeast`; undefined after one that contradicted it. */
  readonly agreedSince: number | undefined;
  /** Whether they agreed for long enough. It stays so until another candidate is confirmed. */
  readonly isConfirmed: boolean;
}

/** What a reply did to the candidates. `replaced`: a candidate that had contradicted the known time is now the only one. */
export type Verdict = "agreed" | "contradicted" | "replaced";

/**
 * The times that the table's clock may show: one, and another for each reply that contradicted all of them. The bounds
 * cover every candidate, so they are true whichever of them is.
 *
 * | a reply                                              | what becomes of the candidates                        |
 * |------------------------------------------------------|-------------------------------------------------------|
 * | agrees with all                                      | each is narrowed; nothing is decided                  |
 * | agrees with one that is confirmed, contradicts others| that one alone is left                                |
 * | agrees with one that is not, contradicts others      | once it has been agreed with for 60 s, it alone is left |
 * | contradicts all                                      | it is one more                                        |
 */
export class Candidates {
  /** The oldest first: what was known before any contradiction. */
  #all: readonly Candidate[] = [];

  /** Undefined before the first reply. */
  bounds(now: Reading): Bounds | undefined {
    const [first, ...others] = this.#all;
    if (first === undefined) return undefined;
    const { earliest, latest } = others.reduce((sum, { time }) => cover(sum, age(time, now)), age(first.time, now));
    return { earliest, latest };
  }

  /** @param reply what it proves. @param sent when its request left. */
  hear(reply: TableTime, sent: Reading): Verdict {
    const now = reply.at;
    const aged = this.#all.map((candidate) => ({ ...candidate, time: age(candidate.time, now), from: candidate.time }));
    const agreeing = new Set(aged.filter(({ time }) => !contradict(time, reply)));
    const heard = aged.map((candidate): Candidate => {
      const { time, from, isConfirmed } = candidate;
      if (!agreeing.has(candidate)) return { time, agreedSince: undefined, isConfirmed };
      const agreedSince = candidate.agreedSince ?? now.atLeast;
      // A reply that contradicts none of several is evidence for none of them.
      const isEvidence = aged.length === 1 || agreeing.size < aged.length;
      return {
        time: narrowed(time, reply, from.at),
        agreedSince,
        isConfirmed: isConfirmed || (isEvidence && sent.atLeast - agreedSince >= CONFIRM_MS),
      };
    });
    if (agreeing.size === 0) {
      this.#all = withOneMore(heard, { time: reply, agreedSince: now.atLeast, isConfirmed: false });
      return heard.length === 0 ? "agreed" : "contradicted";
    }
    const winner = heard.find((candidate, index) => {
      return candidate.isConfirmed && agreeing.has(aged[index] as (typeof aged)[number]);
    });
    const isDecided = winner !== undefined && agreeing.size < aged.length;
    this.#all = isDecided ? [winner] : heard;
    return isDecided && winner !== heard[0] ? "replaced" : "agreed";
  }
}

/** What is known and what a reply proves, at one moment. After a jump the later bound stands on the reply alone. */
function narrowed(time: TableTime, reply: TableTime, from: Reading): TableTime {
  if (!jumped(from, reply.at)) return intersect(time, reply);
  return { ...reply, earliest: Math.max(time.earliest, reply.earliest) };
}

function withOneMore(all: readonly Candidate[], more: Candidate): readonly Candidate[] {
  const last = all.at(-1);
  if (last === undefined || all.length < MOST_CANDIDATES) return [...all, more];
  return [...all.slice(0, -1), { ...more, time: cover(more.time, last.time) }];
}
