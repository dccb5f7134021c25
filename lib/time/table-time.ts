import type { Bounds, Reading } from "./clock.js";

/**
 * By how much a host's clock rate may differ from the table's, as a share: 500 ppm, which is the most that NTP
 * slews by and far more than a quartz drifts.
 */
export const RATE_DRIFT = 500e-6;

/** A Date header has whole seconds, truncated. */
const DATE_STEP_MS = 1_000;

/** What two readings of a host's clocks may differ by without anything having happened. */
const JITTER_MS = 5;

/** What was known of the table's clock at one moment. */
export interface TableTime extends Bounds {
  readonly at: Reading;
}

/**
 * What one reply proves, at the moment it is read: somewhere between sending and reading the table showed
 * `date` to `date + 1 s`. So it shows at least `date` now, and at most what it can have gone on to since sending.
 */
export function fromReply(date: number, sent: Reading, now: Reading): TableTime {
  return { earliest: date, latest: date + DATE_STEP_MS + longest(sent, now), at: now };
}

/** The same knowledge at a later moment: the bounds go on by the least and by the most that can have passed. */
export function age(time: TableTime, now: Reading): TableTime {
  return { earliest: time.earliest + shortest(time.at, now), latest: time.latest + longest(time.at, now), at: now };
}

/** Whether two pieces of knowledge of the same moment cannot both be true. */
export function contradict(one: Bounds, other: Bounds): boolean {
  return one.earliest > other.latest || other.earliest > one.latest;
}

/** What two pieces of knowledge of the same moment say together. */
export function intersect(one: TableTime, other: TableTime): TableTime {
  return {
    earliest: Math.max(one.earliest, other.earliest),
    latest: Math.min(one.latest, other.latest),
    at: one.at,
  };
}

/**
 * Whether the wall clock jumped against the monotonic one. How long a suspend lasted is then known only as well as
 * the wall clock was right before and after it, and a step back may hide one: no far bound may be carried over it.
 */
export function jumped(from: Reading, to: Reading): boolean {
  return Math.abs(to.lead - from.lead) > JITTER_MS + 2 * RATE_DRIFT * Math.max(0, to.atLeast - from.atLeast);
}

const DATE_HEADER = /^(Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/;

/** Epoch milliseconds of a Date header; undefined for anything else, because a guess here could end a live lease. */
export function parseDateHeader(header: string | undefined): number | undefined {
  if (header === undefined || !DATE_HEADER.test(header)) return undefined;
  const date = Date.parse(header);
  return Number.isFinite(date) ? date : undefined;
}

/** The least that the table's clock can have gone on by: our stopwatch may run fast. */
function shortest(from: Reading, to: Reading): number {
  return Math.max(0, to.atLeast - from.atLeast) / (1 + RATE_DRIFT);
}

/** The most that the table's clock can have gone on by, a suspend of the host included: our stopwatch may run slow. */
function longest(from: Reading, to: Reading): number {
  return Math.max(0, to.atMost - from.atMost) / (1 - RATE_DRIFT);
}
