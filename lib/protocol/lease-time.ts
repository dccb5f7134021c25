import type { Bounds } from "../time/clock.js";
import type { RowAfterRelease, TokenDraw } from "./writes.js";

/**
 * The end of a lease that begins now: late enough on any clock within the bounds, and always later than the last stamp,
 * because watchers take an unchanged row over.
 */
export function stamp(bounds: Bounds, ttlMs: number, last = 0): number {
  return Math.max(Math.ceil(bounds.latest) + ttlMs, last + 1);
}

/** What a condition may compare `expires` with. Without bounds only a row that is kept but free counts as over. */
export function earliestOf(bounds: Bounds | undefined): number {
  return bounds === undefined ? 1 : Math.max(1, Math.floor(bounds.earliest));
}

/**
 * How a write draws a fencing token now. A first token is drawn from `latest`: if the row was deleted, it is still greater than every
 * earlier one, because time has gone on. Every other one is not behind `earliest`, and no more: `latest` may be hours ahead.
 *
 * @param last the row's token as it was last seen. One that was not seen is most likely behind the time, or there is no row.
 */
export function tokenDraw(bounds: Bounds, last: bigint | undefined): TokenDraw {
  const least = earliestOf(bounds);
  return { least, seed: Math.ceil(bounds.latest), isBehind: last === undefined || last < least };
}

/** The table's time as well as it is known, for people to read. Never decide by it. */
export function displayTime({ earliest, latest }: Bounds): number {
  return Math.round((earliest + latest) / 2);
}

/** A stamp that is known to be on a row, and what is known of the time. */
export interface Stamped {
  readonly expires: number;
  readonly ttlMs: number;
  /** When the first copy of the write that made it left, on `atMost`. */
  readonly sentAt: number;
  /** What the clock shows now. */
  readonly bounds: Bounds | undefined;
  readonly atMost: number;
}

/**
 * Until when a holder may count on its stamp, on the `atMost` stopwatch; not reduced by the safety margin.
 *
 * Two ways lead to a takeover, and the lease ends before either:
 * - a contender compares `expires` with its `earliest`, which is never later than the true time: so it takes the row over only
 *   after our `latest` has reached `expires`;
 * - a watcher counts the ttl from after it saw the stamp, which was not before the first copy of it was sent.
 *
 * Without bounds nothing can be proven.
 */
export function leaseEnd({ expires, ttlMs, sentAt, bounds, atMost }: Stamped): number {
  if (bounds === undefined) return sentAt;
  return Math.min(atMost + (expires - bounds.latest), sentAt + ttlMs);
}

/**
 * For how long a lock stays taken at least, from its hand-out, however soon its section ends.
 *
 * Its end is chosen once, late enough on any clock within the bounds of that moment. A process that takes the row compares the end
 * with its own `earliest`, which is never later than the true time. So a wrong clock makes a hold longer, and never shorter.
 */
export interface MinimumHold {
  readonly ms: number;
  /** When it began, on `atLeast`. */
  readonly startedAt: number;
  /** Its end on the table's clock. */
  readonly expires: number;
}

export function minimumHold(ms: number, atLeast: number, bounds: Bounds): MinimumHold {
  return { ms, startedAt: atLeast, expires: Math.ceil(bounds.latest + ms) };
}

/** The rest of a hold that began in another process: not shortened, as far as the clock tells. */
export function holdUntil(
  { expires, ms }: Omit<MinimumHold, "startedAt">,
  atLeast: number,
  { earliest }: Bounds,
): MinimumHold {
  // At most `ms`: otherwise a process that watches the row would also wait for as long as these bounds are wide.
  return { ms: Math.min(ms, Math.max(0, expires - earliest)), startedAt: atLeast, expires };
}

/** How a row is left on release: held while the minimum hold lasts, by the stopwatch and by the table's clock; else free. */
export function rowAfterHold(
  hold: MinimumHold | undefined,
  atLeast: number,
  bounds: Bounds | undefined,
): RowAfterRelease {
  if (hold === undefined) return { kind: "free" };
  const left = hold.ms - (atLeast - hold.startedAt);
  if (left <= 0 || (bounds !== undefined && bounds.earliest > hold.expires)) return { kind: "free" };
  return { kind: "held", expires: hold.expires, ttlMs: Math.ceil(left) };
}
