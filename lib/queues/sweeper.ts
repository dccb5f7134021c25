import type { Row } from "../protocol/row.js";
import { BoundedMap } from "../session/bounded-map.js";
import type { Session } from "../session/session.js";
import { removeAsSeen } from "../taking/rows.js";

/** How many rows are removed at once: a queue with thousands of dead waiters must not take the table's throughput. */
const AT_ONCE = 16;

/** Beyond this many rows the oldest are forgotten: one that a stale look shows again is removed once more. */
const MOST_KNOWN = 10_000;

/**
 * Removes the rows of dead waiters in the background: no turn depends on it. What fails is left to the next waiter that
 * finds the row, or to the table's TTL.
 */
export class Sweeper {
  readonly #session: Session;
  readonly #ttlMs: number;
  /** The rows that were seen and have not been dealt with, in order. */
  readonly #dead = new Set<Row>();
  /** Looks are repeated, removals are not. */
  readonly #known = new BoundedMap<string, true>(MOST_KNOWN);
  #running = 0;

  constructor(session: Session, ttlMs: number) {
    this.#session = session;
    this.#ttlMs = ttlMs;
  }

  add(dead: Iterable<Row>): void {
    for (const waiter of dead) {
      const key = seenKey(waiter);
      if (!this.#known.has(key)) this.#dead.add(waiter);
      this.#known.set(key, true);
    }
    // A look that was under way when the table closed may still add some. They are not removed: `#run` would return at once, again
    // and again.
    while (!this.#session.closing.aborted && this.#running < AT_ONCE && this.#dead.size > this.#running) {
      this.#running += 1;
      this.#session.detach(this.#run());
    }
  }

  async #run(): Promise<void> {
    for (const waiter of this.#dead) {
      // A closing table has no time for thousands of them.
      if (this.#session.closing.aborted) break;
      this.#dead.delete(waiter);
      const removed = removeAsSeen(this.#session, waiter, { ttlMs: this.#ttlMs, enough: this.#session.closing });
      await removed.catch(() => this.#known.delete(seenKey(waiter)));
    }
    this.#running -= 1;
  }
}

/** The sort key is part of it, because rows without a holder have no uuid. */
const seenKey = ({ sort, uuid, expires }: Row): string => `${sort} ${uuid} ${expires}`;
