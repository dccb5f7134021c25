import { LockConfigError, LockStoreError } from "../errors.js";

/** Bounds, in epoch milliseconds, on a time that is not known exactly. */
export interface Bounds {
  readonly earliest: number;
  readonly latest: number;
}

/**
 * The only source of time in this library. All hosts that share a table use one kind of clock.
 *
 * What it must keep: the true time of the table lies within `wall()`, and the stopwatches err on their own
 * side only. Then every doubt about time delays a takeover and never hastens one.
 */
export interface Clock {
  /** Bounds on what the table's clock shows now; undefined until something is known. */
  wall(): Bounds | undefined;
  /** Stopwatch milliseconds that never run ahead of real time: for watching others. */
  atLeast(): number;
  /** Stopwatch milliseconds that never lag behind real time: for trusting a lease of our own. */
  atMost(): number;
  /**
   * Waits, and keeps the process alive while it does.
   * @throws the reason of `signal`, if it aborts first.
   */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
  /** Calls `ring` once after `ms` without keeping the process alive; the answer cancels it. */
  alarm(ms: number, ring: () => void): () => void;
  /**
   * Keeps the process alive for somebody who waits for no time but for somebody else of this process; the answer ends
   * that. Absent on clocks that do not go by themselves.
   */
  stay?(): () => void;
  /**
   * Called as a request leaves; what it returns is called with the `Date` header of the reply (undefined if it had
   * none). Absent on clocks that do not learn from the table.
   */
  listen?(): (date: string | undefined) => void;
  /**
   * Whether the bounds are good enough to write by: nothing is taken, numbered or ticked before. Absent on clocks that do
   * not learn from the table: their bounds are always as good as they get.
   */
  isCurrent?(): boolean;
}

/** Whether nothing needs to be read before a write that depends on the time. */
export function isTimeKnown(clock: Clock): boolean {
  return clock.isCurrent === undefined ? clock.wall() !== undefined : clock.isCurrent();
}

/** The bounds that a stamp is made from. @throws {@link LockStoreError} where the clock knows nothing. */
export function boundsOf(clock: Clock): Bounds {
  const bounds = clock.wall();
  if (bounds !== undefined) return bounds;
  throw new LockStoreError(
    "The clock does not know the table's time, although the table has answered: check the `clock` of the LockTable",
    { transient: true },
  );
}

/** The longest a timer can run: beyond it, Node fires at once. */
export const MAX_TIMER_MS = 2_147_483_647;

/**
 * The host's clock, give or take.
 *
 * @param options.maxSkewMs by how many milliseconds any host's clock may differ from the true time: default 1 000.
 * A host that is further off can take a lock that is still held; `takeover: "unchanged"` does without clocks.
 * @throws {@link LockConfigError} if that is no number of milliseconds, 0 or more.
 */
export function systemClock(options: { readonly maxSkewMs?: number } = {}): Clock {
  const maxSkewMs = skewOf(options, "maxSkewMs");
  return {
    ...stopwatches(),
    ...timers,
    wall: () => {
      const now = Date.now();
      return { earliest: now - maxSkewMs, latest: now + maxSkewMs };
    },
  };
}

/** The one option of a clock, by how much it may err, in ms: default 1 000. @throws {@link LockConfigError} */
export function skewOf<Name extends string>(
  options: { readonly [option in Name]?: number | undefined },
  name: Name,
): number {
  if (typeof options !== "object" || options === null || Array.isArray(options)) {
    throw new LockConfigError("options", options, "must be an object, or left out");
  }
  for (const [option, value] of Object.entries(options)) {
    if (option !== name) throw new LockConfigError(option, value, `is not an option: there is ${name} alone`);
  }
  const skewMs = options[name] === undefined ? 1_000 : options[name];
  // An infinite one would never take anything over, and a negative one what is still held.
  if (Number.isFinite(skewMs) && skewMs >= 0) return skewMs;
  throw new LockConfigError(name, skewMs, "must be a number of milliseconds, 0 or more");
}

/** Where the two stopwatches read their time: the host's, or a test's. */
export interface HostTime {
  monotonic(): number;
  wall(): number;
}

/** A host's clocks, read at one moment. */
export interface Reading {
  readonly atLeast: number;
  readonly atMost: number;
  /** By how much the wall clock is ahead of the monotonic one: constant, but for drift, while nothing happens. */
  readonly lead: number;
}

export const hostTime: HostTime = { monotonic: () => performance.now(), wall: () => Date.now() };

/** How far two readings of the host's clocks may disagree without anything having happened: one counts whole ms. */
const JITTER_MS = 5;

/**
 * The two stopwatches of a host. `atMost` adds what the wall clock went on by beyond the monotonic one, because Linux
 * stops the latter while the host is suspended. A wall clock that steps forward may so end a lease early; it never
 * touches `atLeast`, so it never makes a watcher impatient. A step back takes nothing away.
 *
 * Jitter must not add up, or a loop that reads a lease would make it run faster: what the wall clock is ahead by is
 * shown at once, but for good only when it is more than {@link JITTER_MS}.
 */
export function stopwatches(time: HostTime = hostTime): Pick<Clock, "atLeast" | "atMost"> & { read(): Reading } {
  // The smallest lead of the wall clock since the last suspend: the lead beyond it is time that the monotonic one missed.
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
  return {
    atLeast: () => time.monotonic(),
    atMost: () => read().atMost,
    read,
  };
}

/** Node's timers, in the forms that the protocol needs. */
export const timers: Pick<Clock, "sleep" | "alarm" | "stay"> = {
  sleep: (ms, signal) =>
    new Promise((resolve, reject) => {
      if (signal?.aborted) {
        reject(signal.reason);
        return;
      }
      const stop = (): void => {
        clearTimeout(timer);
        reject(signal?.reason);
      };
      const timer = setTimeout(
        () => {
          signal?.removeEventListener("abort", stop);
          resolve();
        },
        Math.min(Math.max(ms, 0), MAX_TIMER_MS),
      );
      signal?.addEventListener("abort", stop, { once: true });
    }),
  alarm: (ms, ring) => {
    const timer = setTimeout(ring, Math.min(Math.max(ms, 0), MAX_TIMER_MS));
    timer.unref();
    return () => clearTimeout(timer);
  },
  stay: () => {
    const timer = setInterval(() => undefined, MAX_TIMER_MS);
    return () => clearInterval(timer);
  },
};
