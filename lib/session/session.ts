import { randomUUID } from "node:crypto";
import { setMaxListeners } from "node:events";
import { LockError, type LossReason } from "../errors.js";
import type { Address, Row } from "../protocol/row.js";
import type { Store } from "../store.js";
import type { Clock } from "../time/clock.js";
import { Scheduler } from "./requests.js";
import { endAfter } from "./retry.js";
import { Sightings } from "./sightings.js";

/** A lease that this process holds, on a lock's row or on a place in a queue. */
export interface HeldLease {
  readonly row: { readonly at: Address; readonly uuid: string };
  /** Since when the section that relies on it runs, on `atLeast`; undefined if none does. */
  readonly reliedSince: number | undefined;
  /** Its row is known not to be ours any more. */
  lose(reason: LossReason): void;
  /** Ends it, because the table closes. */
  revoke(reason: unknown): Promise<void>;
}

/** What the locks of one table share in a process. Time, randomness and the store are parameters. */
export class Session {
  readonly store: Store;
  readonly clock: Clock;
  readonly owner: string;
  readonly random: () => number;
  readonly uuid: () => string;
  readonly sightings: Sightings;
  readonly scheduler: Scheduler;
  /** The leases that are held. */
  readonly leases: Set<HeldLease> = new Set();
  /** The read that is in flight for the table's time. */
  readingTime: Promise<Row | undefined> | undefined;
  readonly #closing = new AbortController();
  /** When the table was closed, on `atMost`. */
  #closedAt = Number.POSITIVE_INFINITY;
  readonly #waits = new Set<(reason: unknown) => void>();
  readonly #background = new Set<Promise<unknown>>();

  constructor(parts: {
    readonly store: Store;
    readonly clock: Clock;
    readonly owner: string;
    readonly random?: () => number;
    readonly uuid?: () => string;
  }) {
    this.store = parts.store;
    this.clock = parts.clock;
    this.owner = parts.owner;
    this.random = parts.random ?? Math.random;
    // Without Node's cache of random bytes: two copies of a virtual machine would draw the same uuids from it, and each
    // would take the other's lock for its own.
    this.uuid = parts.uuid ?? (() => randomUUID({ disableEntropyCache: true }));
    this.sightings = new Sightings(parts.clock);
    this.scheduler = new Scheduler(parts.clock);
    // Any number of background tasks listens for the close: Node would warn of a leak from 11 on.
    setMaxListeners(0, this.#closing.signal);
  }

  /** Aborts when the table closes. */
  get closing(): AbortSignal {
    return this.#closing.signal;
  }

  /** The end of background work that has `ms` from now, and at most `closedMs` after the table was closed. */
  untilClosed(ms: number, closedMs: number): () => number {
    const end = endAfter(this.clock, ms);
    return () => Math.min(end(), this.#closedAt + closedMs);
  }

  /** @throws {@link LockError} with the code `LOCK_CLOSED` once the table is closed. */
  assertOpen(): void {
    if (this.#closing.signal.aborted) throw this.#closing.signal.reason;
  }

  /** Registers a wait, which `stop` ends, until the returned function is called. */
  waiting(stop: (reason: unknown) => void): () => void {
    this.#waits.add(stop);
    return () => this.#waits.delete(stop);
  }

  /** Runs work that only `close()` awaits. It must handle its own errors. */
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
    const revoke = (lease: HeldLease) => lease.revoke(reason).catch((error) => failures.push(error));
    await Promise.all([...this.leases].map(revoke));
    while (this.#background.size > 0) await Promise.all(this.#background);
    if (failures.length > 0) throw new AggregateError(failures, `${failures.length} locks were lost before the close`);
  }
}
