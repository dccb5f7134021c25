import pRetry from "p-retry";
import { LockStoreError } from "../errors.js";
import type { Clock } from "../time/clock.js";
import { NotSent, type ScheduledRequest, TooLate } from "./backlog.js";

/** The pauses between requests of one call double from the first to the longest. */
const FIRST_PAUSE_MS = 25;
export const LONGEST_PAUSE_MS = 1_000;

/**
 * A pause of a holder's request is about this share of the time that is left, if that is shorter: a table that is well again a
 * second before a lease ends still keeps the lock. With its jitter it is at most half of that time.
 */
const SHARE_OF_REST = 1 / 3;

/**
 * How long the pause of this number is, up to half as long more or less. The first pause has the number 1.
 * @param longestMs for a pause that has to be shorter; never less than the shortest.
 */
export function pauseMs(
  { random }: { readonly random: () => number },
  number: number,
  longestMs: number = LONGEST_PAUSE_MS,
): number {
  return (
    (0.5 + random()) * Math.min(Math.max(longestMs, FIRST_PAUSE_MS), LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** number)
  );
}

/** The longest timeout of an attempt at a lock's request: a later answer is not expected. */
export const LONGEST_ATTEMPT_MS = 3_000;

/**
 * What was tried since the table last answered, so that an error can report all of it. Requests that follow one another for one
 * purpose share it.
 */
export interface AttemptLog {
  /** When the first attempt was to leave, on `atLeast`. */
  readonly since: number;
  /** How many attempts have left. */
  sent: number;
  /** Why the last attempt failed, or that none has left. */
  failure?: unknown;
}

/**
 * How long a request is retried. No attempt starts after `until`, and none outlasts it; transient failures are thrown only
 * then. `endSignal` ends the retries: an attempt in flight is still awaited, no other is sent, not even a first one.
 */
export interface Persistence extends ScheduledRequest {
  /**
   * The timeout of the first attempt, unless answers are slow at present. Each further attempt may take three times as long as
   * the one before it, up to {@link LONGEST_ATTEMPT_MS}: with a distant table and short leases, an answer then comes late
   * instead of never.
   */
  readonly firstTimeoutMs: number;
  /**
   * From when on, on `atMost`, the caller ends it at the next failure. The attempt that may be the last has the longest timeout,
   * so that a distant table can still answer it. Default: never.
   */
  readonly unrepeatedFrom?: (() => number) | undefined;
  /** Whether a failure is worth another attempt. Default: transient store errors only. */
  readonly worthRetrying?: ((error: unknown) => boolean) | undefined;
  readonly onFailure?: ((error: unknown) => void) | undefined;
  /** The pause before another attempt. It may end early, so that several requests leave together. Default: the clock's. */
  readonly sleep?: Clock["sleep"] | undefined;
  /** What earlier requests have tried for the same purpose. Default: nothing. */
  readonly tried?: AttemptLog | undefined;
}

/**
 * An `until` for {@link Persistence}, `ms` from now. The time is counted on the stopwatch that never runs ahead: a wall clock
 * that is set forward does not shorten it.
 */
export function endAfter(clock: Clock, ms: number): () => number {
  const end = clock.atLeast() + ms;
  return () => clock.atMost() + end - clock.atLeast();
}

/** Whether a failure may pass by itself. */
export function isTransient(error: unknown): boolean {
  return error instanceof LockStoreError && error.transient;
}

/**
 * Makes one attempt after the other, with growing, jittered pauses, until one is answered, or fails for good, or its time is
 * over. The pauses are on our clock and not on p-retry's, so that they pass on virtual time as well.
 *
 * @throws what the last attempt that left threw, of this request or of one before it; the reason of `endSignal`, if there is none.
 */
export function retry<T>(
  session: { readonly clock: Clock; readonly random: () => number },
  persistence: Persistence & { readonly tried: AttemptLog; readonly hasLeaseToLose: boolean },
  attemptOf: (number: number) => Promise<T>,
): Promise<T> {
  const { clock } = session;
  const {
    hasLeaseToLose,
    until,
    endSignal,
    worthRetrying = isTransient,
    onFailure,
    tried,
    sleep = clock.sleep.bind(clock),
  } = persistence;
  const restShare = hasLeaseToLose ? SHARE_OF_REST : Number.POSITIVE_INFINITY;
  const attempt = (number: number): Promise<T> =>
    attemptOf(number).catch((cause: unknown) => {
      throw new FailedAttempt("An attempt failed", { cause });
    });
  return pRetry(attempt, {
    retries: Number.POSITIVE_INFINITY,
    minTimeout: 0,
    // An error that this throws ends the retries.
    onFailedAttempt: async ({ error: { cause: error }, attemptNumber }) => {
      if (endSignal?.aborted && error === endSignal.reason) throw tried.failure ?? error;
      // An attempt that did not leave must not hide the failure of one that did.
      if (tried.failure === undefined || !(error instanceof NotSent)) {
        tried.failure = error;
        onFailure?.(error);
      }
      if (error instanceof TooLate || !worthRetrying(tried.failure)) throw tried.failure;
      const leftMs = until() - clock.atMost();
      if (leftMs > 0) {
        const ms = pauseMs(session, attemptNumber, leftMs * restShare);
        await sleep(Math.min(ms, leftMs), endSignal).catch(() => undefined);
      }
      if (!(until() > clock.atMost()) || endSignal?.aborted) throw tried.failure;
    },
  });
}

/**
 * The error for p-retry, which accepts errors of its own realm only: where Jest runs the code, Node's errors are of another realm.
 */
class FailedAttempt extends Error {}

/** An attempt timed out. Its cause is the failure of an earlier attempt, if there was one. */
class NoAnswer extends LockStoreError {}

/** What to do about a table that has said nothing at all. */
const ADVICE = "check its region, its endpoint and the network to it";

/** @param ms for how long it was tried in all. @param why what is known of why: it comes before all that was said earlier. */
export function noAnswer(
  ms: number,
  { sent, failure }: Pick<AttemptLog, "sent" | "failure"> = { sent: 1 },
  why?: string,
): LockStoreError {
  const attempts = sent === 1 ? "" : ` in ${sent} attempts`;
  const message = `No answer from the table${attempts} within ${Math.round(ms)} ms`;
  const options = { transient: true, answered: false };
  // A timeout is not a cause: the failure before it is.
  const cause = failure instanceof NoAnswer || failure instanceof NotSent ? failure.cause : failure;
  if (cause === undefined || why !== undefined)
    return new NoAnswer(`${message}: ${why ?? ADVICE}`, { ...options, cause });
  const said = cause instanceof Error ? cause.message : String(cause);
  return new NoAnswer(`${message}; the last failure before that: ${said}`, { ...options, cause });
}
