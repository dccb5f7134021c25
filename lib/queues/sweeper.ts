import type { Row } from "../protocol/row.js";
import { attemptMs, persist } from "../session/requests.js";
import type { Session } from "../session/session.js";
import type { Target } from "../taking/acquisition.js";

/** How many rows are removed at once: a queue with thousands of dead waiters must not take the table's throughput. */
const AT_ONCE = 16;

/** How long one removal is tried. */
const GIVE_UP_MS = 10_000;

/**
 * Removes the rows of dead waiters in the background: no turn depends on it. What fails is left to the next waiter that
 * finds the row, or to the table's TTL.
 */
export class Sweeper {
  readonly #session: Session;
  readonly #target: Target;
  /** Those that are still to be removed. */
  readonly #dead: Row[] = [];
  /** The keys of all that were ever added: looks are repeated, removals must not be. */
  readonly #known = new Set<string>();
  #running = 0;

  constructor(session: Session, target: Target) {
    this.#session = session;
    this.#target = target;
  }

  add(dead: readonly Row[]): void {
    for (const waiter of dead) {
      const key = `${waiter.uuid} ${waiter.expires}`;
      if (this.#known.has(key)) continue;
      this.#known.add(key);
      this.#dead.push(waiter);
    }
    const idle = Math.min(AT_ONCE - this.#running, this.#dead.length);
    for (let count = 0; count < idle; count += 1) this.#session.detach(this.#run());
  }

  async #run(): Promise<void> {
    this.#running += 1;
    for (let waiter = this.#next(); waiter !== undefined; waiter = this.#next()) await this.#remove(waiter);
    this.#running -= 1;
  }

  /** None once the table closes, which must not wait for thousands of removals. */
  #next(): Row | undefined {
    return this.#session.closing.aborted ? undefined : this.#dead.shift();
  }

  async #remove({ name, sort, uuid = "", expires }: Row): Promise<void> {
    const { clock, closing, store } = this.#session;
    const giveUpAt = clock.atMost() + GIVE_UP_MS;
    const ms = attemptMs(this.#target.settings.ttlMs);
    const persistence = { kind: "release", until: () => giveUpAt, attemptMs: ms, enough: closing } as const;
    const write = { kind: "vacate", at: { name, sort }, uuid, seenExpires: expires } as const;
    await persist(this.#session, persistence, (signal) =>
      store.write({ ...write, leaves: { kind: "free" }, remembers: "nothing" }, signal),
    ).catch(() => this.#known.delete(`${uuid} ${expires}`));
  }
}
