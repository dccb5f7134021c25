import type { Clock } from "./clock.js";
import { isKept, sightingOf } from "./row.js";
import type { Row, Sighting } from "./store.js";

/** Beyond this many names the oldest are forgotten: that delays a takeover of theirs and costs nothing else. */
const MOST_NAMES = 10_000;

interface Observation {
  readonly sighting: Sighting | undefined;
  readonly ttlMs: number;
  readonly kept: boolean;
  /** When this very lease was first seen, on the `atLeast` stopwatch. */
  readonly since: number;
}

/**
 * What this process has seen of rows that others hold, and for how long it has seen them unchanged.
 *
 * It outlives the calls that look, so that callers who only ever `tryLock()` can take over as well.
 */
export class Observations {
  readonly #clock: Clock;
  readonly #seen = new Map<string, Observation>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * Notes a row. Called after the reply came back, so that the stopwatch starts later than the moment at which
   * the row was so; a stale read is no harm, because a takeover's condition names the exact lease.
   */
  note(name: string, row: Row | undefined): void {
    if (row === undefined) {
      this.#seen.delete(name);
      return;
    }
    const sighting = sightingOf(row);
    const { ttlMs } = row;
    const kept = isKept(row);
    const before = this.#seen.get(name);
    if (before?.ttlMs === ttlMs && before.kept === kept && isSame(before.sighting, sighting)) return;
    this.#seen.delete(name);
    this.#seen.set(name, { sighting, ttlMs, kept, since: this.#clock.atLeast() });
    if (this.#seen.size <= MOST_NAMES) return;
    for (const oldest of this.#seen.keys()) {
      this.#seen.delete(oldest);
      break;
    }
  }

  /** Whether the row, when last seen, remembered something that a put would wipe out. */
  kept(name: string): boolean {
    return this.#seen.get(name)?.kept ?? false;
  }

  /** Milliseconds until the lease last seen has been unchanged for the row's own ttl; Infinity where none was seen. */
  untilUnchanged(name: string): number {
    const seen = this.#seen.get(name);
    if (seen?.sighting === undefined) return Number.POSITIVE_INFINITY;
    return Math.max(0, seen.since + seen.ttlMs - this.#clock.atLeast());
  }

  /** The lease that has been seen unchanged for the row's own ttl: its holder has stopped believing in it. */
  unchanged(name: string): Sighting | undefined {
    return this.untilUnchanged(name) === 0 ? this.#seen.get(name)?.sighting : undefined;
  }
}

function isSame(one: Sighting | undefined, other: Sighting | undefined): boolean {
  return one?.uuid === other?.uuid && one?.expires === other?.expires;
}
