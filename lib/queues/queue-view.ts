import type { Resource } from "../kinds/kind.js";
import { placesOf } from "../protocol/addresses.js";
import type { Row } from "../protocol/row.js";
import type { Session } from "../session/session.js";
import { type Ask, isDead, pagesOf } from "../taking/rows.js";
import { Sweeper } from "./sweeper.js";

/** What a look at a queue has shown. */
export interface QueueLook {
  /** The lock's own rows, which say whether a caller may enter. */
  readonly gate: readonly Row[];
  /** The first places whose leases run, in order: as many as were enough, or all. */
  readonly places: readonly Row[];
  /** Whether `places` are all that there are. */
  readonly isWhole: boolean;
  /** Whether the table has certainly shown its state at a moment after the look left. */
  readonly isConsistent: boolean;
  /** When the look left, on `atMost`: it does not show places that came later. */
  readonly sentAt: number;
}

/**
 * The queue of one lock, as one process sees it. Places whose lease is over are skipped and removed, each on the
 * condition that its row is still exactly as it was seen: one that was renewed in between stays.
 */
export class QueueView {
  readonly #session: Session;
  readonly #sweeper: Sweeper;

  constructor(session: Session, ttlMs: number) {
    this.#session = session;
    this.#sweeper = new Sweeper(session, ttlMs);
  }

  /**
   * Reads the lock's own rows and the first places: one request, unless rows of dead waiters are in the way.
   *
   * @param resource the lock as its caller knows it: callers may know of different numbers of permits.
   * @param isEnough whether the caller needs no more places than these.
   * @param onSent is called as the request leaves.
   */
  async look(
    ask: Ask,
    resource: Resource,
    isConsistent: boolean,
    isEnough: (gate: readonly Row[], places: readonly Row[]) => boolean,
    onSent: () => void,
  ): Promise<QueueLook> {
    const { name, at, kind, settings } = resource;
    const placeRange = placesOf(kind.queue.keys);
    const range = { first: at.sort, last: placeRange.last, limit: kind.queue.lookLimit(resource) };
    const query = { name, ...range, consistent: isConsistent, takeover: settings.takeover };
    const isGate = ({ sort }: Row): boolean => sort < placeRange.first;
    const gate: Row[] = [];
    const places: Row[] = [];
    let sentAt = 0;
    for await (const { page, isLast } of pagesOf(this.#session, ask, query, onSent)) {
      sentAt ||= page.sentAt;
      gate.push(...kind.queue.gateRows(resource, page.rows.filter(isGate)));
      const queued = page.rows.filter((row) => !isGate(row));
      const dead = new Set(queued.filter((place) => isDead(this.#session, place, page)));
      this.#sweeper.add(dead);
      places.push(...queued.filter((place) => !dead.has(place)));
      // The lock has no row, so it is free, whatever was seen of it before.
      if (gate.length === 0) this.#session.sightings.note(at, undefined);
      if (isLast) break;
      if (isEnough(gate, places)) return { gate, places, isWhole: false, isConsistent, sentAt };
    }
    return { gate, places, isWhole: true, isConsistent, sentAt };
  }
}
