import { publish } from "../diagnostics.js";
import type { Bounds, Clock, HostTime, Reading } from "./clock.js";
import {
  contradict,
  cover,
  hostTime,
  intersect,
  jumped,
  longest,
  shortest,
  skewsOf,
  stopwatches,
  timers,
} from "./clock.js";

export interface TableClockOptions {
  /**
   * The most by which the host's clock may differ from the true time, in ms. It matters only if successful replies tell
   * no time, because a proxy removes the `Date` header or the client is a mock, for example: the clock then relies on the
   * host's, and reports so on the channel `dynamutex:clock`. Default 1 000.
   */
  readonly fallbackSkewMs?: number | undefined;
  /**
   * The most by which the clocks of the Regions that hosts of one table use may differ, in ms: for a global table with strong
   * consistency. All hosts must set the same value. It widens both bounds, so a takeover by the time comes later by twice this
   * value. Default 0.
   * @experimental no test of several Regions has run on AWS.
   */
  readonly regionSkewMs?: number | undefined;
}

/**
 * The table's own time, learned from the `Date` header of replies. It sends no requests, and trusts no host's time of day:
 * hosts whose clocks are hours apart can share a lock.
 *
 * The bounds are about a second wide after the first reply, and narrow towards one round trip with further replies. It relies
 * on the host's wall clock in one respect: that it advances while the host is suspended. A suspend, or a wall clock that is set
 * forward, moves the later bound away until the next reply.
 *
 * A reply that contradicts what is known, from a server whose clock is wrong, widens the bounds to cover both, until replies of
 * a minute have agreed with one of the two. Meanwhile locks are taken over by watching, and stamps use the later time.
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
export interface TableClockHost extends Pick<Clock, "sleep" | "alarm" | "stay" | "afterPoll"> {
  readonly time: HostTime;
}

/** Bounds are current if they are at most this wide, or if the last reply is younger than this. */
const CURRENT_WIDTH_MS = 2_000;
const CURRENT_AGE_MS = 60_000;

/** {@link tableClock} on any host. */
export function tableClockOn(host: TableClockHost, options: TableClockOptions = {}): Clock {
  const { fallbackSkewMs, regionSkewMs } = skewsOf(options, { fallbackSkewMs: 1_000, regionSkewMs: 0 });
  const { time, sleep, alarm, stay, afterPoll } = host;
  const { atLeast, atMost, read } = stopwatches(time);
  const known = new Candidates();
  /** The reading at which the last reply came. */
  let heardAt: Reading | undefined;
  /** When the request of the last reply left, on `atMost`. */
  let askedAt = Number.NEGATIVE_INFINITY;
  /** Whether the last successful reply told no time, while no current time was known. */
  let fallenBack = false;

  function learn(date: number, sent: Reading): void {
    const now = read();
    const before = known.bounds(now);
    const verdict = known.hear(fromReply(date, sent, now), sent);
    // After a jump of the clocks, the bounds rest on this reply alone. If its request left before the jump, they are still wide.
    const isAlone = heardAt === undefined || (verdict === "agreed" && jumped(heardAt, now));
    askedAt = isAlone ? sent.atMost : Math.max(askedAt, sent.atMost);
    heardAt = now;
    fallenBack = false;
    if (verdict === "agreed" || before === undefined) return;
    if (verdict === "replaced") {
      const detail = `For a minute all replies have agreed with a Date of ${iso(date)}: taking the table's word`;
      publish("dynamutex:clock", { event: "restarted", detail });
    } else {
      const expected = `from ${iso(before.earliest)} to ${iso(before.latest)}`;
      const detail = `Expected a Date ${expected}, got ${iso(date)}: allowing for both until replies agree for a minute`;
      publish("dynamutex:clock", { event: "contradicted", detail });
    }
  }

  function fallBack(header: string | undefined): void {
    // Known bounds stay true as they age: a single reply without a date does not matter.
    if (isCurrent()) return;
    fallenBack = true;
    const got = header === undefined ? "No Date header" : `A Date header of ${JSON.stringify(header)}`;
    const detail = `${got}: trusting the host's clock, give or take ${fallbackSkewMs} ms`;
    publish("dynamutex:clock", { event: "no-date", detail });
  }

  function isCurrent(): boolean {
    if (fallenBack) return true;
    const now = read();
    // Counted from when the request left: while it was in flight, the host may have been suspended.
    if (now.atMost - askedAt < CURRENT_AGE_MS) return true;
    const bounds = known.bounds(now);
    return bounds !== undefined && bounds.latest - bounds.earliest <= CURRENT_WIDTH_MS;
  }

  /** Bounds on the clock of every Region: replies show the time of one Region. */
  function wall(): Bounds | undefined {
    const bounds = ownRegion();
    return bounds && { earliest: bounds.earliest - regionSkewMs, latest: bounds.latest + regionSkewMs };
  }

  function ownRegion(): Bounds | undefined {
    const bounds = known.bounds(read());
    if (!fallenBack) return bounds;
    const now = time.wall();
    const own = { earliest: now - fallbackSkewMs, latest: now + fallbackSkewMs };
    // What the table has told stays true as it ages. If the host's clock contradicts it, one of the two is wrong.
    if (bounds === undefined) return own;
    return contradict(bounds, own) ? cover(bounds, own) : intersect(bounds, own);
  }

  return {
    regionSkewMs,
    atLeast,
    atMost,
    sleep,
    alarm,
    ...(stay && { stay }),
    ...(afterPoll && { afterPoll }),
    isCurrent,
    wall,
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

const DATE_HEADER = /^(Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/;

/** Epoch ms of a Date header; undefined for anything else, because a wrong guess could end a lease that is held. */
export function parseDateHeader(header: string | undefined): number | undefined {
  if (header === undefined || !DATE_HEADER.test(header)) return undefined;
  const date = Date.parse(header);
  return Number.isFinite(date) ? date : undefined;
}

const iso = (time: number): string => new Date(Math.round(time)).toISOString();

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

/** Bounds at a later moment: each advances by the shortest or the longest time that can have passed. */
export function age(time: TableTime, now: Reading): TableTime {
  return { earliest: time.earliest + shortest(time.at, now), latest: time.latest + longest(time.at, now), at: now };
}

/**
 * A time counts alone only after replies have agreed with it, and none with another, for this long. One server with a wrong
 * clock may answer several times in a row, on one connection.
 */
const CONFIRM_MS = 60_000;

/** A time that the table may show, and for how long replies have agreed with it. */
interface Candidate {
  readonly time: TableTime;
  /** Since when all replies have agreed with it, on `atLeast`; undefined after a reply that contradicted it. */
  readonly agreedSince: number | undefined;
  /** Whether replies have agreed with it for long enough. That stays so until another candidate is confirmed. */
  readonly isConfirmed: boolean;
}

/** What a reply did to the candidates. `replaced`: a candidate that had contradicted the known time is now the only one. */
export type Verdict = "agreed" | "contradicted" | "replaced";

/**
 * The times that the table's clock may show: the one that was known, and at most one other, which covers all times that
 * contradicted it. The bounds cover both, so they are true whichever of the two is right.
 *
 * | a reply                                              | what becomes of the candidates                        |
 * |------------------------------------------------------|-------------------------------------------------------|
 * | agrees with both                                     | each is narrowed; nothing is decided                  |
 * | agrees with one that is confirmed, contradicts other | that one alone is left                                |
 * | agrees with one that is not, contradicts the other   | once it has been agreed with for 60 s, it alone is left |
 * | contradicts all                                      | it is the other, or widens that                       |
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

/** Intersects what is known with what a reply proves, at one moment. After a jump, the later bound rests on the reply alone. */
function narrowed(time: TableTime, reply: TableTime, from: Reading): TableTime {
  if (!jumped(from, reply.at)) return intersect(time, reply);
  return { ...reply, earliest: Math.max(time.earliest, reply.earliest) };
}

function withOneMore([known, other]: readonly Candidate[], more: Candidate): readonly Candidate[] {
  if (known === undefined) return [more];
  return [known, other === undefined ? more : { ...more, time: cover(more.time, other.time) }];
}
