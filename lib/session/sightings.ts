import { isKept } from "../protocol/row.js";
import type { Row, Sighting } from "../store.js";
import type { Clock } from "../time/clock.js";

/** Beyond this many names the oldest are forgotten: that delays a takeover of theirs and costs nothing else. */
const MOST_NAMES = 10_000;

interface Which {
  readonly holders: boolean;
  readonly at?: number | undefined;
}

interface Observation {
  readonly sighting: Sighting;
  readonly ttlMs: number;
  readonly kept: boolean;
  readonly ticked: boolean;
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
    const seen = {
      sighting: { uuid: row.uuid, expires: row.expires },
      ttlMs: row.ttlMs,
      kept: isKept(row),
      ticked: row.tick !== undefined,
      since: this.#clock.atLeast(),
    };
    const before = this.#seen.get(name);
    if (before !== undefined && isSame(before, seen)) return;
    this.#seen.delete(name);
    this.#seen.set(name, seen);
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

  /** Whether the row, when last seen, remembered a tick. */
  ticked(name: string): boolean {
    return this.#seen.get(name)?.ticked ?? false;
  }

  /**
   * Milliseconds until what was last seen has been unchanged for the row's own ttl; Infinity where nothing was.
   *
   * @param holders whether only a holder's lease counts. A row that was parked or freed by force has nobody whose
   * renewals could be missed: where the clock is trusted, its `expires` says all there is to know.
   * @param at when the row was still as it was last seen, on `atLeast`: default now, which a write's condition makes good.
   */
  untilUnchanged(name: string, { holders, at = this.#clock.atLeast() }: Which): number {
    const seen = this.#seen.get(name);
    if (seen === undefined || (holders && seen.sighting.uuid === undefined)) return Number.POSITIVE_INFINITY;
    return Math.max(0, seen.since + seen.ttlMs - at);
  }

  /** What has been seen unchanged for the row's own ttl: its holder has stopped believing in it, its hold is over. */
  unchanged(name: string, which: Which): Sighting | undefined {
    return this.untilUnchanged(name, which) === 0 ? this.#seen.get(name)?.sighting : undefined;
  }
}

function isSame(one: Observation, other: Observation): boolean {
  return (
    one.sighting.uuid === other.sighting.uuid &&
    one.sighting.expires === other.sighting.expires &&
    one.ttlMs === other.ttlMs &&
    one.kept === other.kept &&
    one.ticked === other.ticked
  );
}
