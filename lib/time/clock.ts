import { clearImmediate, setImmediate } from "node:timers";
import { LockConfigError, LockStoreError } from "../errors.js";

/** Taken here: a test runner's fake timers replace them later, and no fake polls a socket. */
const [immediate, cancelImmediate] = [setImmediate, clearImmediate];

/** Bounds, in epoch milliseconds, on a time that is not known exactly. Both are included. */
export interface Bounds {
  readonly earliest: number;
  readonly latest: number;
}

/**
 * The only source of time in this library. All hosts that share a table use one kind of clock.
 *
 * Locks rely on two properties: the true time of the table lies within `wall()`, and each stopwatch errs to its own
 * side only. Any uncertainty about the time then delays a takeover, and never makes one too early.
 */
export interface Clock {
  /** Bounds on what the table's clock shows now; undefined until something is known. */
  wall(): Bounds | undefined;
  /** Stopwatch milliseconds that never run ahead of real time: for watching others. */
  atLeast(): number;
  /** Stopwatch milliseconds that never lag behind real time: for trusting a lease of our own. */
  atMost(): number;
  /** Waits, and keeps the process alive meanwhile. @throws the reason of `signal`, if it aborts first. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
  /** Calls `ring` once after `ms`, without keeping the process alive. The returned function cancels it. */
  alarm(ms: number, ring: () => void): () => void;
  /**
   * By how much the clocks of the Regions that hosts of one table use may differ, in ms. If it is over 0, the table spans
   * several Regions: it has no transactions, and `guard()` and `transactWrite()` are refused.
   * @experimental no test of several Regions has run on AWS.
   */
  readonly regionSkewMs?: number;
  /**
   * Calls `act` when the event loop has polled its sockets: what has arrived by now is handled before. The returned function
   * cancels it. Absent on clocks of tables that are not behind a socket, such as a test's: there nothing can have arrived.
   */
  afterPoll?(act: () => void): () => void;
  /**
   * Keeps the process alive until the returned function is called: for a caller that waits for another caller of this
   * process and has no timer of its own. Absent on clocks that do not advance by themselves, such as a test's.
   */
  stay?(): () => void;
  /**
   * Called when a request is sent. The returned function is called with the `Date` header of the table's reply, or with
   * undefined if the request succeeded without one. Absent on clocks that do not learn from the table.
   */
  listen?(): (date: string | undefined) => void;
  /**
   * Whether the bounds are precise or recent enough for a write that depends on them, such as taking a lock. If they are
   * not, the lock is read first, and the reply improves the bounds. Absent on clocks that do not learn from the table:
   * no reply improves theirs.
   */
  isCurrent?(): boolean;
}

/** Whether a write that depends on the time may be sent without a read before it. */
export function isTimeKnown(clock: Clock): boolean {
  return clock.isCurrent === undefined ? clock.wall() !== undefined : clock.isCurrent();
}

/** The bounds that a write is based on. @throws {@link LockStoreError} if the clock has none. */
export function boundsOf(clock: Clock): Bounds {
  const bounds = clock.wall();
  if (bounds !== undefined) return bounds;
  throw new LockStoreError(
    "The clock does not know the table's time, although the table has answered: check the `clock` of the LockTable",
  );
}

/** The longest time that a timer can run. Node fires a longer one at once. */
export const MAX_TIMER_MS = 2_147_483_647;

/**
 * The host's clock, with bounds for its error.
 *
 * @param options.maxSkewMs the most by which any host's clock may differ from the true time, in ms: default 1 000. A
 * host whose clock is further off can take a lock that is still held. With `takeover: "unchanged"` no clock matters.
 * @throws {@link LockConfigError} if `maxSkewMs` is not a number of milliseconds, 0 or more.
 */
export function systemClock(options: { readonly maxSkewMs?: number } = {}): Clock {
  const { maxSkewMs } = skewsOf(options, { maxSkewMs: 1_000 });
  return {
    ...stopwatches(),
    ...timers,
    wall: () => {
      const now = Date.now();
      return { earliest: now - maxSkewMs, latest: now + maxSkewMs };
    },
  };
}

/** A clock's options: largest errors, in ms. @throws {@link LockConfigError} */
export function skewsOf<Name extends string>(
  options: { readonly [option in Name]?: number | undefined },
  defaults: Readonly<Record<Name, number>>,
): Readonly<Record<Name, number>> {
  if (typeof options !== "object" || options === null || Array.isArray(options)) {
    throw new LockConfigError("options", options, "must be an object, or left out");
  }
  const skews: Record<Name, number> = { ...defaults };
  for (const [option, skewMs] of Object.entries(options) as [Name, unknown][]) {
    if (!(option in defaults)) {
      const known = Object.keys(defaults);
      const remedy = known.length === 1 ? `there is ${known} alone` : `there are ${known.join(" and ")}`;
      throw new LockConfigError(option, skewMs, `is not an option: ${remedy}`);
    }
    if (skewMs === undefined) continue;
    // An infinite one would never allow a takeover. A negative one would allow it while the lock is held.
    if (typeof skewMs !== "number" || !Number.isFinite(skewMs) || skewMs < 0) {
      throw new LockConfigError(option, skewMs, "must be a number of milliseconds, 0 or more");
    }
    skews[option] = skewMs;
  }
  return skews;
}

/** The two clocks of a host, or a test's, in milliseconds. */
export interface HostTime {
  monotonic(): number;
  wall(): number;
}

/** A host's clocks, read at one moment. */
export interface Reading {
  readonly atLeast: number;
  readonly atMost: number;
  /** Wall clock minus monotonic clock. It changes by drift only, unless the host is suspended or the wall clock is set. */
  readonly lead: number;
}

export const hostTime: HostTime = { monotonic: () => performance.now(), wall: () => Date.now() };

/** How far `lead` may vary between two readings although nothing has happened: the wall clock counts whole ms. */
export const JITTER_MS = 5;

/**
 * The two stopwatches of a host. Linux stops the monotonic clock while the host is suspended, so `atMost` adds the time
 * by which the wall clock advanced further. A wall clock that is set forward can therefore end a lease early. It never
 * affects `atLeast`, so it never makes a takeover too early. A wall clock that is set back changes neither.
 *
 * Jitter must not accumulate, or reading a lease in a loop would make it end sooner: time that the monotonic clock seems
 * to have missed counts at once, but is kept only if it is more than {@link JITTER_MS}.
 */
export function stopwatches(time: HostTime = hostTime): Pick<Clock, "atLeast" | "atMost"> & { read(): Reading } {
  // The smallest lead since the last suspend. A greater one means that the monotonic clock has missed time.
  let lead = time.wall() - time.monotonic();
  let suspended = 0;
  let shown = Number.NEGATIVE_INFINITY;
  const read = (): Reading => {
    const monotonic = time.monotonic();
    const leadNow = time.wall() - monotonic;
    lead = Math.min(lead, leadNow);
    const missed = leadNow - lead;
    shown = Math.max(shown, monotonic + suspended + missed);
    if (missed > JITTER_MS) {
      suspended += missed;
      lead = leadNow;
    }
    return { atLeast: monotonic, atMost: shown, lead: leadNow };
  };
  return { atLeast: () => time.monotonic(), atMost: () => read().atMost, read };
}

const timerMs = (ms: number): number => Math.min(Math.max(ms, 0), MAX_TIMER_MS);

/**
 * Waits until `set` calls `wake`. @param set calls `wake` when the time has come, unless the function that it returns is called
 * before.
 */
export async function sleepUntilRung(set: (wake: () => void) => () => void, signal?: AbortSignal): Promise<void> {
  signal?.throwIfAborted();
  await new Promise<void>((resolve, reject) => {
    const cancel = set(() => {
      signal?.removeEventListener("abort", stop);
      resolve();
    });
    const stop = (): void => {
      cancel();
      reject(signal?.reason);
    };
    signal?.addEventListener("abort", stop, { once: true });
  });
}

/** Node's timers, in the form of {@link Clock}. */
export const timers: Pick<Clock, "sleep" | "alarm" | "stay" | "afterPoll"> = {
  sleep: (ms, signal) =>
    sleepUntilRung((wake) => {
      const timer = setTimeout(wake, timerMs(ms));
      return () => clearTimeout(timer);
    }, signal),
  alarm: (ms, ring) => {
    const timer = setTimeout(ring, timerMs(ms));
    // In a test on a simulated DOM, a timer is a number.
    (timer as Partial<NodeJS.Timeout>).unref?.();
    return () => clearTimeout(timer);
  },
  stay: () => {
    const timer = setInterval(() => undefined, MAX_TIMER_MS);
    return () => clearInterval(timer);
  },
  afterPoll: (act) => {
    const waiting = immediate(act);
    return () => cancelImmediate(waiting);
  },
};

/**
 * An alarm for somebody who waits for a reply, and cancels it when the reply comes. Node runs timers before it reads sockets, so
 * after a section that computes, or a suspend, an alarm rings while the reply waits in its socket. So it counts only once the
 * sockets were polled. An alarm that ends a section is none of these: it counts at once.
 */
export function replyAlarm(clock: Pick<Clock, "alarm" | "afterPoll">, ms: number, ring: () => void): () => void {
  let cancel = clock.alarm(ms, () => {
    if (clock.afterPoll === undefined) ring();
    else cancel = clock.afterPoll(ring);
  });
  return () => cancel();
}

/**
 * The largest difference between the clock rates of a host and the table, as a share: 500 ppm, the most by which NTP
 * slews a clock, and far more than a quartz drifts.
 */
export const RATE_DRIFT = 500e-6;

/** Whether two bounds on the same moment cannot both be true. */
export function contradict(one: Bounds, other: Bounds): boolean {
  return one.earliest > other.latest || other.earliest > one.latest;
}

/** The bounds that hold if both of two bounds on the same moment are true. */
export function intersect<Time extends Bounds>(one: Time, other: Bounds): Time {
  return { ...one, earliest: Math.max(one.earliest, other.earliest), latest: Math.min(one.latest, other.latest) };
}

/** The bounds that hold if at least one of two bounds is true. */
export function cover<Time extends Bounds>(one: Time, other: Bounds): Time {
  return { ...one, earliest: Math.min(one.earliest, other.earliest), latest: Math.max(one.latest, other.latest) };
}

/**
 * Whether the wall clock jumped against the monotonic one. The later bound then cannot be carried over: the length of a suspend
 * is known only if the wall clock was right before and after it, and a wall clock that is set back hides a suspend.
 */
export function jumped(from: Reading, to: Reading): boolean {
  return Math.abs(to.lead - from.lead) > JITTER_MS + 2 * RATE_DRIFT * Math.max(0, to.atLeast - from.atLeast);
}

/** The shortest time that can have passed on the table's clock: our stopwatch may run fast. */
export function shortest(from: Reading, to: Reading): number {
  return Math.max(0, to.atLeast - from.atLeast) / (1 + RATE_DRIFT);
}

/** The longest time that can have passed on the table's clock, a suspend included: our stopwatch may run slow. */
export function longest(from: Reading, to: Reading): number {
  return Math.max(0, to.atMost - from.atMost) / (1 - RATE_DRIFT);
}
