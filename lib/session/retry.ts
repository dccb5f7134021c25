import pRetry from "p-retry";
import { LockStoreError } from "../errors.js";
import type { Clock } from "../time/clock.js";
import type { Contact } from "./contact.js";
import type { RequestKind, Scheduler } from "./scheduler.js";

const FIRST_PAUSE_MS = 25;
const LONGEST_PAUSE_MS = 1_000;

/** The least time that an attempt needs where no answer has come yet from which to tell. */
const LEAST_ATTEMPT_MS = 50;

/** An attempt is given at least so many times as long as slow answers take: what is sent again too soon slows them further. */
const PATIENCE_TIMES = 3;

/** The longest that a request of a lock is waited for: an answer that has not come by then does not come. */
export const LONGEST_ATTEMPT_MS = 3_000;

/** How soon a renewal that was not answered is tried anew. */
export const RENEW_AGAIN_MS = 50;

/** One request, with the signal that ends it. */
export type Request<T> = (signal: AbortSignal) => Promise<T>;

/** How many copies of a request were sent. */
export interface Copies {
  sent: number;
  /** To how many of them the table has said nothing: they may be applied yet. */
  unanswered: number;
}

/** How long a request may go on being tried. Moments are on the `atMost` stopwatch. */
export interface Persistence {
  /** Its share among the requests of this process. */
  readonly kind: RequestKind;
  /** Until when an answer is worth something, which decides who is sent first. Default: `until`. */
  readonly deadline?: (() => number) | undefined;
  /** No attempt starts after this, and none outlasts it. Failures that pass by themselves are thrown only then. */
  readonly until: () => number;
  /**
   * The longest that the first attempt may take, unless answers are slow at present. Each further one may take twice as
   * long as the one before it, up to {@link LONGEST_ATTEMPT_MS}: where the table is far away and leases are short, an
   * answer comes late and not never.
   */
  readonly attemptMs: number;
  /** Ends the trying: an attempt under way is still awaited, no other is sent, not even a first one. */
  readonly enough?: AbortSignal | undefined;
  /** Whether a failure is worth another attempt. Default: transient store errors only. */
  readonly worthRetrying?: ((error: unknown) => boolean) | undefined;
  readonly onFailure?: ((error: unknown) => void) | undefined;
  /** Counted in as the copies leave and are answered, also by an answer that comes after the time of its attempt. */
  readonly copies?: Copies | undefined;
}

/** What the requests of one process share. */
export interface Requests {
  readonly clock: Clock;
  readonly scheduler: Scheduler;
  readonly contact: Contact;
  readonly random: () => number;
}

/** How long the first attempt at a request of such a lease may take before it counts as unanswered. */
export function attemptMs(ttlMs: number): number {
  return Math.min(LONGEST_ATTEMPT_MS, Math.max(50, ttlMs / 4));
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
  return inTime(
    clock,
    () => ms,
    request,
    () => noAnswer(`within ${Math.round(ms)} ms`),
  );
}

/** @param boundMs is called once the request has left, which may have decided until when it is worth something. */
function inTime<T>(clock: Clock, boundMs: () => number, request: Request<T>, late: () => unknown): Promise<T> {
  const controller = new AbortController();
  return new Promise<T>((resolve, reject) => {
    const answer = request(controller.signal);
    const cancel = clock.alarm(boundMs(), () => {
      const error = late();
      controller.abort(error);
      reject(error);
    });
    answer.then(
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
 * Sends a request when its turn comes among those of this process, and again after transient failures, with growing,
 * jittered pauses on the clock, until `until`.
 *
 * @param request is called as a copy leaves, with how many have left by then: what it says about the time is chosen inside.
 * @throws what the last attempt threw; the reason of `enough` if that aborts before anything was sent.
 */
export function persist<T>(
  session: Requests,
  persistence: Persistence,
  request: (signal: AbortSignal, attempt: number) => Promise<T>,
): Promise<T> {
  const attempts = new Attempts(session, persistence, request);
  // What follows is rare, and costs more than the request's own share of the time: so it is set up only then.
  return attempts.send().catch((error: unknown) => attempts.retry(error));
}

/** The attempts at one request. */
class Attempts<T> {
  readonly #session: Requests;
  readonly #clock: Clock;
  readonly #persistence: Persistence;
  readonly #request: (signal: AbortSignal, attempt: number) => Promise<T>;
  readonly #startedAt: number;
  #sent = 0;
  /** What the last attempt failed of that did not merely take too long. */
  #cause: unknown;
  #lastTimeout: unknown;

  constructor(
    session: Requests,
    persistence: Persistence,
    request: (signal: AbortSignal, attempt: number) => Promise<T>,
  ) {
    this.#session = session;
    this.#clock = session.clock;
    this.#persistence = persistence;
    this.#request = request;
    this.#startedAt = session.clock.atLeast();
  }

  send(): Promise<T> {
    const { kind, until, deadline = until, enough } = this.#persistence;
    let hasQueued = false;
    const answer = this.#session.scheduler.run({ kind, deadline: deadline(), until, enough }, () =>
      this.#leave(hasQueued),
    );
    hasQueued = true;
    return answer;
  }

  /** The pauses are on our clock and not on p-retry's, so that they pass on virtual time as well. */
  async retry(firstError: unknown): Promise<T> {
    const { enough, worthRetrying = isTransient } = this.#persistence;
    if (this.#sent === 0 && enough?.aborted) throw firstError;
    let failure = this.#noted(firstError);
    let sent = this.#sent;
    return await pRetry((attempt) => (attempt === 1 ? Promise.reject(firstError) : this.send()), {
      retries: Number.POSITIVE_INFINITY,
      minTimeout: 0,
      shouldRetry: async ({ error, attemptNumber }) => {
        // An attempt that did not leave hides no failure of one that did.
        if (this.#sent > sent) failure = this.#noted(error);
        sent = this.#sent;
        return worthRetrying(failure) && (await this.#pause(attemptNumber));
      },
    }).catch(() => {
      throw failure;
    });
  }

  #leave(hasQueued: boolean): Promise<T> {
    const { until, copies } = this.#persistence;
    const leftMs = remaining(this.#clock, until);
    // No copy leaves after `until`. A further one needs time for an answer, or its failure would hide the cause of the last.
    if (leftMs === 0 || ((hasQueued || this.#sent > 0) && leftMs < this.#leastMs)) {
      return Promise.reject(noTimeLeft(this.#clock.atLeast() - this.#startedAt));
    }
    this.#sent += 1;
    const send = (signal: AbortSignal): Promise<T> => this.#request(signal, this.#sent);
    const { contact } = this.#session;
    const request = (signal: AbortSignal) => counted(copies, contact, () => send(signal));
    return inTime(
      this.#clock,
      () => this.#boundMs(),
      request,
      () => this.#late(),
    );
  }

  /** How long the attempt that leaves now may take. */
  #boundMs(): number {
    const { until, attemptMs } = this.#persistence;
    const patienceMs = Math.max(
      attemptMs * 2 ** (this.#sent - 1),
      PATIENCE_TIMES * (this.#session.scheduler.slowMs ?? 0),
    );
    return Math.min(Math.max(attemptMs, Math.min(LONGEST_ATTEMPT_MS, patienceMs)), remaining(this.#clock, until));
  }

  /** With less time than this, an attempt could only fail, and its failure would hide the cause of the one before it. */
  get #leastMs(): number {
    return Math.min(this.#persistence.attemptMs, this.#session.scheduler.typicalMs ?? LEAST_ATTEMPT_MS);
  }

  #late(): LockStoreError {
    const ms = Math.round(this.#clock.atLeast() - this.#startedAt);
    const tried = this.#sent === 1 ? `within ${ms} ms` : `in ${this.#sent} attempts within ${ms} ms`;
    const error = noAnswer(tried, this.#cause);
    this.#lastTimeout = error;
    return error;
  }

  #noted(failure: unknown): unknown {
    if (failure !== this.#lastTimeout) this.#cause = failure;
    this.#persistence.onFailure?.(failure);
    return failure;
  }

  /** Waits between two attempts. @returns whether there is time for another. */
  async #pause(failures: number): Promise<boolean> {
    const { until, enough } = this.#persistence;
    const longestMs = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** failures);
    const resumeAt = this.#clock.atMost() + (0.5 + this.#session.random()) * longestMs;
    for (;;) {
      const leftMs = remaining(this.#clock, until);
      if (leftMs === 0 || enough?.aborted) return false;
      const pauseMs = resumeAt - this.#clock.atMost();
      if (pauseMs <= 0) return true;
      await this.#clock.sleep(Math.min(pauseMs, leftMs), enough).catch(() => undefined);
    }
  }
}

/** Counts a copy as unanswered until the table has said something to it: then it is not on its way any more. */
async function counted<T>(copies: Copies | undefined, contact: Contact, send: () => Promise<T>): Promise<T> {
  if (copies !== undefined) {
    copies.sent += 1;
    copies.unanswered += 1;
  }
  contact.asked();
  const settled = (): void => {
    if (copies !== undefined) copies.unanswered -= 1;
  };
  try {
    const answer = await send();
    contact.answered();
    settled();
    return answer;
  } catch (error) {
    if (error instanceof LockStoreError && error.answered) {
      contact.answered();
      // What the client repeated by itself got no answer the first time.
      if (!error.retried) settled();
    }
    throw error;
  }
}

/** Whether a failure may pass by itself. */
export function isTransient(error: unknown): boolean {
  return error instanceof LockStoreError && error.transient;
}

function noAnswer(tried: string, cause?: unknown): LockStoreError {
  const message = `No answer from the table ${tried}`;
  const options = { transient: true, answered: false };
  if (cause === undefined) {
    return new LockStoreError(`${message}: check its region, its endpoint and the network to it`, options);
  }
  const said = cause instanceof Error ? cause.message : String(cause);
  return new LockStoreError(`${message}; the last failure before that: ${said}`, { ...options, cause });
}

function noTimeLeft(ms: number): LockStoreError {
  return new LockStoreError(
    `Not sent: after ${Math.round(ms)} ms of waiting behind other requests of this process, too little time was left for an answer`,
    { transient: true, answered: false },
  );
}

function remaining(clock: Clock, until: () => number): number {
  return Math.max(0, until() - clock.atMost());
}
