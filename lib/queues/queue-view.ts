import { LOCK_SORT, MUTEX_QUEUE, placesOf } from "../protocol/addresses.js";
import { earliestOf } from "../protocol/lease-time.js";
import { mayTake } from "../protocol/may-take.js";
import type { Row } from "../protocol/row.js";
import type { Request } from "../session/requests.js";
import type { Session } from "../session/session.js";
import type { RangePage, RangeQuery } from "../store.js";
import type { Target } from "../taking/acquisition.js";
import { untilFree } from "../taking/watch.js";
import { Sweeper } from "./sweeper.js";

/** How many rows are read at once where dead ones are in the way: less than 40 KB. */
export const PAGE_ROWS = 100;

/** Asks the table one question, within the bounds of whoever looks. */
export type Ask = <T>(request: Request<T>) => Promise<T>;

/** What was known when the request for a page left: its rows may be no newer than that. */
interface Known {
  /** What `expires` may be compared with. */
  readonly earliest: number;
  /** On `atLeast`. */
  readonly asOf: number;
  /** On `atMost`. */
  readonly sentAt: number;
}

type Page = RangePage & Known;

/** What a look at a queue has shown. */
export interface QueueLook {
  /** The lock's own row. */
  readonly row: Row | undefined;
  /** The first places whose leases run, in order. */
  readonly places: readonly Row[];
  /** Whether there are no others behind them. */
  readonly isWhole: boolean;
  readonly isConsistent: boolean;
  /** When it left, on `atMost`: places that came later were not seen. */
  readonly sentAt: number;
}

const PLACES = placesOf(MUTEX_QUEUE);

/** The lock's row, the first place, and the next: whether anybody waits behind it. */
const LOOK: Range = { first: LOCK_SORT, last: PLACES.last, limit: 3 };

/**
 * The queue of one name, as one process sees it. Places whose lease is over are skipped and removed, each on the
 * condition that its row is still exactly as it was seen: one that was renewed in between stays.
 */
export class QueueView {
  readonly #session: Session;
  readonly #target: Target;
  readonly #sweeper: Sweeper;

  constructor(session: Session, target: Target) {
    this.#session = session;
    this.#target = target;
    this.#sweeper = new Sweeper(session, target);
  }

  /** The lock's own row and the first places: one request, unless dead ones are in the way. @param left as it leaves. */
  async look(ask: Ask, isConsistent: boolean, left: () => void = () => undefined): Promise<QueueLook> {
    let row: Row | undefined;
    let sentAt: number | undefined;
    for await (const { page, rest } of this.#pages(ask, isConsistent, left)) {
      if (sentAt === undefined) {
        sentAt = page.sentAt;
        row = page.rows.find(({ sort }) => sort === LOCK_SORT);
        this.#session.sightings.note(this.#target.at, row);
      }
      const places = this.#alive(page);
      if (places.length > 0) return { row, places, isWhole: rest === undefined, isConsistent, sentAt };
    }
    return { row, places: [], isWhole: true, isConsistent, sentAt: sentAt ?? 0 };
  }

  /** Milliseconds until this place, which has been seen, is nobody's if nothing is done to its row. */
  untilDead(place: Row): number {
    return untilFree(this.#session, { ...this.#target, at: place }, place);
  }

  /** All of them from the first on: a small page first, because the first rows are mostly all that is needed. */
  async *#pages(ask: Ask, consistent: boolean, left: () => void) {
    const { clock, store } = this.#session;
    for (let rest: Range | undefined = LOOK; rest !== undefined; ) {
      const query: RangeQuery = { ...rest, name: this.#target.at.name, consistent };
      const isFirst: boolean = rest === LOOK;
      const page: Page = await ask(async (signal) => {
        if (isFirst) left();
        // Read before the request leaves: a place that the reply shows may be renewed before it arrives.
        const known: Known = { earliest: this.#earliest(), asOf: clock.atLeast(), sentAt: clock.atMost() };
        return { ...(await store.query(query, signal)), ...known };
      });
      rest = restOf(rest, page);
      yield { page, rest };
    }
  }

  /** The places of a page whose leases run; the others are removed. */
  #alive(page: Page): readonly Row[] {
    // The rows of a semaphore of the same name lie in between, its places among them.
    const places = page.rows.filter(({ sort }) => sort >= PLACES.first);
    for (const place of places) this.#session.sightings.note(place, place);
    const dead = new Set(places.filter((place) => this.#isDead(place, page)));
    this.#sweeper.add(dead);
    return places.filter((place) => !dead.has(place));
  }

  #earliest(): number {
    const { takeover } = this.#target.settings;
    return earliestOf(takeover === "unchanged" ? undefined : this.#session.clock.wall());
  }

  /** Judged by what was known before the look left. */
  #isDead(place: Row, { earliest, asOf }: Known): boolean {
    const unchanged = this.#session.sightings.unchanged(place, asOf);
    return mayTake(place, { earliest, unchanged });
  }
}

type Range = Pick<RangeQuery, "first" | "last" | "after" | "limit">;

/** What is left of a range after a page of it: less with every page, or nothing, whatever the page says. */
export function restOf<Part extends Range>(range: Part, { next }: RangePage): Part | undefined {
  if (next === undefined || next < (range.after ?? range.first) || next === range.after) return undefined;
  return next < range.last ? { ...range, after: next, limit: PAGE_ROWS } : undefined;
}
