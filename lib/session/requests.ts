import { LockStoreError } from "../errors.js";
import type { Clock } from "../time/clock.js";
import { Backlog, notSent, type RequestKind, type ScheduledRequest } from "./backlog.js";
import {
  type Copies,
  causeOf,
  LONGEST_ATTEMPT_MS,
  NoAnswer,
  noAnswer,
  type Persistence,
  retry,
  type Tried,
} from "./retry.js";

/** How many requests are in flight at once while the table does not throttle. */
const BASE_WIDTH = 48;
const LEAST_WIDTH = 4;
/** However many leases are held: more would only wait for one another in this process. */
const GREATEST_WIDTH = 512;

/** Of the slots, the share that renewals may have to themselves: the rest is enough for others to go on. */
const RESERVED_SHARE = 3 / 4;

/** A request is slow, and gives up its slot, after so many times the median latency, and never before the least time. */
const SLOW_TIMES = 3;
const LEAST_SLOW_MS = 250;

/**
 * For so long at least the shortest latency counts as the distance of the table. Answers that are slower than that waited
 * somewhere, and more requests at once would make them slower still.
 */
const DISTANCE_MS = 60_000;

/** How many of the latest answers count: enough for a percentile, few enough to follow a table that slows down. */
const REMEMBERED = 64;
const SLOW_SHARE = 0.95;

/** The least time that an attempt needs, while no latency is known. */
const LEAST_ATTEMPT_MS = 50;

/** An attempt is given at least so many times as long as slow answers take: what is sent again too soon slows them further. */
const PATIENCE_TIMES = 3;

/** How long the first attempt at a request of such a lease may take before it counts as unanswered. */
export function attemptMs(ttlMs: number): number {
  return Math.min(LONGEST_ATTEMPT_MS, Math.max(50, ttlMs / 4));
}

/** One request, with the signal that ends it. */
export type Request<T> = (signal: AbortSignal) => Promise<T>;

/** Nothing has been tried yet. */
export function untried(): Tried {
  return { since: undefined, sent: 0, failure: undefined };
}

/** What the requests of one process share. */
export interface Requests {
  readonly clock: Clock;
  readonly scheduler: Scheduler;
  readonly random: () => number;
}

/**
 * Sends a request when its turn comes among those of this process, and again after transient failures, with growing,
 * jittered pauses on the clock, until `until`.
 *
 * @param request is called as a copy leaves: what it says about the time is chosen inside.
 * @throws what the last attempt threw; the reason of `enough` if that aborts before anything was sent.
 */
export function persist<T>(session: Requests, persistence: Persistence, request: Request<T>): Promise<T> {
  const { clock, scheduler } = session;
  const { kind, until, deadline = until, attemptMs: firstMs, enough, copies, tried = untried() } = persistence;
  tried.since ??= clock.atLeast();
  const since = tried.since;
  const triedMs = (): number => clock.atLeast() - since;
  const remainingMs = (): number => Math.max(0, until() - clock.atMost());
  const boundMs = (): number => {
    const patienceMs = Math.max(firstMs * 2 ** (attempts.sent - 1), PATIENCE_TIMES * (scheduler.slowMs ?? 0));
    return Math.min(Math.max(firstMs, Math.min(LONGEST_ATTEMPT_MS, patienceMs)), remainingMs());
  };
  const send = (): Promise<T> => {
    let isFirst = tried.sent === 0;
    const answer = scheduler.run({ kind, deadline: deadline(), until, enough }, () => {
      // With less time, an attempt could only time out, and hide the cause of the one before it. The pauses go on until
      // `until`, so that the caller does not begin again before that.
      const leastMs = Math.min(firstMs, scheduler.distanceMs ?? LEAST_ATTEMPT_MS);
      const leftMs = remainingMs();
      if (leftMs === 0 || (!isFirst && leftMs < leastMs))
        throw notSent(triedMs(), "too little time was left for an answer");
      attempts.sent += 1;
      tried.sent += 1;
      const late = () => noAnswer(triedMs(), tried.sent, causeOf(tried.failure));
      return scheduler.attempt(request, boundMs, late, copies);
    });
    isFirst = false; // It waits behind others, if it has not left by now.
    return answer;
  };
  const attempts = { sent: 0, tried, send };
  return send().catch((error: unknown) => retry(session, persistence, attempts, error));
}

/** Sends a request when its turn comes, and never retries it: for requests that may fail. */
export function sendOnce<T>(
  { clock, scheduler }: Requests,
  { kind, attemptMs, enough }: Pick<Persistence, "kind" | "attemptMs" | "enough">,
  request: Request<T>,
): Promise<T> {
  const deadline = clock.atMost() + attemptMs;
  const late = () => noAnswer(attemptMs);
  return scheduler.run({ kind, deadline, enough }, () => scheduler.attempt(request, () => attemptMs, late));
}

/** A request that has left. */
interface UnderWay {
  readonly kind: RequestKind;
  /** On `atLeast`. */
  readonly leftAt: number;
}

/**
 * Sends all requests of one process to one table, so many at a time.
 *
 * 1. A request leaves at once where there is a free slot, and waits in the {@link Backlog} otherwise.
 * 2. The number of slots is a base, or what the renewals of the held leases need on a table so far away, whichever is
 *    more. Throttling halves the base, successes restore it step by step. Nothing else makes it smaller: where the table
 *    is out of reach, fewer requests at once would only lose leases. Nor does overload make it greater: where answers
 *    take longer than the distance of the table, more requests at once would only wait for one another.
 * 3. The slots that renewals need while answers take as long as they do are kept from all others, so that no burst of takes
 *    is in their way.
 * 4. A request that takes far longer than the others gives its slot to another, and goes on without one. No more do so
 *    than there are slots.
 */
export class Scheduler {
  readonly #clock: Clock;
  readonly #backlog: Backlog;
  /** Those that have a slot, in the order in which they left. */
  readonly #underWay = new Set<UnderWay>();
  /** How many of those are no renewals. */
  #others = 0;
  /** Those that gave up their slots and are still under way. */
  readonly #slow = new Set<UnderWay>();
  #base = BASE_WIDTH;
  #renewalsPerMs = 0;
  /** When throttling last reduced the base, on `atLeast`. */
  #shrunkAt = Number.NEGATIVE_INFINITY;
  /** The shortest latency since a moment on `atLeast`, and in the span of time before that. */
  #nearest = { since: Number.NEGATIVE_INFINITY, ms: Number.POSITIVE_INFINITY, msBefore: Number.POSITIVE_INFINITY };
  /** How long the latest answers took, in ms, in order of arrival; at least so long, where an attempt had none. */
  readonly #latencies: number[] = [];
  /** The same, the shortest first. */
  #sorted = new Float64Array();
  /** When the first request left that came after the last answer, on `atMost`. */
  #silentSince: number | undefined;
  #answers = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#backlog = new Backlog(clock);
  }

  /** The median time that an answer takes at present; undefined before the first answer. */
  get typicalMs(): number | undefined {
    return this.#sorted[(this.#sorted.length - 1) >>> 1];
  }

  /** The time within which all but one in twenty answers come at present; undefined before the first answer. */
  get slowMs(): number | undefined {
    return this.#sorted[Math.ceil(this.#sorted.length * SLOW_SHARE) - 1];
  }

  /** The shortest time that an answer took lately; undefined before the first answer. */
  get distanceMs(): number | undefined {
    const { ms, msBefore } = this.#nearest;
    const nearestMs = Math.min(ms, msBefore);
    return nearestMs === Number.POSITIVE_INFINITY ? undefined : nearestMs;
  }

  /** Since when requests have been sent and none was answered; now, if that is not so. On `atMost`. */
  get silentSince(): number {
    return this.#silentSince ?? this.#clock.atMost();
  }

  /** How many attempts the table has answered, whatever it was asked. It tells before from after on a clock that stands. */
  get answers(): number {
    return this.#answers;
  }

  /** How many requests may be in flight at once, not counting the slow ones. */
  get width(): number {
    const needed = Math.round(2 * this.#renewalsPerMs * (this.distanceMs ?? 0));
    return Math.min(GREATEST_WIDTH, Math.max(Math.floor(this.#base), needed));
  }

  /** Reserves slots for a lease that is renewed every so many ms, until the returned function is called. */
  expectRenewals(everyMs: number): () => void {
    let perMs = 1 / everyMs;
    this.#renewalsPerMs += perMs;
    this.#dispatch();
    return () => {
      this.#renewalsPerMs = Math.max(0, this.#renewalsPerMs - perMs);
      perMs = 0;
    };
  }

  /**
   * Calls `send` as soon as there is a slot: synchronously, if there is one now. What a request says about its time is
   * chosen inside `send`, so that it is true of the moment at which the request leaves.
   *
   * @throws the reason of `enough` if it aborts before the request has left; a {@link LockStoreError} if `until` comes
   * before that; what `send` throws.
   */
  run<T>(request: ScheduledRequest, send: () => Promise<T>): Promise<T> {
    if (request.enough?.aborted) return Promise.reject(request.enough.reason);
    const { kind } = request;
    if (this.#backlog.size === 0 && this.#hasSlotFor(kind)) return this.#send(kind, send);
    const answer = this.#backlog.add(request, () => this.#send(kind, send), this.#underWay);
    // While the backlog was empty, slow requests kept their slots.
    this.#dispatch();
    return answer;
  }

  /**
   * One copy of a request that has its slot, with a bound on its time that does not depend on the store's keeping it: a
   * client that ignores the signal is left behind, its outcome unknown.
   *
   * @param boundMs is called once the request has left, which may have decided its end.
   * @param late what is thrown then.
   */
  attempt<T>(request: Request<T>, boundMs: () => number, late: () => unknown, copies?: Copies): Promise<T> {
    const controller = new AbortController();
    const answer = this.#heard(() => request(controller.signal), copies);
    return new Promise<T>((resolve, reject) => {
      const cancel = this.#clock.alarm(boundMs(), () => {
        const error = late();
        controller.abort(error);
        reject(error);
      });
      answer.finally(cancel).then(resolve, reject);
    });
  }

  /** Counts a copy as unanswered until the table has replied to it: then it is no longer in flight. */
  #heard<T>(send: () => Promise<T>, copies: Copies = { sent: 0, unanswered: 0 }): Promise<T> {
    copies.sent += 1;
    copies.unanswered += 1;
    this.#silentSince ??= this.#clock.atMost();
    const answered = (isSettled: boolean): void => {
      this.#silentSince = undefined;
      this.#answers += 1;
      if (isSettled) copies.unanswered -= 1;
    };
    const answer = new Promise<T>((resolve) => resolve(send()));
    answer.then(
      () => answered(true),
      (error) => {
        // What the client has repeated by itself got no answer the first time.
        if (error instanceof LockStoreError && error.answered) answered(!error.retried);
      },
    );
    return answer;
  }

  #hasSlotFor(kind: RequestKind): boolean {
    const { width } = this;
    if (this.#underWay.size >= width) return false;
    if (kind === "renewal") return true;
    const reserved = Math.min(RESERVED_SHARE * width, this.#renewalsPerMs * (this.typicalMs ?? 0));
    return this.#others < width - Math.floor(reserved);
  }

  #send<T>(kind: RequestKind, send: () => Promise<T>): Promise<T> {
    const leftAt = this.#clock.atLeast();
    const request = { kind, leftAt };
    this.#underWay.add(request);
    if (kind !== "renewal") this.#others += 1;
    const answer = new Promise<T>((resolve) => resolve(send()));
    const end = (note: () => void): void => {
      note();
      this.#freeSlot(request);
      this.#slow.delete(request);
      this.#dispatch();
    };
    answer.then(
      () => end(() => this.#succeeded(leftAt)),
      (error) => end(() => this.#failed(leftAt, error)),
    );
    return answer;
  }

  #freeSlot(request: UnderWay): void {
    if (this.#underWay.delete(request) && request.kind !== "renewal") this.#others -= 1;
  }

  #succeeded(leftAt: number): void {
    const now = this.#clock.atLeast();
    const latencyMs = now - leftAt;
    this.#took(latencyMs);
    const { since, ms } = this.#nearest;
    if (now - since > DISTANCE_MS) this.#nearest = { since: now, ms: latencyMs, msBefore: ms };
    else if (latencyMs < ms) this.#nearest.ms = latencyMs;
    // One more for each round of answers, as congestion control has it.
    this.#base = Math.min(BASE_WIDTH, this.#base + 1 / this.#base);
  }

  #took(latencyMs: number): void {
    this.#latencies.push(latencyMs);
    if (this.#latencies.length > REMEMBERED) this.#latencies.shift();
    this.#sorted = Float64Array.from(this.#latencies).sort();
  }

  #failed(leftAt: number, error: unknown): void {
    // Or only the answers that are quick enough would tell how long answers take.
    if (error instanceof NoAnswer) this.#took(this.#clock.atLeast() - leftAt);
    // What left before the base was reduced says nothing about how much the reduced one is for the table.
    if (error instanceof LockStoreError && error.throttled && leftAt > this.#shrunkAt) {
      this.#base = Math.max(LEAST_WIDTH, this.#base / 2);
      this.#shrunkAt = this.#clock.atLeast();
    }
  }

  /** Fills the free slots from the backlog. Where some still wait, the request that becomes slow next is watched. */
  #dispatch(): void {
    if (this.#backlog.size === 0) return;
    const slowAfterMs = Math.max(LEAST_SLOW_MS, SLOW_TIMES * (this.typicalMs ?? 0));
    const now = this.#clock.atLeast();
    for (const request of this.#underWay) {
      if (request.leftAt > now - slowAfterMs || this.#slow.size >= this.width) break;
      this.#freeSlot(request);
      this.#slow.add(request);
    }
    const urgentMs = PATIENCE_TIMES * (this.slowMs ?? 0);
    while (this.#hasSlotFor("renewal")) {
      if (!this.#backlog.leaveNext({ urgentMs, renewalsOnly: !this.#hasSlotFor("take") })) break;
    }
    const [oldest] = this.#underWay;
    // It may ring for one that has ended: then for the next.
    if (oldest === undefined || this.#backlog.size === 0 || this.#slow.size >= this.width) return;
    this.#backlog.alarm(Math.ceil(oldest.leftAt + slowAfterMs - now), () => this.#dispatch());
  }
}
