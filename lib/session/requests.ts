import { AsyncResource } from "node:async_hooks";
import { LockStoreError } from "../errors.js";
import type { Store } from "../store.js";
import { type Clock, replyAlarm } from "../time/clock.js";
import { Backlog, type NotSent, notSent, RANKS, type RequestKind, type ScheduledRequest } from "./backlog.js";
import { endAfter, LONGEST_ATTEMPT_MS, noAnswer, type Persistence, retry } from "./retry.js";

/** How many requests are in flight at once while the table does not throttle, renewals included. */
const MOST_WIDTH = 48;
const LEAST_WIDTH = 4;

/**
 * A request leaves while fewer than this many times the width are in flight: of renewals for a renewal, which nothing else holds up, and
 * of all requests for any other. Even of renewals, more would only wait in the queue of a slow engine.
 */
const WIDTHS: Readonly<Record<RequestKind, number>> = { renewal: 10, release: 2, take: 1, read: 1 };

/** How many of the latest answers count: enough for a percentile, few enough to follow a table that slows down. */
const REMEMBERED = 64;
const SLOW_SHARE = 0.95;

/** The least time that an attempt needs, while no latency is known. */
const LEAST_ATTEMPT_MS = 50;

/**
 * The timeout of each attempt is this many times that of the attempt before it. With a factor of 2, the exclusive side sends 28
 * requests, where less than 20 are promised, before it reports that the table is too slow (`behaviour/shared-mutexes/exclusive.test.ts`).
 */
const GROWTH = 3;

/**
 * The timeout of an attempt is at least this many times as long as slow answers take: a retry that is sent too soon slows them
 * further.
 */
const PATIENCE_TIMES = 3;

/** When the first answer of all is overdue: names have to be resolved, connections made, credentials fetched. */
const FIRST_OVERDUE_MS = 250;

/**
 * An attempt of a holder waits for no more than this share of the time that is left, unless answers are that slow: a table that
 * was silent and is well again just before a lease ends is asked once more. The first attempt of a renewal is not cut by that: its
 * timeout is a quarter of the lease, of which four tenths are left as it is due.
 */
const ATTEMPT_SHARE_OF_REST = 2 / 3;

/** Whether it matters to a lease when a request ends. All others begin again with the next claim or the next look. */
function hasLeaseToLose(kind: RequestKind): boolean {
  return kind === "renewal" || kind === "release";
}

/** The timeout of the first attempt at a request for a lease of this length. */
export function firstTimeoutMs(ttlMs: number): number {
  return Math.min(LONGEST_ATTEMPT_MS, Math.max(50, ttlMs / 4));
}

/** The copies of one write. */
export class Copies {
  sent = 0;
  /** How many of them got no answer: they may still be applied. */
  unanswered = 0;

  /** Counts a copy as it leaves. Its answer counts, however late it comes. */
  count<Outcome>(answer: Promise<Outcome>): Promise<Outcome> {
    this.sent += 1;
    this.unanswered += 1;
    const answered = (): void => {
      this.unanswered -= 1;
    };
    answer.then(answered, (error) => {
      // If the SDK has retried the copy by itself, the first try got no answer.
      if (error instanceof LockStoreError && error.answered && !error.retried) answered();
    });
    return answer;
  }
}

/** One request, with the signal that ends it. */
export type Request<T> = (signal: AbortSignal) => Promise<T>;

/** What the requests of one process share. */
export interface Requests {
  readonly clock: Clock;
  readonly scheduler: Scheduler;
  readonly random: () => number;
  /** Asked why an attempt got no answer, for the message. */
  readonly store?: Pick<Store, "whySilent">;
}

/**
 * Sends a request when its turn comes among those of this process, and again after transient failures, with growing, jittered
 * pauses on the clock, until `until`.
 *
 * @param request is called as a copy leaves: what it says about the time is chosen inside.
 * @param skipWith is called as a copy is about to leave. If it returns a promise, nothing is sent, and that promise is the
 * outcome: the request is not needed any more, or may not leave yet.
 * @throws what the last attempt threw; the reason of `endSignal` if that aborts before anything was sent.
 */
export function persist<T>(
  session: Requests,
  persistence: Persistence,
  request: Request<T>,
  skipWith: () => Promise<T> | undefined = () => undefined,
): Promise<T> {
  const { clock, scheduler } = session;
  const { kind, until, firstTimeoutMs: firstMs, tried = { since: clock.atLeast(), sent: 0 } } = persistence;
  const isOfLease = hasLeaseToLose(kind);
  let sent = 0;
  const triedMs = (): number => clock.atLeast() - tried.since;
  const remainingMs = (): number => Math.max(0, until() - clock.atMost());
  const send = (): Promise<T> => {
    let isAtOnce = tried.sent === 0;
    const answer = scheduler.run(persistence, () => {
      // With less time, an attempt could only time out, and hide why the one before it failed. The pauses go on until `until`, so
      // that the caller does not begin again before that.
      const leastMs = isAtOnce ? 0 : Math.min(firstMs, scheduler.quickMs ?? LEAST_ATTEMPT_MS);
      const leftMs = remainingMs();
      if (leftMs === 0 || leftMs < leastMs) return Promise.reject(notSent(triedMs()));
      sent += 1;
      tried.sent += 1;
      const controller = new AbortController();
      const copy = skipWith() ?? scheduler.heard(() => request(controller.signal));
      const neededMs = Math.max(firstMs * GROWTH ** (sent - 1), PATIENCE_TIMES * (scheduler.slowMs ?? 0));
      const usualMs = Math.max(firstMs, Math.min(LONGEST_ATTEMPT_MS, neededMs));
      const mayBeLast = clock.atMost() + usualMs > (persistence.unrepeatedFrom?.() ?? Number.POSITIVE_INFINITY);
      const longestMs = mayBeLast ? Math.max(usualMs, LONGEST_ATTEMPT_MS) : usualMs;
      // Read the remaining time after the request has left: the request itself may decide when it ends.
      const restMs = remainingMs();
      const mostMs = isOfLease ? Math.max(restMs * ATTEMPT_SHARE_OF_REST, scheduler.overdueMs) : longestMs;
      return bounded(clock, copy, Math.min(longestMs, mostMs, restMs), () => {
        const error = noAnswer(triedMs(), tried, session.store?.whySilent?.());
        controller.abort(error);
        return error;
      });
    });
    isAtOnce = false; // If it has not left by now, it waits behind others.
    return answer;
  };
  const first = send();
  // Only a request that fails pays for the loop of retries: within it, a lock in memory takes a fifth more CPU time.
  return first.catch(() =>
    retry(session, { ...persistence, tried, hasLeaseToLose: isOfLease }, (number) => (number === 1 ? first : send())),
  );
}

/** A request that is never retried. It waits for a slot for its timeout, and no longer than its `until`, if it has one. */
export type SentOnce = Pick<Persistence, "kind" | "firstTimeoutMs" | "endSignal"> & Partial<Pick<Persistence, "until">>;

/** Sends a request when its turn comes, and never retries it: for requests that may fail. */
export function sendOnce<T>(session: Requests, asked: SentOnce, request: Request<T>): Promise<T> {
  const deadline = session.clock.atMost() + asked.firstTimeoutMs;
  const slotUntil = endAfter(session.clock, asked.firstTimeoutMs);
  const until = asked.until ?? (() => Number.POSITIVE_INFINITY);
  return persist(session, { ...asked, deadline, slotUntil, until, worthRetrying: () => false }, request);
}

/** Waits for an answer, with a timeout of our own: if a client ignores the signal, its request runs on, and its outcome is unknown. */
function bounded<T>(clock: Clock, answer: Promise<T>, boundMs: number, end: () => unknown): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    const cancel = replyAlarm(clock, boundMs, () => reject(end()));
    answer.finally(cancel).then(resolve, reject);
  });
}

/**
 * How all requests of one process to one table share it.
 *
 * 1. A request leaves at once while fewer are in flight than its kind may see ({@link WIDTHS}), and waits in a {@link Backlog}
 *    otherwise. Nothing else holds up renewals. Where they are slow, they fill the width, and a process that can hardly keep what it
 *    holds takes no more.
 * 2. Throttling halves the width, and successes restore it step by step. If the table is out of reach, nothing narrows it:
 *    fewer requests at once would only lose leases.
 */
export class Scheduler {
  readonly #clock: Clock;
  readonly #backlog: Backlog;
  /** How many requests have left and have not ended, and how many renewals of them. */
  readonly #underWay = { all: 0, renewals: 0 };
  #width = MOST_WIDTH;
  /** When the width was last halved, on `atLeast`. */
  #halvedAt = Number.NEGATIVE_INFINITY;
  /** How long the latest answers took, in ms, in order of arrival. */
  readonly #latest: number[] = [];
  /** The same times, the shortest first. */
  readonly #sorted: number[] = [];
  /** The time within which all but one in twenty answers come at present; undefined before the first answer. */
  slowMs: number | undefined;
  /** The shortest time that an answer took lately, also one that turned a request down; undefined before the first answer. */
  quickMs: number | undefined;
  /** When the first request after the last answer left, on `atMost`. */
  #silentSince: number | undefined;
  /** How many attempts the table has answered, of any request. It tells before from after even on a clock that stands still. */
  answers = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
    // Each slot serves no more than one request in the shortest time that an answer takes. Nothing behind the first has more slots.
    const soonestMs = (ahead: number): number => {
      const width = MOST_WIDTH * WIDTHS[this.#backlog.waiting[0]?.kind ?? "take"];
      return Math.floor(ahead / width) * (this.quickMs ?? 0);
    };
    this.#backlog = new Backlog(clock, () => this.#underWay.all, soonestMs);
  }

  /** After how many ms an answer is overdue: nothing should wait for it any longer, although it may still come. */
  get overdueMs(): number {
    return this.slowMs === undefined ? FIRST_OVERDUE_MS : Math.max(LEAST_ATTEMPT_MS, PATIENCE_TIMES * this.slowMs);
  }

  /** Since when requests have been sent without any answer; now, if none was sent since the last answer. On `atMost`. */
  get silentSince(): number {
    return this.#silentSince ?? this.#clock.atMost();
  }

  /** How many requests may be in flight at once, before only those of leases leave. */
  get width(): number {
    return Math.floor(this.#width);
  }

  /**
   * Calls `send` as soon as the request may leave: synchronously, if that is now. What a request says about its time is chosen
   * inside `send`, so that it is true of the moment at which the request leaves. `send` must reject and never throw: a throw
   * frees its slot at once, so the next request would leave within the throwing one, and thousands overflow the stack.
   *
   * @throws the reason of `endSignal` if it aborts before the request has left; a {@link LockStoreError} if `until` comes before
   * that; what `send` rejects with.
   */
  run<T>(request: ScheduledRequest, send: () => Promise<T>): Promise<T> {
    const { kind, endSignal } = request;
    if (endSignal?.aborted) return Promise.reject(endSignal.reason);
    const [first] = this.#backlog.waiting;
    if ((first === undefined || RANKS[kind] < RANKS[first.kind]) && this.#hasSlot(kind)) return this.#send(kind, send);
    // The slot becomes free in the asynchronous context of another request. On Node 20, AsyncResource.bind() takes 80 times as long.
    const context = new AsyncResource("DynamutexRequest");
    return this.#backlog.add(request, () => context.runInAsyncScope(() => this.#send(kind, send)));
  }

  /** The error of a request that got no slot within so long. */
  unsent(waitedMs: number): NotSent {
    return this.#backlog.unsent(waitedMs);
  }

  /** Sends a copy, and counts its answer, however late it comes. */
  async heard<T>(send: () => Promise<T>): Promise<T> {
    const leftAt = this.#clock.atLeast();
    this.#silentSince ??= this.#clock.atMost();
    try {
      const answer = await send();
      this.#answered();
      this.#remember(this.#clock.atLeast() - leftAt);
      // One more for each round of answers, as in congestion control.
      this.#width = Math.min(MOST_WIDTH, this.#width + 1 / this.#width);
      return answer;
    } catch (error) {
      if (error instanceof LockStoreError && error.answered) this.#turnedDown(this.#clock.atLeast() - leftAt);
      if (error instanceof LockStoreError && error.throttled) this.#narrow(leftAt);
      throw error;
    }
  }

  /**
   * The table has answered with an error. Until the next success, another answer may come as soon: a holder whose last successes were
   * slow would otherwise not ask again in the last of its lease, although each attempt is answered at once.
   */
  #turnedDown(tookMs: number): void {
    this.#answered();
    this.quickMs = Math.min(tookMs, this.quickMs ?? tookMs);
  }

  #remember(tookMs: number): void {
    this.#latest.push(tookMs);
    this.#sorted.splice(this.#sorted.findLastIndex((other) => other <= tookMs) + 1, 0, tookMs);
    if (this.#latest.length > REMEMBERED) this.#sorted.splice(this.#sorted.indexOf(this.#latest.shift() as number), 1);
    this.slowMs = this.#sorted[Math.ceil(this.#sorted.length * SLOW_SHARE) - 1];
    this.quickMs = this.#sorted[0];
  }

  #answered(): void {
    this.#silentSince = undefined;
    this.answers += 1;
  }

  /** @param leftAt when the request left: one that left before the last halving says nothing about the halved width. */
  #narrow(leftAt: number): void {
    if (leftAt <= this.#halvedAt) return;
    this.#width = Math.max(LEAST_WIDTH, this.#width / 2);
    this.#halvedAt = this.#clock.atLeast();
  }

  #hasSlot(kind: RequestKind): boolean {
    const { all, renewals } = this.#underWay;
    return (kind === "renewal" ? renewals : all) < this.width * WIDTHS[kind];
  }

  async #send<T>(kind: RequestKind, send: () => Promise<T>): Promise<T> {
    const renewals = kind === "renewal" ? 1 : 0;
    this.#underWay.all += 1;
    this.#underWay.renewals += renewals;
    try {
      return await send();
    } finally {
      this.#underWay.all -= 1;
      this.#underWay.renewals -= renewals;
      const { waiting } = this.#backlog;
      while (waiting[0] !== undefined && this.#hasSlot(waiting[0].kind)) waiting[0].send();
    }
  }
}
