import { LockStoreError } from "../errors.js";
import type { Clock } from "../time/clock.js";
import { Backlog, notSent, type RequestKind, type ScheduledRequest } from "./backlog.js";
import { type Copies, causeOf, LONGEST_ATTEMPT_MS, noAnswer, type Persistence, retry } from "./retry.js";

/** How many requests are in flight at once while the table does not throttle, renewals included. */
const MOST_WIDTH = 48;
const LEAST_WIDTH = 4;

/** How many renewals are under way at once at the most, and at the least. More would only wait for one another's connections. */
const MOST_RENEWALS = 512;
const LEAST_RENEWALS = 48;

/** Of the width of the other lane, the share that renewals always leave to it. */
const OTHERS_SHARE = 1 / 4;

/** How many of the latest answers count: enough for a percentile, few enough to follow a table that slows down. */
const REMEMBERED = 64;
const SLOW_SHARE = 0.95;

/** The least time that an attempt needs, while no latency is known. */
const LEAST_ATTEMPT_MS = 50;

/**
 * Each attempt may take so many times as long as the one before it. With twice as long, the exclusive side sends 28 requests,
 * where less than 20 are promised, before it says that the table is too slow (`exclusive.test.ts`).
 */
const GROWTH = 3;

/** An attempt is given at least so many times as long as slow answers take: what is sent again too soon slows them further. */
const PATIENCE_TIMES = 3;

/** A renewal is late if its answer took more than this share of what was left of its lease as it left. */
const LATE_SHARE = 1 / 4;

/** How long the first attempt at a request of such a lease may take before it counts as unanswered. */
export function attemptMs(ttlMs: number): number {
  return Math.min(LONGEST_ATTEMPT_MS, Math.max(50, ttlMs / 4));
}

/** One request, with the signal that ends it. */
export type Request<T> = (signal: AbortSignal) => Promise<T>;

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
 * @param instead is asked as a copy is about to leave: where it gives a promise, nothing is sent, and that is the outcome. The
 * request is not needed any more, or may not leave yet.
 * @throws what the last attempt threw; the reason of `enough` if that aborts before anything was sent.
 */
export function persist<T>(
  session: Requests,
  persistence: Persistence,
  request: Request<T>,
  instead: () => Promise<T> | undefined = () => undefined,
): Promise<T> {
  const { clock, scheduler } = session;
  const { kind, until, deadline = until, attemptMs: firstMs, enough, copies } = persistence;
  const tried = persistence.tried ?? { since: clock.atLeast(), sent: 0, failure: undefined };
  const attempts = { sent: 0, tried, send };
  const triedMs = (): number => clock.atLeast() - tried.since;
  const remainingMs = (): number => Math.max(0, until() - clock.atMost());
  const boundMs = (): number => {
    const grownMs = Math.min(LONGEST_ATTEMPT_MS, firstMs * GROWTH ** (attempts.sent - 1));
    const patienceMs = Math.min(LONGEST_ATTEMPT_MS, PATIENCE_TIMES * (scheduler.slowMs ?? 0));
    return Math.min(Math.max(firstMs, grownMs, patienceMs), remainingMs());
  };
  function send(): Promise<T> {
    let isAtOnce = tried.sent === 0;
    const answer = scheduler.run({ kind, deadline: deadline(), until, enough }, () => {
      // With less time, an attempt could only time out, and hide the cause of the one before it. The pauses go on until
      // `until`, so that the caller does not begin again before that.
      const leastMs = Math.min(firstMs, scheduler.quickMs ?? LEAST_ATTEMPT_MS);
      const leftMs = remainingMs();
      if (leftMs === 0 || (!isAtOnce && leftMs < leastMs))
        throw notSent(triedMs(), "too little time was left for an answer");
      attempts.sent += 1;
      tried.sent += 1;
      const lateMs = kind === "renewal" ? leftMs * LATE_SHARE : undefined;
      const copy = (signal: AbortSignal) => instead() ?? scheduler.heard(() => request(signal), { copies, lateMs });
      return bounded(clock, copy, boundMs, () => noAnswer(triedMs(), tried.sent, causeOf(tried.failure)));
    });
    isAtOnce = false; // It waits behind others, if it has not left by now.
    return answer;
  }
  return send().catch((error: unknown) => retry(session, persistence, attempts, error));
}

/** Sends a request when its turn comes, and never retries it: for requests that may fail. */
export function sendOnce<T>(
  session: Requests,
  asked: Pick<Persistence, "kind" | "attemptMs" | "enough">,
  request: Request<T>,
): Promise<T> {
  const deadline = session.clock.atMost() + asked.attemptMs;
  const once = { deadline: () => deadline, until: () => Number.POSITIVE_INFINITY, worthRetrying: () => false };
  return persist(session, { ...asked, ...once }, request);
}

/**
 * One attempt, with a bound on its time that does not depend on the store's keeping it: a client that ignores the signal is
 * left behind, its outcome unknown.
 *
 * @param boundMs is called once the request has left, which may have decided its end.
 * @param late what is thrown then.
 */
function bounded<T>(clock: Clock, request: Request<T>, boundMs: () => number, late: () => unknown): Promise<T> {
  const controller = new AbortController();
  const answer = request(controller.signal);
  return new Promise<T>((resolve, reject) => {
    const cancel = clock.alarm(boundMs(), () => {
      const error = late();
      controller.abort(error);
      reject(error);
    });
    answer.finally(cancel).then(resolve, reject);
  });
}

/** How a copy that leaves is counted. */
interface Counting {
  readonly copies?: Copies | undefined;
  /** Of a renewal: with an answer after so many ms, it is late. */
  readonly lateMs?: number | undefined;
}

/** One of the two lanes: what is under way in it, and what waits. */
class Lane {
  readonly backlog: Backlog;
  readonly #least: number;
  readonly #most: number;
  #width: number;
  /** When the width was last halved, on `atLeast`. */
  #halvedAt = Number.NEGATIVE_INFINITY;
  /** How many requests have left and have not ended. */
  underWay = 0;

  constructor(backlog: Backlog, least: number, most: number) {
    this.backlog = backlog;
    this.#least = least;
    this.#most = most;
    this.#width = most;
  }

  /** How many may be under way at once. */
  get width(): number {
    return Math.floor(this.#width);
  }

  /**
   * @param leftAt what left before it was halved says nothing about how much the half is for the table.
   * @param width of which the half is taken, if that is less than the present one.
   */
  narrow(leftAt: number, now: number, width: number = this.#width): void {
    if (leftAt <= this.#halvedAt) return;
    this.#width = Math.max(this.#least, Math.min(this.#width, width) / 2);
    this.#halvedAt = now;
  }

  /** One more for each round of answers, as congestion control has it. */
  widen(): void {
    this.#width = Math.min(this.#most, this.#width + 1 / this.#width);
  }
}

/**
 * The two lanes in which all requests of one process to one table travel.
 *
 * 1. Renewals leave at once, as long as the table answers them in time: each lease has one write under way.
 * 2. Everything else has as many slots as the width less the renewals under way, and at least a quarter of the width. It
 *    leaves at once where there is a free slot, and waits in a {@link Backlog} otherwise.
 * 3. Throttling halves the width, successes restore it step by step. Where the table is out of reach, nothing makes it
 *    smaller: fewer requests at once would only lose leases.
 * 4. A renewal that is answered late halves the width as well: a process that can hardly keep what it holds takes less.
 *    Without, 287 leases of 3 s are lost in 20 s on a table that can keep some 250 of them (`load.test.ts`).
 * 5. It also halves how many renewals are under way, down to 48: on a slow engine batches shrink, and the renewals that then go
 *    one by one would grow old in the engine's own queue. Without, 406 and 466 of 500 leases of 3 s are lost on a new engine
 *    that shares two busy cores, and otherwise 7 to 208 (`npm run load -- --only many`).
 * 6. While a renewal waits, only releases leave beside renewals. Without, 18 of these leases are lost again.
 */
export class Scheduler {
  readonly #clock: Clock;
  readonly #renewals: Lane;
  readonly #others: Lane;
  /** How long the latest answers took, in ms, in order of arrival. */
  readonly #latencies: number[] = [];
  /** The same, the shortest first. */
  #sorted = new Float64Array();
  /** When the first request left that came after the last answer, on `atMost`. */
  #silentSince: number | undefined;
  #answers = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
    const backlog = (): Backlog => new Backlog(clock, () => this.#renewals.underWay + this.#others.underWay);
    this.#renewals = new Lane(backlog(), LEAST_RENEWALS, MOST_RENEWALS);
    this.#others = new Lane(backlog(), LEAST_WIDTH, MOST_WIDTH);
  }

  /** The time within which all but one in twenty answers come at present; undefined before the first answer. */
  get slowMs(): number | undefined {
    return this.#sorted[Math.ceil(this.#sorted.length * SLOW_SHARE) - 1];
  }

  /** The shortest time that an answer took lately; undefined before the first answer. */
  get quickMs(): number | undefined {
    return this.#sorted[0];
  }

  /** Since when requests have been sent and none was answered; now, if that is not so. On `atMost`. */
  get silentSince(): number {
    return this.#silentSince ?? this.#clock.atMost();
  }

  /** How many attempts the table has answered, whatever it was asked. It tells before from after on a clock that stands. */
  get answers(): number {
    return this.#answers;
  }

  /** How many requests may be in flight at once, as far as they are no renewals. */
  get width(): number {
    return this.#others.width;
  }

  /** How many renewals may be in flight at once. */
  get renewalWidth(): number {
    return this.#renewals.width;
  }

  /**
   * Calls `send` as soon as the request may leave: synchronously, if that is now. What a request says about its time is
   * chosen inside `send`, so that it is true of the moment at which the request leaves.
   *
   * @throws the reason of `enough` if it aborts before the request has left; a {@link LockStoreError} if `until` comes
   * before that; what `send` throws.
   */
  run<T>(request: ScheduledRequest, send: () => Promise<T>): Promise<T> {
    if (request.enough?.aborted) return Promise.reject(request.enough.reason);
    const lane = request.kind === "renewal" ? this.#renewals : this.#others;
    // A release goes before those that wait.
    const [first] = lane.backlog.waiting;
    const isFirst = first === undefined || (request.kind === "release" && first.kind !== "release");
    if (isFirst && this.#hasSlot(request.kind)) return this.#send(lane, send);
    return lane.backlog.add(request, () => this.#send(lane, send));
  }

  /** Sends a copy, and hears its answer, however late: until then it counts as unanswered, and may still be applied. */
  heard<T>(send: () => Promise<T>, { copies, lateMs }: Counting = {}): Promise<T> {
    const leftAt = this.#clock.atLeast();
    if (copies !== undefined) {
      copies.sent += 1;
      copies.unanswered += 1;
    }
    this.#silentSince ??= this.#clock.atMost();
    const answered = (isSettled: boolean): void => {
      this.#silentSince = undefined;
      this.#answers += 1;
      if (isSettled && copies !== undefined) copies.unanswered -= 1;
    };
    const answer = new Promise<T>((resolve) => resolve(send()));
    answer.then(
      () => {
        answered(true);
        const now = this.#clock.atLeast();
        this.#took(now - leftAt);
        const isLate = lateMs !== undefined && now - leftAt > lateMs;
        if (isLate) this.#others.narrow(leftAt, now);
        else this.#others.widen();
        if (isLate) this.#renewals.narrow(leftAt, now, this.#renewals.underWay);
        else if (lateMs !== undefined) this.#renewals.widen();
      },
      (error) => {
        if (!(error instanceof LockStoreError)) return;
        // What the client has repeated by itself got no answer the first time.
        if (error.answered) answered(!error.retried);
        if (error.throttled) this.#others.narrow(leftAt, this.#clock.atLeast());
      },
    );
    return answer;
  }

  #hasSlot(kind: RequestKind): boolean {
    const [renewals, others] = [this.#renewals, this.#others];
    if (kind === "renewal") return renewals.underWay < this.renewalWidth;
    if (kind !== "release" && renewals.backlog.waiting.length > 0) return false;
    return others.underWay < Math.max(this.width * OTHERS_SHARE, this.width - renewals.underWay);
  }

  #send<T>(lane: Lane, send: () => Promise<T>): Promise<T> {
    lane.underWay += 1;
    const answer = new Promise<T>((resolve) => resolve(send()));
    const end = (): void => {
      lane.underWay -= 1;
      for (const { backlog } of [this.#renewals, this.#others]) {
        while (backlog.waiting[0] !== undefined && this.#hasSlot(backlog.waiting[0].kind)) backlog.leaveNext();
      }
    };
    answer.then(end, end);
    return answer;
  }

  #took(latencyMs: number): void {
    this.#latencies.push(latencyMs);
    if (this.#latencies.length > REMEMBERED) this.#latencies.shift();
    this.#sorted = Float64Array.from(this.#latencies).sort();
  }
}
