import { LockStoreError } from "../errors.js";
import type { Clock } from "../time/clock.js";
import { Backlog, notSent, type RequestKind, type ScheduledRequest } from "./backlog.js";
import { type Copies, causeOf, LONGEST_ATTEMPT_MS, noAnswer, type Persistence, retry, type Tried } from "./retry.js";

/** How many requests are in flight at once while the table does not throttle, renewals included. */
const MOST_WIDTH = 48;
const LEAST_WIDTH = 4;

/** How many renewals are under way at once, for the same: more would only wait for one another's connections. */
const MOST_RENEWALS = 512;
const LEAST_RENEWALS = 48;

/** Of that width, the share that renewals always leave to others. */
const OTHERS_SHARE = 1 / 4;

/** How many of the latest answers count: enough for a percentile, few enough to follow a table that slows down. */
const REMEMBERED = 64;
const SLOW_SHARE = 0.95;

/** The least time that an attempt needs, while no latency is known. */
const LEAST_ATTEMPT_MS = 50;

/** An attempt is given at least so many times as long as slow answers take: what is sent again too soon slows them further. */
const PATIENCE_TIMES = 3;

/** Of what is left of its lease, the share that the first attempt at a renewal may take: there is time for another. */
const RENEWAL_SHARE = 1 / 2;

/** A renewal is late if its answer took more than this share of what was left of its lease as it left. */
const LATE_SHARE = 1 / 4;

/** A renewal that waits is urgent with less time than so many times what slow answers take. */
const URGENT_TIMES = 1.5;

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
  const tried: Tried = persistence.tried ?? { since: clock.atLeast(), sent: 0, failure: undefined };
  const attempts = { sent: 0, tried, send };
  const triedMs = (): number => clock.atLeast() - tried.since;
  const remainingMs = (): number => Math.max(0, until() - clock.atMost());
  const boundMs = (): number => {
    const leftMs = remainingMs();
    // Where no answer has come yet, nothing but its absence tells that answers are slow. Without, the exclusive side sends
    // 28 requests, where less than 20 are promised, before it says that the table is too slow (`exclusive.test.ts`).
    const growth = scheduler.slowMs === undefined ? PATIENCE_TIMES : 2;
    const grownMs = Math.max(firstMs, Math.min(LONGEST_ATTEMPT_MS, firstMs * growth ** (attempts.sent - 1)));
    // The second has the rest. Halved again, 2 of 200 leases of 10 s are lost where the table hangs for 3.5 s (`load.test.ts`).
    const mostMs = kind === "renewal" && attempts.sent === 1 ? leftMs * RENEWAL_SHARE : leftMs;
    const patienceMs = Math.min(LONGEST_ATTEMPT_MS, PATIENCE_TIMES * (scheduler.slowMs ?? 0));
    return Math.min(Math.max(Math.min(grownMs, mostMs), patienceMs), leftMs);
  };
  const late = (): LockStoreError => noAnswer(triedMs(), tried.sent, causeOf(tried.failure));
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
      return bounded(clock, copy, boundMs, late);
    });
    isAtOnce = false; // It waits behind others, if it has not left by now.
    return answer;
  }
  return send().catch((error: unknown) => retry(session, persistence, attempts, error));
}

/** Sends a request when its turn comes, and never retries it: for requests that may fail. */
export function sendOnce<T>(
  { clock, scheduler }: Requests,
  { kind, attemptMs, enough }: Pick<Persistence, "kind" | "attemptMs" | "enough">,
  request: Request<T>,
): Promise<T> {
  const deadline = clock.atMost() + attemptMs;
  const late = (): LockStoreError => noAnswer(attemptMs);
  const send = (signal: AbortSignal): Promise<T> => scheduler.heard(() => request(signal));
  return scheduler.run({ kind, deadline, enough }, () => bounded(clock, send, () => attemptMs, late));
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

/** How many requests may be under way at once: halved by what is too much for the table, and restored step by step. */
class Window {
  readonly #least: number;
  readonly #most: number;
  #size: number;
  /** When it was last halved, on `atLeast`. */
  #halvedAt = Number.NEGATIVE_INFINITY;

  constructor(least: number, most: number) {
    this.#least = least;
    this.#most = most;
    this.#size = most;
  }

  get size(): number {
    return Math.floor(this.#size);
  }

  /**
   * @param leftAt what left before it was halved says nothing about how much the half is for the table.
   * @param underWay how many of those that may be under way are.
   */
  halve(leftAt: number, now: number, underWay: number = this.#size): void {
    if (leftAt <= this.#halvedAt) return;
    this.#size = Math.max(this.#least, Math.min(this.#size, underWay) / 2);
    this.#halvedAt = now;
  }

  /** One more for each round of answers, as congestion control has it. */
  grow(): void {
    this.#size = Math.min(this.#most, this.#size + 1 / this.#size);
  }
}

/**
 * The two lanes in which all requests of one process to one table travel.
 *
 * 1. Renewals leave at once: each lease has one write under way, which bounds them.
 * 2. Everything else has as many slots as the width less the renewals under way, and at least a quarter of the width. It
 *    leaves at once where there is a free slot, and waits in a {@link Backlog} otherwise.
 * 3. Throttling halves the width, successes restore it step by step. Where the table is out of reach, nothing makes it
 *    smaller: fewer requests at once would only lose leases.
 * 4. A table that answers renewals late has a queue of its own, where their stamps grow old. Each round of such answers
 *    halves the width, and how many renewals are under way, down to 48: the others wait here, the lease that ends first
 *    before the others. Without, 408 of 500 leases of 3 s are lost on a table that serves 220 requests a second, and as
 *    many on a new engine (`load.test.ts`, `npm run load -- --only many`).
 * 5. While a renewal that waits is urgent, only releases leave beside it: a process that cannot keep what it holds takes no
 *    more. Without, 65 of 168 leases are lost on a table that serves 80 requests a second (`load.test.ts`).
 */
export class Scheduler {
  readonly #clock: Clock;
  readonly #backlogs: { readonly renewals: Backlog; readonly others: Backlog };
  /** How many requests have left and have not ended. */
  readonly #underWay = { renewals: 0, others: 0 };
  readonly #windows = {
    renewals: new Window(LEAST_RENEWALS, MOST_RENEWALS),
    others: new Window(LEAST_WIDTH, MOST_WIDTH),
  };
  /** How long the latest answers took, in ms, in order of arrival. */
  readonly #latencies: number[] = [];
  /** The same, the shortest first. */
  #sorted = new Float64Array();
  /** When the first request left that came after the last answer, on `atMost`. */
  #silentSince: number | undefined;
  #answers = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#backlogs = { renewals: new Backlog(clock), others: new Backlog(clock) };
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
    return this.#windows.others.size;
  }

  /** How many renewals may be in flight at once. */
  get renewalWidth(): number {
    return this.#windows.renewals.size;
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
    const { kind } = request;
    const lane = kind === "renewal" ? "renewals" : "others";
    if (this.#backlogs[lane].waiting.length === 0 && this.#hasSlot(kind)) return this.#send(lane, send);
    const { renewals, others } = this.#underWay;
    const answer = this.#backlogs[lane].add(
      request,
      () => this.#send(lane, send),
      () => renewals + others,
    );
    // A release goes before those that wait.
    this.#dispatch();
    return answer;
  }

  /** Sends a copy, and hears its answer, however late: until then it counts as unanswered, and may still be applied. */
  heard<T>(send: () => Promise<T>, { copies = { sent: 0, unanswered: 0 }, lateMs }: Counting = {}): Promise<T> {
    const { renewals, others } = this.#windows;
    const leftAt = this.#clock.atLeast();
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
      () => {
        answered(true);
        const now = this.#clock.atLeast();
        this.#took(now - leftAt);
        const isLate = now - leftAt > (lateMs ?? Number.POSITIVE_INFINITY);
        if (isLate) others.halve(leftAt, now);
        else others.grow();
        if (isLate) renewals.halve(leftAt, now, this.#underWay.renewals);
        else if (lateMs !== undefined) renewals.grow();
      },
      (error) => {
        if (!(error instanceof LockStoreError)) return;
        // What the client has repeated by itself got no answer the first time.
        if (error.answered) answered(!error.retried);
        if (error.throttled) others.halve(leftAt, this.#clock.atLeast());
      },
    );
    return answer;
  }

  /** Whether a renewal waits that has only just time enough for a slow answer. */
  get #isUrgent(): boolean {
    const [first] = this.#backlogs.renewals.waiting;
    const urgentMs = URGENT_TIMES * (this.slowMs ?? 0);
    return first !== undefined && first.deadline - this.#clock.atMost() < urgentMs;
  }

  #hasSlot(kind: RequestKind): boolean {
    const { renewals, others } = this.#underWay;
    if (kind === "renewal") return renewals < this.renewalWidth;
    if (kind !== "release" && this.#isUrgent) return false;
    return others < Math.max(this.width * OTHERS_SHARE, this.width - renewals);
  }

  #send<T>(lane: "renewals" | "others", send: () => Promise<T>): Promise<T> {
    this.#underWay[lane] += 1;
    const answer = new Promise<T>((resolve) => resolve(send()));
    const end = (): void => {
      this.#underWay[lane] -= 1;
      this.#dispatch();
    };
    answer.then(end, end);
    return answer;
  }

  #dispatch(): void {
    for (const backlog of [this.#backlogs.renewals, this.#backlogs.others]) {
      while (backlog.waiting[0] !== undefined && this.#hasSlot(backlog.waiting[0].kind)) backlog.leaveNext();
    }
  }

  #took(latencyMs: number): void {
    this.#latencies.push(latencyMs);
    if (this.#latencies.length > REMEMBERED) this.#latencies.shift();
    this.#sorted = Float64Array.from(this.#latencies).sort();
  }
}
