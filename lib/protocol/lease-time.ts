import { LONGEST_ATTEMPT_MS } from "../session/retry.js";
import type { Clock } from "../time/clock.js";

/** What a guessed stamp adds to the host's own clock, so that a slow clock still makes a lease. */
const GUESS_AHEAD_MS = 1_000;

/** How far past its lease a stamp may lie before it is corrected. A right host's guess stays below it. */
const FAR_TOO_LATE_MS = 1_500;

/** A moment at which a lease ends, and whether the clock knew the time when it was chosen. */
export interface Stamp {
  readonly expires: number;
  readonly guessed: boolean;
}

/**
 * The end of a lease that begins now: late enough on any clock within the bounds, and always later than the last
 * stamp, because a watcher takes an unchanged row for a dead holder's.
 */
export function stampNow(clock: Clock, ttlMs: number, last = 0): Stamp {
  const bounds = clock.wall();
  const latest = bounds === undefined ? clock.guess() + GUESS_AHEAD_MS : bounds.latest;
  return { expires: Math.max(Math.ceil(latest) + ttlMs, last + 1), guessed: bounds === undefined };
}

/**
 * Until when a holder may rely on a stamp that is known to be on the row, on the `atMost` stopwatch; without margin.
 *
 * Two ways lead to a takeover, and the lease ends before either:
 * - a contender compares `expires` with its `earliest`, which no true time exceeds: so not before our `latest` gets there;
 * - a watcher counts the ttl from after it saw the stamp, which was not before the first copy of it was sent.
 */
export function leaseEnd(clock: Clock, expires: number, ttlMs: number, sentAt: number): number {
  const bounds = clock.wall();
  // A reply has come and the clock still knows nothing: nothing can be proven.
  if (bounds === undefined) return sentAt;
  return Math.min(clock.atMost() + (expires - bounds.latest), sentAt + ttlMs);
}

/** Whether a stamp lies so late that contenders would wait for nothing after a crash. */
export function isFarTooLate(clock: Clock, expires: number, ttlMs: number): boolean {
  const bounds = clock.wall();
  return bounds !== undefined && expires > bounds.latest + ttlMs + FAR_TOO_LATE_MS;
}

/** How long the first attempt at a request of a lease may take before it counts as unanswered. */
export function attemptMs(ttlMs: number): number {
  return Math.min(LONGEST_ATTEMPT_MS, Math.max(50, ttlMs / 4));
}

/** The table's time as well as it is known, for people to read. Nothing may be decided by it. */
export function timeForPeople(clock: Clock): number {
  const bounds = clock.wall();
  return Math.round(bounds === undefined ? clock.guess() : (bounds.earliest + bounds.latest) / 2);
}
