import { randomUUID } from "node:crypto";
import { setMaxListeners } from "node:events";
import { LockError } from "../errors.js";
import type { TableStore, TicketStore } from "../ticket-store.js";
import type { Clock } from "../time/clock.js";
import { Lanes } from "./lanes.js";
import { endAfter } from "./retry.js";
import { Scheduler } from "./scheduler.js";
import { Observations } from "./sightings.js";

/** Something that a closing table has to end. */
interface Held {
  revoke(reason: unknown): Promise<void>;
}

/** How many locks a closing table releases at once. */
const RELEASED_AT_ONCE = 48;

/** What the mutexes of one table share in a process. Time, randomness and the store are parameters. */
export class Host {
  readonly store: TableStore;
  readonly clock: Clock;
  readonly owner: string;
  readonly random: () => number;
  readonly uuid: () => string;
  readonly observations: Observations;
  /** What has been seen of waiters' rows. */
  readonly waiters: Observations;
  /** What the renewals of all locks share. */
  readonly lanes: Lanes;
  /** The way of all requests to the table. */
  readonly scheduler: Scheduler;
  readonly #closing = new AbortController();
  /** When the table was closed, on `atMost`. */
  #closedAt = Number.POSITIVE_INFINITY;
  readonly #held = new Set<Held>();
  readonly #waits = new Set<(reason: unknown) => void>();
  readonly #background = new Set<Promise<unknown>>();

  constructor(parts: {
    readonly store: TableStore;
    readonly clock: Clock;
    readonly owner: string;
    readonly random?: () => number;
    readonly uuid?: () => string;
  }) {
    this.store = parts.store;
    this.clock = parts.clock;
    this.owner = parts.owner;
    this.random = parts.random ?? Math.random;
    // Without Node's store of random bytes drawn ahead: two copies of a virtual machine would draw the same uuids from it,
    // and each take the other's lock for its own.
    this.uuid = parts.uuid ?? (() => randomUUID({ disableEntropyCache: true }));
    this.observations = new Observations(parts.clock);
    this.waiters = new Observations(parts.clock);
    this.lanes = new Lanes(parts.clock);
    this.scheduler = new Scheduler(parts.clock);
    // All that runs in the background listens for the close, however much it is: Node would warn of a leak from 11 on.
    setMaxListeners(0, this.#closing.signal);
  }

  /** The queue of fair mutexes, which are refused at construction where there is none. */
  get tickets(): TicketStore {
    if (this.store.tickets === undefined) throw new TypeError("This store has no queue");
    return this.store.tickets;
  }

  /** Aborts when the table closes. */
  get closing(): AbortSignal {
    return this.#closing.signal;
  }

  /** Until when work in the background is tried that has so many ms from now, and fewer once the table is closed. */
  untilClosed(ms: number, closedMs: number): () => number {
    const end = endAfter(this.clock, ms);
    return () => Math.min(end(), this.#closedAt + closedMs);
  }

  /** @throws {@link LockError} with the code `LOCK_CLOSED` once the table is closed. */
  assertOpen(): void {
    if (this.#closing.signal.aborted) throw this.#closing.signal.reason;
  }

  /** How many locks this process holds. */
  get holding(): number {
    return this.#held.size;
  }

  hold(lock: Held): void {
    this.#held.add(lock);
  }

  drop(lock: Held): void {
    this.#held.delete(lock);
  }

  /** Registers a wait, which `stop` ends; the answer takes it off again. */
  waiting(stop: (reason: unknown) => void): () => void {
    this.#waits.add(stop);
    return () => this.#waits.delete(stop);
  }

  /** Work that nobody awaits but `close()`. It must handle its own errors. */
  detach(work: Promise<unknown>): void {
    const done = (): void => void this.#background.delete(tracked);
    const tracked: Promise<void> = work.then(done, done);
    this.#background.add(tracked);
  }

  /**
   * Stops waiting, releases all that is held, and waits for what runs in the background.
   * @throws AggregateError of what the releases threw, after all of them have ended.
   */
  async close(): Promise<void> {
    if (!this.#closing.signal.aborted) {
      this.#closedAt = this.clock.atMost();
      this.#closing.abort(new LockError("LOCK_CLOSED", "This LockTable is closed: make a new one to lock again"));
    }
    const { reason } = this.#closing.signal;
    for (const stop of [...this.#waits]) stop(reason);
    const failures: unknown[] = [];
    const toRelease = [...this.#held];
    const releaseOneByOne = async (): Promise<void> => {
      for (let lock = toRelease.pop(); lock !== undefined; lock = toRelease.pop()) {
        await lock.revoke(reason).catch((error) => failures.push(error));
      }
    };
    // Those that have not had their turn are still renewed.
    await Promise.all(Array.from({ length: RELEASED_AT_ONCE }, releaseOneByOne));
    while (this.#background.size > 0) await Promise.all(this.#background);
    if (failures.length > 0) throw new AggregateError(failures, `${failures.length} locks were lost before the close`);
  }
}
