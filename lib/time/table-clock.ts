import { publish } from "../diagnostics.js";
import type { Bounds, Clock, HostTime, Reading } from "./clock.js";
import { hostTime, JITTER_MS, skewOf, stopwatches, timers } from "./clock.js";

export interface TableClockOptions {
  /**
   * The most by which the host's clock may differ from the true time, in ms. It matters only if replies have no `Date`
   * header, because a proxy removes it, for example: the clock then relies on the host's, and reports so on the channel
   * `dynamutex:clock`. Default 1 000.
   */
  readonly fallbackSkewMs?: number | undefined;
}

/**
 * The table's own time, learned from the `Date` header of replies. It sends no requests, and trusts no host's time of
 * day: hosts whose clocks are hours apart can share a lock.
 *
 * The bounds are about a second wide after the first reply, and narrow towards one round trip with further replies.
 * It relies on the host's wall clock in one respect: that it advances while the host is suspended. A suspend, or a wall
 * clock that is set forward, moves the later bound away until the next reply.
 *
 * @throws {@link LockConfigError} if an option cannot work.
 *
 * @example
 * const locks = new LockTable({ tableName: "locks", clock: tableClock() }); // the default
 */
export function tableClock(options: TableClockOptions = {}): Clock {
  return tableClockOn({ time: hostTime, ...timers }, options);
}

/** The time and the timers of a host, or a test's. */
export interface TableClockHost extends Pick<Clock, "sleep" | "alarm" | "stay"> {
  readonly time: HostTime;
}

/** Bounds are current if they are at most this wide, or if the last reply is younger than this. */
const CURRENT_WIDTH_MS = 2_000;
const CURRENT_AGE_MS = 60_000;

/** {@link tableClock} on any host. */
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
    const proven = fromReply(date, sent, now);
    const aged = known && age(known, now);
    if (known !== undefined && aged !== undefined && !contradict(aged, proven) && !jumped(known.at, now)) {
      known = intersect(aged, proven);
      askedAt = Math.max(askedAt, sent.atMost);
      return;
    }
    if (aged !== undefined && contradict(aged, proven)) {
      const detail = `Expected a Date from ${iso(aged.earliest)} to ${iso(aged.latest)}, got ${iso(date)}: taking the table's word`;
      publish("dynamutex:clock", { event: "restarted", detail });
      known = proven;
    } else {
      known = { ...proven, earliest: Math.max(aged?.earliest ?? 0, proven.earliest) };
    }
    // The bounds stand on this reply alone: one that was asked for before the clock was set leaves them wide.
    askedAt = sent.atMost;
  }

  function fallBack(header: string | undefined): void {
    // Known bounds stay true as they age: a single reply without a date does not matter.
    if (known !== undefined || fallenBack) return;
    fallenBack = true;
    const got = header === undefined ? "No Date header" : `A Date header of ${JSON.stringify(header)}`;
    const detail = `${got}: trusting the host's clock, give or take ${fallbackSkewMs} ms`;
    publish("dynamutex:clock", { event: "no-date", detail });
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
      if (now.atMost - askedAt < CURRENT_AGE_MS) return true;
      const { earliest, latest } = age(known, now);
      return latest - earliest <= CURRENT_WIDTH_MS;
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
        if (date === undefined) fallBack(header);
        else learn(date, sent);
      };
    },
  };
}

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
export function intersect(one: TableTime, other: TableTime): TableTime {
  return { earliest: Math.max(one.earliest, other.earliest), latest: Math.min(one.latest, other.latest), at: one.at };
}

/**
 * Whether the wall clock jumped against the monotonic one. The later bound then cannot be carried over: the length of a
 * suspend is known only if the wall clock was right before and after it, and a wall clock that is set back hides one.
 */
function jumped(from: Reading, to: Reading): boolean {
  return Math.abs(to.lead - from.lead) > JITTER_MS + 2 * RATE_DRIFT * Math.max(0, to.atLeast - from.atLeast);
}

const DATE_HEADER = /^(Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/;

/** Epoch ms of a Date header; undefined for anything else, because a wrong guess could end a lease that is held. */
export function parseDateHeader(header: string | undefined): number | undefined {
  if (header === undefined || !DATE_HEADER.test(header)) return undefined;
  const date = Date.parse(header);
  return Number.isFinite(date) ? date : undefined;
}

/** The shortest time that can have passed on the table's clock: our stopwatch may run fast. */
function shortest(from: Reading, to: Reading): number {
  return Math.max(0, to.atLeast - from.atLeast) / (1 + RATE_DRIFT);
}

/** The longest time that can have passed on the table's clock, a suspend included: our stopwatch may run slow. */
function longest(from: Reading, to: Reading): number {
  return Math.max(0, to.atMost - from.atMost) / (1 - RATE_DRIFT);
}

const iso = (time: number): string => new Date(Math.round(time)).toISOString();
