import { earliestOf } from "../protocol/lease-time.js";
import { mayTake } from "../protocol/may-take.js";
import { COUNTER_SORT, FIRST_PLACE, LAST_PLACE, LOCK_SORT, placeSort, type Row, ticketOf } from "../protocol/row.js";
import { LONGEST_ATTEMPT_MS } from "../session/retry.js";
import type { Session } from "../session/session.js";
import type { RangePage, RangeQuery } from "../store.js";
import type { Target } from "../taking/acquisition.js";
import type { Wait } from "../taking/wait.js";
import { untilFree } from "../taking/watch.js";
import type { Place } from "./place.js";
import { Sweeper } from "./sweeper.js";

/** How many rows are read at once where dead ones are in the way: less than 40 KB. */
export const PAGE_ROWS = 100;

/** A page, and what was known when its request left: its rows may be no newer than that. */
interface Look extends RangePage {
  /** What `expires` may be compared with. */
  readonly earliest: number;
  /** On `atLeast`. */
  readonly asOf: number;
  /** When its request left, on `atMost`. */
  readonly sentAt: number;
}

export interface Front {
  /** The lock's own row. */
  readonly row: Row | undefined;
  /** Whether there is a waiter whose lease runs. */
  readonly hasWaiters: boolean;
  /** When the look left, on `atMost`: waiters that came later were not seen. */
  readonly sentAt: number;
}

export interface Ahead {
  /** Whether its own row is there. */
  readonly present: boolean;
  /** The nearest waiter ahead who is alive. */
  readonly ahead: Row | undefined;
  /** When the look left, on `atMost`. */
  readonly sentAt: number;
}

/**
 * The queue of one name, as one call sees it. Waiters whose lease is over are skipped and removed, each on the
 * condition that its row is still exactly as it was seen: one that was renewed in between stays.
 */
export class QueueView {
  readonly #session: Session;
  readonly #target: Target;
  readonly #wait: Wait;
  readonly #sweeper: Sweeper;

  constructor(session: Session, target: Target, wait: Wait) {
    this.#session = session;
    this.#target = target;
    this.#wait = wait;
    this.#sweeper = new Sweeper(session, target);
  }

  /** The lock's own row, and whether anybody waits, consistent: one request, unless dead waiters are in the way. */
  async front(): Promise<Front> {
    let row: Row | undefined;
    let sentAt: number | undefined;
    for await (const look of this.#looks({ first: LOCK_SORT, last: LAST_PLACE, order: "ascending", limit: 2 }, true)) {
      sentAt ??= look.sentAt;
      row ??= look.rows.find(({ sort }) => sort === LOCK_SORT);
      if (this.#firstAlive(look.rows, look) !== undefined) return { row, hasWaiters: true, sentAt };
    }
    return { row, hasWaiters: false, sentAt: sentAt ?? 0 };
  }

  /** What is before a waiter's own row, and whether that is still there, consistent. */
  async before(own: Place): Promise<Ahead> {
    let present = false;
    let sentAt: number | undefined;
    for await (const look of this.#looks(this.#upTo(own.at.sort, 2), true)) {
      sentAt ??= look.sentAt;
      present ||= look.rows.some(({ sort, uuid }) => sort === own.at.sort && uuid === own.uuid);
      const others = look.rows.filter(({ sort }) => sort !== own.at.sort);
      const ahead = this.#firstAlive(others, look);
      if (ahead !== undefined) return { present, ahead, sentAt };
    }
    return { present, ahead: undefined, sentAt: sentAt ?? 0 };
  }

  /** The nearest waiter ahead who is alive, as a hint: half a read unit however long the queue is. */
  async ahead(own: Place): Promise<Row | undefined> {
    for await (const look of this.#looks(this.#upTo(placeSort(own.ticket - 1n), 1), false)) {
      const ahead = this.#firstAlive(look.rows, look);
      if (ahead !== undefined) return ahead;
    }
    return undefined;
  }

  /** Milliseconds until this waiter, which has been seen, is dead if nothing is done to its row. */
  untilDead(waiter: Row): number {
    return untilFree(this.#session, { ...this.#target, at: waiter }, waiter);
  }

  #upTo(last: string, limit: number): Range {
    return { first: FIRST_PLACE, last, order: "descending", limit };
  }

  /** All rows from there on: a small page first, because the first row is mostly all that is needed. */
  async *#looks(range: Range, consistent: boolean): AsyncGenerator<Look> {
    const { clock, store } = this.#session;
    for (let rest: Range | undefined = range; rest !== undefined; ) {
      const query: RangeQuery = { ...rest, name: this.#target.at.name, consistent };
      const persistence = { kind: "read", attemptMs: LONGEST_ATTEMPT_MS, until: this.#wait.until } as const;
      const look = await this.#wait.persist(persistence, async (signal) => {
        // Read before the request leaves: a waiter that the reply shows may be renewed before it arrives.
        const known = { earliest: this.#earliest(), asOf: clock.atLeast(), sentAt: clock.atMost() };
        return { ...(await store.query(query, signal)), ...known };
      });
      yield look;
      rest = restOf(rest, look);
    }
  }

  /** The first of these waiters, in their order, whose lease runs; those whose lease is over are removed. */
  #firstAlive(rows: readonly Row[], look: Look): Row | undefined {
    const waiters = rows.filter(({ sort }) => ticketOf(sort) !== undefined);
    for (const waiter of waiters) this.#session.sightings.note(waiter, waiter);
    const dead = new Set(waiters.filter((waiter) => this.#isDead(waiter, look)));
    this.#sweeper.add(dead);
    return waiters.find((waiter) => !dead.has(waiter));
  }

  #earliest(): number {
    const { takeover } = this.#target.settings;
    return earliestOf(takeover === "unchanged" ? undefined : this.#session.clock.wall());
  }

  /** Judged by what was known before the look left. */
  #isDead(waiter: Row, { earliest, asOf }: Look): boolean {
    const unchanged = this.#session.sightings.unchanged(waiter, asOf);
    return mayTake(waiter, { earliest, unchanged });
  }
}

type Range = Pick<RangeQuery, "first" | "last" | "order" | "limit">;

/** What is left of a range after a page of it: less with every page, or nothing, whatever the page says. */
export function restOf<Part extends Range>(range: Part, { next }: RangePage): Part | undefined {
  // The counter sorts after the places, and is not one.
  if (next === undefined || next === COUNTER_SORT) return undefined;
  const limit = PAGE_ROWS;
  const ticket = ticketOf(next) ?? -1n;
  const isAscending = range.order === "ascending";
  const [first, last] = isAscending ? [placeSort(ticket + 1n), range.last] : [range.first, placeSort(ticket - 1n)];
  return (isAscending ? first > range.first : last < range.last) ? { ...range, first, last, limit } : undefined;
}
