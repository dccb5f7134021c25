import type { Clock } from "../time/clock.js";
import { notSent } from "./backlog.js";
import { causeOf, LONGEST_ATTEMPT_MS, noAnswer, type Persistence, retry } from "./retry.js";
import type { Scheduler } from "./scheduler.js";

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
