import { publish } from "../diagnostics.js";
import {
  type Bounds,
  type Clock,
  type HostTime,
  hostTime,
  type Reading,
  skewOf,
  stopwatches,
  timers,
} from "./clock.js";

/** Bounds are good enough to write by if they are at most so wide, or if the last reply is younger than this. */
const MOST_WIDTH_MS = 2_000;
const RECENT_MS = 60_000;

export interface TableClockOptions {
  /**
   * By how many milliseconds the host's clock may differ from the true time, should replies come without a `Date`
   * header (a proxy may strip it). Default 1 000. That it came to this is told on the channel `dynamutex:clock`.
   */
  readonly fallbackSkewMs?: number | undefined;
}

/** What a table clock stands on: the host's time and timers, or a test's. */
export interface TableClockHost extends Pick<Clock, "sleep" | "alarm" | "stay"> {
  readonly time: HostTime;
}

/**
 * The table's own time, learned from the `Date` header of the replies that the mutex gets anyway. No host's clock is
 * trusted and no request is added: hosts whose clocks are hours apart can share a lock.
 *
 * The bounds are about a second wide after the first reply and close in on a round trip with every further one.
 * It relies on the host's wall clock for one thing: that it goes on while the host is suspended. What a suspend and a
 * step of the clock left of the far bound ends with the next reply.
 *
 * @throws {@link LockConfigError} if an option cannot work.
 *
 * @example
 * const locks = new LockTable({ tableName: "locks", clock: tableClock() }); // which is the default
 */
export function tableClock(options: TableClockOptions = {}): Clock {
  return tableClockOn({ time: hostTime, ...timers }, options);
}

/** The same on any host. */
export function tableClockOn(host: TableClockHost, options: TableClockOptions = {}): Clock {
  const fallbackSkewMs = skewOf(options, "fallbackSkewMs");
  const { time, sleep, alarm, stay } = host;
  const { atLeast, atMost, read } = stopwatches(time);
  let known: TableTime | undefined;
  /** When the request left whose reply came last, on `atMost`. */
  let askedAt = Number.NEGATIVE_INFINITY;
  let fallenBack = false;

  function learn(date: number, sent: Reading): void {
    const now = read();
    const said = fromReply(date, sent, now);
    askedAt = Math.max(askedAt, sent.atMost);
    const aged = known && age(known, now);
    if (aged !== undefined && contradict(aged, said)) {
      known = said;
      publish("dynamutex:clock", {
        event: "restarted",
        detail: `Expected a Date from ${iso(aged.earliest)} to ${iso(aged.latest)}, got ${iso(date)}: taking the table's word`,
      });
      return;
    }
    if (known === undefined || aged === undefined) known = said;
    else if (jumped(known.at, now)) known = { ...said, earliest: Math.max(aged.earliest, said.earliest) };
    else known = intersect(aged, said);
  }

  function doWithout(header: string | undefined): void {
    // What is known already stays true and ages; one reply without a date takes nothing away.
    if (known !== undefined || fallenBack) return;
    fallenBack = true;
    publish("dynamutex:clock", {
      event: "no-date",
      detail: `${header === undefined ? "No Date header" : `A Date header of ${JSON.stringify(header)}`}: trusting the host's clock, give or take ${fallbackSkewMs} ms`,
    });
  }

  return {
    atLeast,
    atMost,
    sleep,
    alarm,
    ...(stay && { stay }),
    isCurrent() {
      if (known === undefined) return fallenBack;
      const now = read();
      // Counted from when the request left: while it was under way, the host may have been suspended.
      if (now.atMost - askedAt < RECENT_MS) return true;
      const { earliest, latest } = age(known, now);
      return latest - earliest <= MOST_WIDTH_MS;
    },
    wall() {
      if (known !== undefined) {
        const { earliest, latest } = age(known, read());
        return { earliest, latest };
      }
      if (!fallenBack) return undefined;
      const now = time.wall();
      return { earliest: now - fallbackSkewMs, latest: now + fallbackSkewMs };
    },
    listen() {
      const sent = read();
      return (header) => {
        const date = parseDateHeader(header);
        if (date === undefined) doWithout(header);
        else learn(date, sent);
      };
    },
  };
}

function iso(time: number): string {
  return new Date(Math.round(time)).toISOString();
}

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
