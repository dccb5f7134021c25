import type { Row } from "../protocol/row.js";
import { BoundedMap } from "../session/bounded-map.js";
import { persist } from "../session/requests.js";
import type { Session } from "../session/session.js";
import { removalOf } from "../taking/rows.js";

/** How many rows are removed at once: a queue with thousands of dead waiters must not take the table's throughput. */
const AT_ONCE = 16;

/** Beyond this many rows the oldest are forgotten: a forgotten row that a stale look shows again is removed once more. */
const MOST_KNOWN = 10_000;

/**
 * Removes the rows of dead waiters in the background: no caller's turn depends on it. A row whose removal fails is left to the
 * next waiter that finds it, or to the table's TTL.
 */
export class Sweeper {
  readonly #session: Session;
  readonly #ttlMs: number;
  /** Dead rows that were seen and whose removal has not begun, in order. */
  readonly #dead = new Set<Row>();
  /** Rows that were seen dead: further looks show them again, but each is removed once. */
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
    // A look that was in flight when the table closed may still add rows. They stay: `#run` would return at once, and this loop
    // would never end.
    while (!this.#session.closing.aborted && this.#running < AT_ONCE && this.#dead.size > this.#running) {
      this.#running += 1;
      this.#session.detach(this.#run());
    }
  }

  async #run(): Promise<void> {
    for (const waiter of this.#dead) {
      // A closing table has no time to remove thousands of rows.
      if (this.#session.closing.aborted) break;
      this.#dead.delete(waiter);
      const { bounds, request } = removalOf(this.#session, waiter, this.#ttlMs);
      const persistence = { ...bounds, kind: "release", endSignal: this.#session.closing } as const;
      const removed = persist(this.#session, persistence, request);
      await removed.catch(() => this.#known.delete(seenKey(waiter)));
    }
    this.#running -= 1;
  }
}

/** The sort key is part of it, because rows without a holder have no uuid. */
const seenKey = ({ sort, uuid, expires }: Row): string => `${sort} ${uuid} ${expires}`;
