import pRetry from "p-retry";
import { LockStoreError } from "../errors.js";
import type { Clock } from "../time/clock.js";

const FIRST_PAUSE_MS = 25;
const LONGEST_PAUSE_MS = 1_000;

/** The longest that a request of a lock is waited for: an answer that has not come by then does not come. */
export const LONGEST_ATTEMPT_MS = 3_000;

/** How soon a renewal that was not answered is tried anew. */
export const RENEW_AGAIN_MS = 50;

/** One request, with the signal that ends it. */
export type Request<T> = (signal: AbortSignal) => Promise<T>;

/** How long a request may go on being tried. Moments are on the `atMost` stopwatch. */
export interface Persistence {
  /** No attempt starts after this, and none outlasts it. */
  readonly until: () => number;
  /**
   * The longest that the first attempt may take. Each further one may take twice as long as the one before it, up to
   * {@link LONGEST_ATTEMPT_MS}: where the table is far away and leases are short, an answer comes late and not never.
   */
  readonly attemptMs: number;
  /** Ends the trying: an attempt under way is still awaited, no other follows. */
  readonly enough?: AbortSignal | undefined;
  /** Whether a failure is worth another attempt. Default: transient store errors only. */
  readonly worthRetrying?: (error: unknown) => boolean;
  readonly onFailure?: (error: unknown) => void;
  readonly random: () => number;
}

/**
 * The end, as {@link Persistence} has it, of work that goes on for so many ms from now. They are counted on the stopwatch
 * that never runs ahead: a wall clock that is set forward makes them no fewer.
 */
export function endAfter(clock: Clock, ms: number): () => number {
  const end = clock.atLeast() + ms;
  return () => clock.atMost() + end - clock.atLeast();
}

/**
 * A request with a bound on its time that does not depend on the store's keeping it: a client that ignores the signal
 * is left behind, its outcome unknown.
 */
export function bounded<T>(clock: Clock, ms: number, request: Request<T>): Promise<T> {
  const controller = new AbortController();
  return new Promise<T>((resolve, reject) => {
    const cancel = clock.alarm(ms, () => {
      const late = new LockStoreError(
        `No answer from the table within ${Math.round(ms)} ms: check its region, its endpoint and the network to it`,
        { transient: true, answered: false },
      );
      controller.abort(late);
      reject(late);
    });
    request(controller.signal).then(
      (result) => {
        cancel();
        resolve(result);
      },
      (error) => {
        cancel();
        reject(error);
      },
    );
  });
}

/**
 * Sends a request again after transient failures, with growing, jittered pauses on the clock, until `until`.
 *
 * @throws what the last attempt threw.
 */
export function persist<T>(
  clock: Clock,
  persistence: Persistence,
  request: (signal: AbortSignal, attempt: number) => Promise<T>,
): Promise<T> {
  const { until, attemptMs } = persistence;
  const send = (attempt: number): Promise<T> =>
    bounded(clock, Math.min(patience(attemptMs, attempt), remaining(clock, until)), (signal) =>
      request(signal, attempt),
    );
  // What follows is rare, and costs more than the request's own share of the time: so it is set up only then.
  return send(1).catch((error: unknown) => retry(clock, persistence, error, send));
}

/** The further attempts. The pause is slept on our clock in onFailedAttempt, so that they run on virtual time as well. */
async function retry<T>(
  clock: Clock,
  persistence: Persistence,
  firstError: unknown,
  send: (attempt: number) => Promise<T>,
): Promise<T> {
  const { until, enough, onFailure, random } = persistence;
  const worthRetrying = persistence.worthRetrying ?? isTransient;
  return await pRetry((attempt) => (attempt === 1 ? Promise.reject(firstError) : send(attempt)), {
    retries: Number.POSITIVE_INFINITY,
    minTimeout: 0,
    onFailedAttempt: async ({ error, attemptNumber }) => {
      onFailure?.(error);
      if (!worthRetrying(error) || enough?.aborted) return;
      const pause = (0.5 + random()) * Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** Math.min(attemptNumber, 16));
      await clock.sleep(Math.min(pause, remaining(clock, until)), enough).catch(() => undefined);
    },
    shouldRetry: ({ error }) => worthRetrying(error) && !enough?.aborted && remaining(clock, until) > 0,
  });
}

/** How long an attempt may take. */
function patience(attemptMs: number, attempt: number): number {
  return Math.max(attemptMs, Math.min(LONGEST_ATTEMPT_MS, attemptMs * 2 ** (attempt - 1)));
}

/** Whether a failure may pass by itself. */
export function isTransient(error: unknown): boolean {
  return error instanceof LockStoreError && error.transient;
}

function remaining(clock: Clock, until: () => number): number {
  return Math.max(0, until() - clock.atMost());
}
