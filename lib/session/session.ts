import { AsyncResource } from "node:async_hooks";
import { randomUUID } from "node:crypto";
import { LockError } from "../errors.js";
import type { Row } from "../protocol/row.js";
import { retraced } from "../retraced.js";
import type { Store } from "../store.js";
import type { Clock } from "../time/clock.js";
import { listenWithoutBound } from "./abort-listening.js";
import { Agenda } from "./agenda.js";
import { BoundedMap } from "./bounded-map.js";
import { Closing } from "./closing.js";
import { Contention } from "./contention.js";
import { type HeldLease, HeldLeases } from "./held-leases.js";
import { Scheduler } from "./requests.js";
import { endAfter } from "./retry.js";
import { type SectionStack, sectionStack } from "./section-stack.js";
import { Sightings } from "./sightings.js";

export { type HeldLease, rowsOf } from "./held-leases.js";

/** For how many semaphores a process remembers the number of permits. */
const MOST_SEMAPHORES = 1_000;

/** Which table the locks of a process are in, to tell it from others. */
export interface TableId {
  readonly tableName: string;
  readonly keyPrefix: string;
}

/** A read that is in flight for the table's time. */
export interface TimeReading {
  readonly answer: Promise<Row | undefined>;
  /** Until when other calls wait for it, on `atLeast`, and how long that was when it left. */
  readonly overdueAt: number;
  readonly patienceMs: number;
}

/** What the locks of one table share in a process. Time, randomness and the store are parameters. */
export class Session {
  readonly store: Store;
  readonly clock: Clock;
  readonly owner: string;
  readonly table: TableId;
  readonly random: () => number;
  readonly uuid: () => string;
  readonly sightings: Sightings;
  /** The turns of this process where others wait; undefined until somebody waits, so that uncontended locks cost nothing. */
  contention: Contention | undefined;
  readonly scheduler: Scheduler;
  readonly agenda: Agenda;
  /** Runs the functions of its sections. */
  readonly sectionStack: SectionStack = sectionStack();
  /** The leases that are held or being released. A close waits for them, and revokes those whose sections do not end. */
  readonly leases: HeldLeases;
  /** The number of permits of each semaphore that this process uses: the largest, if it uses several. */
  readonly semaphores: Map<string, number> = new BoundedMap(MOST_SEMAPHORES);
  /** The last read that was sent to learn the table's time, if it is in flight. */
  readingTime: TimeReading | undefined;
  /** The asynchronous context in which the table was made. */
  readonly #context = new AsyncResource("DynamutexTable");
  readonly #closed = new AbortController();
  #closing: Closing | undefined;
  readonly #told = new BoundedMap<string, true>(MOST_SEMAPHORES);
  readonly #waits = new Set<(reason: unknown) => void>();
  /** How much work goes on that only `close()` awaits. */
  #background = 0;
  #longestReleaseMs = 0;

  constructor(parts: {
    readonly store: Store;
    readonly clock: Clock;
    readonly owner: string;
    readonly table?: TableId;
    readonly random?: () => number;
    readonly uuid?: () => string;
    /** From how many leases on renewals leave together. */
    readonly togetherFrom?: number;
  }) {
    this.store = parts.store;
    this.clock = parts.clock;
    this.owner = parts.owner;
    this.table = parts.table ?? { tableName: "locks", keyPrefix: "" };
    this.random = parts.random ?? Math.random;
    // Without Node's cache of random bytes: two copies of a virtual machine would draw the same uuids from it, and each
    // would take the other's lock for its own.
    this.uuid = parts.uuid ?? (() => randomUUID({ disableEntropyCache: true }));
    this.sightings = new Sightings(parts.clock);
    this.scheduler = new Scheduler(parts.clock);
    this.leases = new HeldLeases(parts.clock.stay !== undefined);
    this.agenda = new Agenda(parts.clock, this.leases, parts.togetherFrom);
    listenWithoutBound(this.#closed.signal);
  }

  /** The turns of this process, created when somebody waits. */
  contended(): Contention {
    this.contention ??= new Contention(this.clock, (at) => this.leases.uuidsOn(at));
    return this.contention;
  }

  forgetLease(lease: HeldLease): void {
    if (this.leases.delete(lease)) this.#closing?.checkSettled();
  }

  /** Aborts when the table closes. */
  get closing(): AbortSignal {
    return this.#closed.signal;
  }

  /** An `until` for background work: `ms` from now, and no later than the end of a close. */
  untilClosed(ms: number): () => number {
    const end = endAfter(this.clock, ms);
    return () => Math.min(end(), this.clock.atMost() + (this.#closing?.remainingMs ?? Number.POSITIVE_INFINITY));
  }

  /** @throws {@link LockError} with the code `LOCK_CLOSED` once the table is closed. */
  assertOpen(lockName?: string): void {
    // Each call gets an error of its own, whose stack names it.
    if (this.closing.aborted) throw retraced(this.closing.reason, lockName);
  }

  /** Registers a wait, which `stop` ends, until the returned function is called. */
  waiting(stop: (reason: unknown) => void): () => void {
    this.#waits.add(stop);
    return () => this.#waits.delete(stop);
  }

  /** Whether this is reported for the first time. */
  isNews(what: string): boolean {
    if (this.#told.has(what)) return false;
    this.#told.set(what, true);
    return true;
  }

  /** Notes with how many permits this process uses a semaphore. */
  usesSemaphore(name: string, permits: number): void {
    this.semaphores.set(name, Math.max(this.semaphores.get(name) ?? 0, permits));
  }

  /** Notes how long the release of a lock is retried: a close has as much time after its drain. */
  mayRelease(withinMs: number): void {
    this.#longestReleaseMs = Math.max(this.#longestReleaseMs, withinMs);
  }

  /** Runs what serves several callers, in the asynchronous context of none of them: in that in which the table was made. */
  inOwnContext<Result>(run: () => Result): Result {
    return this.#context.runInAsyncScope(run);
  }

  /** Runs work that only `close()` awaits. It must handle its own errors. */
  detach(work: Promise<unknown>): void {
    const done = (): void => {
      this.#background -= 1;
      this.#closing?.checkSettled();
    };
    this.#background += 1;
    work.then(done, done);
  }

  /** Ends waiting calls, drains and revokes. The store is closed when nothing is left. @throws as {@link Closing.close} does. */
  close(drainMs?: number): Promise<void> {
    if (this.#closing === undefined) {
      const longestReleaseMs = (): number => this.#longestReleaseMs;
      const remaining = { leases: this.leases, background: () => this.#background, longestReleaseMs };
      const closing = new Closing(this.clock, remaining, () => this.store.close());
      this.#closing = closing;
      const reason = new LockError(
        "LOCK_CLOSED",
        "This LockTable is closed: await calls before you close it, or make a new one",
      );
      this.#closed.abort(reason);
      for (const stop of [...this.#waits]) stop(reason);
    }
    return this.#closing.close(drainMs, { isInside: this.sectionStack.isInside() });
  }
}
