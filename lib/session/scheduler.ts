import { LockStoreError } from "../errors.js";
import type { Clock } from "../time/clock.js";
import { onAbort } from "./abort-listening.js";
import { DeadlineQueue, precedes, type Queued } from "./deadline-queue.js";
import { Latencies } from "./latencies.js";

/** What a request does, for the least share that each kind has. */
export type RequestKind = "renewal" | "release" | "take" | "read";

const KINDS: readonly RequestKind[] = ["renewal", "release", "take", "read"];

/** Of so many requests in a row that leave the queue, each kind that waits has at least one. */
const SHARED_AMONG = 8;

/**
 * When so many others have left the queue since a kind's last one, its next one has priority. Several kinds can come to
 * that at once, and the last of them must still be among {@link SHARED_AMONG}.
 */
const OVERDUE_AFTER = SHARED_AMONG - KINDS.length + 1;

/** How many requests are under way at once while the table does not throttle. */
const BASE_WIDTH = 48;
const LEAST_WIDTH = 4;
/** However many leases are held: more would only wait for one another in this process. */
const GREATEST_WIDTH = 512;

/** A request is slow, and gives up its slot, after so many times the median latency, and never before the least time. */
const SLOW_TIMES = 3;
const LEAST_SLOW_MS = 250;

/** A request that waits for a slot. Moments are on the `atMost` stopwatch. */
export interface ScheduledRequest {
  readonly kind: RequestKind;
  /** Until when an answer is worth something: the earliest goes first. Read when the request is queued. */
  readonly deadline: number;
  /** When the wait for a slot ends. Looked at when the request is queued, and again when that moment comes. Default: never. */
  readonly until?: (() => number) | undefined;
  /** Ends the wait for a slot. A request that has left is not touched. */
  readonly enough?: AbortSignal | undefined;
}

interface Waiting extends Queued {
  readonly kind: RequestKind;
  readonly leave: () => void;
}

interface UnderWay {
  /** On `atLeast`. */
  readonly leftAt: number;
}

/**
 * Sends all requests of one process to one table, so many at a time.
 *
 * 1. A request leaves at once where there is a free slot, and is queued otherwise.
 * 2. From the queue, the earliest deadline leaves first. Each kind that waits has a least share, whatever the deadlines of
 *    the others: no burst of one kind holds up another.
 * 3. The number of slots is a base, or what the renewals of the held leases need, whichever is more. Throttling halves the
 *    base, successes restore it step by step. Nothing else makes it smaller: where the table is slow or out of reach,
 *    fewer requests at once would only lose leases.
 * 4. A request that takes far longer than the others gives its slot to another, and goes on without one.
 */
export class Scheduler {
  readonly #clock: Clock;
  readonly #latencies = new Latencies();
  readonly #queues: Readonly<Record<RequestKind, DeadlineQueue<Waiting>>> = {
    renewal: new DeadlineQueue(),
    release: new DeadlineQueue(),
    take: new DeadlineQueue(),
    read: new DeadlineQueue(),
  };
  /** How many have left the queue since the last one of this kind did, while one of this kind waited. */
  readonly #passedOver: Record<RequestKind, number> = { renewal: 0, release: 0, take: 0, read: 0 };
  /** Those that have a slot, in the order in which they left. */
  readonly #underWay = new Set<UnderWay>();
  #waiting = 0;
  #order = 0;
  #base = BASE_WIDTH;
  #renewalsPerMs = 0;
  /** When throttling last reduced the base, on `atLeast`. */
  #shrunkAt = Number.NEGATIVE_INFINITY;
  #cancelAlarm: (() => void) | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The median time that an answer takes at present; undefined before the first answer. */
  get typicalMs(): number | undefined {
    return this.#latencies.typicalMs;
  }

  /** The time within which all but one in twenty answers come at present; undefined before the first answer. */
  get slowMs(): number | undefined {
    return this.#latencies.slowMs;
  }

  /** How many requests may be under way at once, not counting the slow ones. */
  get width(): number {
    const needed = Math.round(2 * this.#renewalsPerMs * (this.typicalMs ?? 0));
    return Math.min(GREATEST_WIDTH, Math.max(Math.floor(this.#base), needed));
  }

  /**
   * Calls `send` as soon as there is a slot: synchronously, if there is one now. What a request says about its time is
   * chosen inside `send`, so that it is true of the moment at which the request leaves.
   *
   * @throws the reason of `enough` if it aborts before the request has left; a {@link LockStoreError} if `until` comes
   * before that; what `send` throws.
   */
  run<T>(request: ScheduledRequest, send: () => Promise<T>): Promise<T> {
    const { enough } = request;
    if (enough?.aborted) return Promise.reject(enough.reason);
    if (this.#waiting === 0 && this.#underWay.size < this.width) return this.#send(send);
    return new Promise<T>((resolve, reject) => this.#enqueue(request, () => resolve(this.#send(send)), reject));
  }

  /** A lease is held that is renewed every so many ms: there are always slots enough for it. The answer ends that. */
  expectRenewals(everyMs: number): () => void {
    const perMs = 1 / everyMs;
    this.#renewalsPerMs += perMs;
    this.#dispatch();
    let expected = true;
    return () => {
      if (!expected) return;
      expected = false;
      this.#renewalsPerMs = Math.max(0, this.#renewalsPerMs - perMs);
    };
  }

  #send<T>(send: () => Promise<T>): Promise<T> {
    const request = { leftAt: this.#clock.atLeast() };
    this.#underWay.add(request);
    let answer: Promise<T>;
    try {
      answer = send();
    } catch (error) {
      answer = Promise.reject(error);
    }
    answer.then(
      () => this.#succeeded(request),
      (error) => this.#failed(request, error),
    );
    return answer;
  }

  #succeeded(request: UnderWay): void {
    this.#latencies.add(this.#clock.atLeast() - request.leftAt);
    // One more for each round of answers, as congestion control has it.
    this.#base = Math.min(BASE_WIDTH, this.#base + 1 / this.#base);
    this.#underWay.delete(request);
    this.#dispatch();
  }

  #failed(request: UnderWay, error: unknown): void {
    // What left before the base was reduced says nothing about how much the reduced one is for the table.
    if (error instanceof LockStoreError && error.throttled && request.leftAt > this.#shrunkAt) {
      this.#base = Math.max(LEAST_WIDTH, this.#base / 2);
      this.#shrunkAt = this.#clock.atLeast();
    }
    this.#underWay.delete(request);
    this.#dispatch();
  }

  #enqueue(request: ScheduledRequest, start: () => void, reject: (reason: unknown) => void): void {
    const { kind, deadline, enough, until } = request;
    const queuedAt = this.#clock.atLeast();
    let cancelUntil: (() => void) | undefined;
    const stopListening = enough && onAbort(enough, () => giveUp(enough.reason));
    const leaveQueue = (): void => {
      this.#queues[kind].remove(waiting);
      this.#waiting -= 1;
      cancelUntil?.();
      stopListening?.();
      if (this.#waiting === 0) this.#disarm();
    };
    const giveUp = (reason: unknown): void => {
      leaveQueue();
      reject(reason);
    };
    const giveUpAt = (end: () => number): void => {
      const leftMs = end() - this.#clock.atMost();
      if (leftMs <= 0) giveUp(notSent(this.#clock.atLeast() - queuedAt, this.#underWay.size));
      else if (leftMs < Number.POSITIVE_INFINITY) cancelUntil = this.#clock.alarm(leftMs, () => giveUpAt(end));
    };
    const leave = (): void => {
      leaveQueue();
      start();
    };
    const waiting: Waiting = { kind, deadline, order: this.#order++, position: 0, leave };
    if (this.#queues[kind].size === 0) this.#passedOver[kind] = 0;
    this.#queues[kind].add(waiting);
    this.#waiting += 1;
    if (until !== undefined) giveUpAt(until);
    // Nobody has waited until now, so slow requests may still have their slots.
    this.#dispatch();
  }

  /** Fills the free slots from the queue. Where some still wait, the request that becomes slow next is watched. */
  #dispatch(): void {
    if (this.#waiting === 0) return;
    this.#freeSlowSlots();
    while (this.#underWay.size < this.width) {
      const next = this.#next();
      if (next === undefined) return;
      this.#countDeparture(next.kind);
      next.leave();
    }
    if (this.#waiting > 0) this.#arm();
  }

  /** The earliest deadline, unless a kind has been passed over for too long. */
  #next(): Waiting | undefined {
    let earliest: Waiting | undefined;
    let overdue: Waiting | undefined;
    for (const kind of KINDS) {
      const { first } = this.#queues[kind];
      if (first === undefined) continue;
      if (earliest === undefined || precedes(first, earliest)) earliest = first;
      const passedOver = this.#passedOver[kind];
      if (passedOver < OVERDUE_AFTER) continue;
      if (overdue === undefined || passedOver > this.#passedOver[overdue.kind]) overdue = first;
    }
    return overdue ?? earliest;
  }

  #countDeparture(of: RequestKind): void {
    for (const kind of KINDS) this.#passedOver[kind] = kind === of ? 0 : this.#passedOver[kind] + 1;
  }

  #freeSlowSlots(): void {
    const slowSince = this.#clock.atLeast() - this.#slowAfterMs;
    for (const request of this.#underWay) {
      if (request.leftAt > slowSince) return;
      this.#underWay.delete(request);
    }
  }

  get #slowAfterMs(): number {
    return Math.max(LEAST_SLOW_MS, SLOW_TIMES * (this.typicalMs ?? 0));
  }

  /** One alarm at a time, for the request that becomes slow first. It may ring for one that has ended: then for the next. */
  #arm(): void {
    if (this.#cancelAlarm !== undefined) return;
    for (const { leftAt } of this.#underWay) {
      const ms = Math.ceil(leftAt + this.#slowAfterMs - this.#clock.atLeast());
      this.#cancelAlarm = this.#clock.alarm(ms, () => {
        this.#cancelAlarm = undefined;
        this.#dispatch();
      });
      return;
    }
  }

  #disarm(): void {
    this.#cancelAlarm?.();
    this.#cancelAlarm = undefined;
  }
}

function notSent(waitedMs: number, underWay: number): LockStoreError {
  return new LockStoreError(
    `Not sent within ${Math.round(waitedMs)} ms: ${underWay} requests of this process were under way, and others went first`,
    { transient: true, answered: false },
  );
}
