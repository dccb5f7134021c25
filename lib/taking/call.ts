import { AsyncResource } from "node:async_hooks";
import { CHANNELS, type Diagnostics, publish } from "../diagnostics.js";
import { LockStoreError, LockTimeoutError, lastSeen } from "../errors.js";
import type { LockInfo } from "../lock-info.js";
import type { Row } from "../protocol/row.js";
import { retraced } from "../retraced.js";
import { onAbort } from "../session/abort-listening.js";
import { TooLate } from "../session/backlog.js";
import { LONGEST_ATTEMPT_MS } from "../session/retry.js";
import type { Session } from "../session/session.js";
import { replyAlarm } from "../time/clock.js";
import { lastSeenHere } from "./own-sections.js";
import { watchLongWait } from "./stuck.js";

/** How long a call waits for a first answer from the table, however long it would wait for the lock. */
export const FIRST_ANSWER_MS = 10_000;

/** The number of the last call. It is global, because all copies of this library in a process share the diagnostics channels. */
const LAST_CALL = Symbol.for("dynamutex.lastCall");
const numbering = globalThis as { [LAST_CALL]?: number };

export interface CallBounds {
  readonly signal?: AbortSignal | undefined;
  /** How long it waits for others, default Infinity. With 0 it has the time of one try. */
  readonly waitMs?: number | undefined;
  /** Whether it waits for the lock, and waits out outages once the table has answered. Default false. */
  readonly isPatient?: boolean;
  /** How many locks the caller asks for; 0, the default, for a call of the library's own, which the channels do not report. */
  readonly asksFor?: number;
  /** Whether it is for a candidate of an election, which waits by design: then it is not told that it waits long. */
  readonly isCandidate?: boolean;
}

/** Why a call has ended without an answer. */
export interface Failure {
  readonly reason: unknown;
}

/** How far the asking for a call has come. It decides what becomes of a call whose `waitMs` has passed. */
export interface Progress {
  /** Whether a try is under way: its answer may be the lock. Otherwise the call waits for others. */
  readonly isTrying: boolean;
  /** Why the last attempt has failed, as long as no other has left. */
  readonly failed: unknown;
  /** That the table answers nothing: for how long it has not, and why the last attempt failed. Undefined if it answers. */
  readonly silence: { readonly ms: number; readonly cause: unknown } | undefined;
  /** Why the call has to wait, where no row says it. */
  readonly because: string | undefined;
  /** Since when the request that the try needs has been waiting to leave, on `atMost`; undefined if none is. */
  readonly unsentSince?: number | undefined;
}

const NOTHING_SENT: Progress = { isTrying: false, failed: undefined, silence: undefined, because: undefined };

/**
 * One call: its caller's signal, its timeout, the table's close, and its events. It is settled once, by an answer or as soon as
 * one of these bounds is reached. What is in flight for it then goes on in the background, and is given back.
 *
 * `waitMs` bounds the waiting for others and nothing else. A try that is under way when it passes is brought to its end, and
 * nothing is sent for the call a second time: its next failure ends the call.
 *
 * Callbacks of timers, signals and closes throw nothing here: a failure in one of them settles the call.
 */
export class Call<Answer> {
  /** The lock's name; undefined for an administrative request. */
  readonly name: string | undefined;
  /** Its number, on the channels. */
  readonly number: number;
  readonly bounds: CallBounds;
  /** Tells who is in its way. */
  holderNow: (() => LockInfo | undefined) | undefined;
  /** Tells how far the asking for it has come. */
  progressNow: (() => Progress | undefined) | undefined;
  /** Called if a try is under way as `waitMs` passes. From then on {@link review} has to be called when something has come of it. */
  onOverdue: (() => void) | undefined;
  /** Called whenever something has come of what was sent for it. */
  onReview: (() => void) | undefined;
  /** Called with each row of the lock that was seen for it, free or not. */
  onSeen: ((row: Row) => void) | undefined;
  /** How many of its leases were over before they could be handed out. */
  leasesOver = 0;
  /** The failure of the last request for it that failed; undefined if none has. */
  failure: unknown;
  isSettled = false;
  /** Whether its `waitMs` has passed, and a try for it is still under way, or about to begin. */
  isOverdue = false;
  readonly #session: Session;
  /** The asynchronous context of the caller: timers and other callers act for the call, and run in their own. */
  readonly #context = new AsyncResource("DynamutexCall");
  #startedAt: number;
  readonly #startedAtLeast: number;
  /** How many answers the table had given when this call began. */
  readonly #answersBefore: number;
  readonly #onEnd: ((failure: Failure | undefined) => void)[] = [];
  #isMissed = false;
  #resolve: ((answer: never) => void) | undefined;
  #reject: ((reason: unknown) => void) | undefined;
  /** Ends what must not outlast the call: its timer, its listeners, the watch for a long wait. */
  #unregister: (() => void) | undefined;
  #cancelTimer: (() => void) | undefined;
  #stopListening: (() => void) | undefined;
  #endLongWatch: (() => void) | undefined;
  #mayExit: (() => void) | undefined;

  constructor(session: Session, name: string | undefined, bounds: CallBounds) {
    this.#session = session;
    this.name = name;
    this.number = (numbering[LAST_CALL] ?? 0) + 1;
    numbering[LAST_CALL] = this.number;
    this.bounds = bounds;
    this.#startedAt = session.clock.atMost();
    this.#startedAtLeast = session.clock.atLeast();
    this.#answersBefore = session.scheduler.answers;
  }

  get isPatient(): boolean {
    return this.bounds.isPatient ?? false;
  }

  /** How long this call has waited, on the stopwatch that does not run ahead: a clock that is set forward adds nothing. */
  get waitedMs(): number {
    return this.#session.clock.atLeast() - this.#startedAtLeast;
  }

  /** How long this call would go on waiting. */
  get remainingMs(): number {
    return (this.bounds.waitMs ?? Number.POSITIVE_INFINITY) - this.waitedMs;
  }

  /**
   * Until when requests are sent again for it, on `atMost`. If the table has answered since the call began, outages are waited
   * out; otherwise the call ends after {@link FIRST_ANSWER_MS}.
   */
  until(): number {
    const { scheduler } = this.#session;
    if (!this.isPatient) return this.#startedAt + FIRST_ANSWER_MS;
    if (scheduler.answers > this.#answersBefore) return Number.POSITIVE_INFINITY;
    return Math.max(this.#startedAt, scheduler.silentSince) + FIRST_ANSWER_MS;
  }

  /** Its requests leave this much later: their bounds count from then. */
  postpone(ms: number): void {
    this.#startedAt += ms;
  }

  /** From when on, on `atMost`, no attempt that has failed is repeated for it. */
  unrepeatedFrom(): number {
    return this.#startedAt + (this.bounds.waitMs ?? Number.POSITIVE_INFINITY);
  }

  /** Until when, on `atMost`, what it waits for from this moment on may leave or be answered: one attempt, counted from `waitMs` at least. */
  attemptEnds(from: number): number {
    return Math.max(from, this.unrepeatedFrom()) + LONGEST_ATTEMPT_MS;
  }

  /** Who is in the way, as last seen. */
  get holder(): LockInfo | undefined {
    return this.holderNow?.();
  }

  /** Runs something for the caller, in the caller's asynchronous context. */
  inContext<Result>(run: () => Result): Result {
    return this.#context.runInAsyncScope(run);
  }

  /** Its bounds count from here on. @param start begins to work for it. @throws what it fails with, and the stack names who called. */
  async begin(start: () => void): Promise<Answer> {
    const { signal, waitMs = Number.POSITIVE_INFINITY, asksFor = 0 } = this.bounds;
    const answer = new Promise<Answer>((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
      this.#unregister = this.#session.waiting((reason) => this.fail(reason, "closed"));
      this.isOverdue = waitMs === 0;
      if (Number.isFinite(waitMs)) this.#setTimer(waitMs === 0 ? LONGEST_ATTEMPT_MS : waitMs);
      this.#stopListening = signal && onAbort(signal, () => this.fail(signal.reason, "aborted"));
      // Publish before anything is awaited. A subscriber may end the call.
      if (asksFor > 0 && CHANNELS["dynamutex:asked"].hasSubscribers)
        publish("dynamutex:asked", { name: this.name ?? "", call: this.number, locks: asksFor });
      if (!this.isSettled) start();
    });
    try {
      return await answer;
    } catch (error) {
      throw retraced(error, this.name);
    }
  }

  /** @param listener is called when the call is settled: with why, if it got no answer. */
  atEnd(listener: (failure: Failure | undefined) => void): void {
    this.#onEnd.push(listener);
  }

  /** @returns false if the call was settled before: then the answer is not used. */
  settle(answer: Answer): boolean {
    if (!this.#end(undefined)) return false;
    this.#resolve?.(answer as never);
    return true;
  }

  /** Ends without an answer. Does nothing if the call was settled before. */
  fail(cause: unknown, reason: Diagnostics["dynamutex:failed"]["reason"] = "error"): void {
    if (!this.#end({ reason: cause })) return;
    this.#reject?.(cause);
    // A timeout was already published as a miss.
    if ((this.bounds.asksFor ?? 0) > 0 && !this.#isMissed)
      this.inContext(() => publish("dynamutex:failed", { ...this.#ended, reason, cause }));
  }

  /**
   * Why it ends without the lock: somebody has it, or goes first. If nobody is known to, the table has not told, which is no reason
   * to call the lock busy.
   */
  refusal(): LockStoreError | LockTimeoutError {
    const { silence, because } = this.progressNow?.() ?? NOTHING_SENT;
    const { holder } = this;
    const lock = `Lock ${JSON.stringify(this.name ?? "")}`;
    const seen = holder === undefined ? "" : `; before that, it was ${lastSeen(holder)}`;
    if (silence !== undefined) {
      const message = `${lock}: no answer from the table for ${Math.round(silence.ms)} ms${seen}`;
      return new LockStoreError(message, { transient: true, answered: false, cause: silence.cause });
    }
    if (holder !== undefined || because !== undefined) return this.timeout(because);
    const message = `${lock}: nothing was learned of it within ${Math.round(this.waitedMs)} ms; try again`;
    return new LockStoreError(message, { transient: true, answered: false, cause: this.failure });
  }

  /** @param because why it ends before its time, or why it has to wait. */
  timeout(because?: string): LockTimeoutError {
    const { holder } = this;
    const seen = holder && lastSeenHere(this.#session, holder);
    const options = { seen, because, ...(this.failure !== undefined && { cause: this.failure }) };
    return new LockTimeoutError(this.name ?? "", this.waitedMs, holder, options);
  }

  /** Publishes that the call ends without the lock. */
  missed(reason: Diagnostics["dynamutex:missed"]["reason"]): void {
    if (this.isSettled) return;
    this.#isMissed = true;
    this.inContext(() => publish("dynamutex:missed", { ...this.#ended, reason, holder: this.holder }));
  }

  /** Something has come of what was sent for it. If its `waitMs` has passed, it may have to end now. */
  review(): void {
    this.onReview?.();
    if (this.isOverdue && !this.isSettled) this.#timeUp();
  }

  /** Notes the failure of a request that was sent for it. */
  requestFailed(cause: unknown): void {
    this.failure = cause;
    // To ask again would be as late, or later.
    if (cause instanceof TooLate) this.fail(cause);
    const { name } = this;
    if (name !== undefined) this.inContext(() => publish("dynamutex:wait-failed", { name, cause }));
  }

  /** Somebody is in its way: from here on it is watched whether the wait is long, and whether a section of this process does not end. */
  isBlocked(): void {
    if (!this.isPatient || this.isSettled || this.name === undefined || this.bounds.isCandidate) return;
    this.#endLongWatch ??= this.inContext(() => watchLongWait(this.#session, this));
  }

  /** Keeps the process alive, which the timeout's alarm does not, until the call ends: for a call for which nothing is under way. */
  stay(): void {
    if (this.isPatient && !this.isSettled) this.#mayExit ??= this.#session.clock.stay?.();
  }

  /**
   * `waitMs` has passed. Ends the call, unless a try is under way for it whose last attempt has not failed, and whose request has left
   * or may still leave in time.
   */
  #timeUp(): void {
    try {
      const { isTrying, failed, unsentSince } = this.progressNow?.() ?? NOTHING_SENT;
      const slotMs = this.#slotLeftMs(unsentSince);
      if (isTrying && failed === undefined && slotMs > 0) {
        this.isOverdue = true;
        this.#setTimer(slotMs);
        this.onOverdue?.();
        return;
      }
      const reason = isTrying ? (failed ?? this.#session.scheduler.unsent(this.waitedMs)) : this.refusal();
      if (reason instanceof LockTimeoutError) this.missed(this.isPatient ? "timeout" : "held");
      this.fail(reason);
    } catch (error) {
      this.fail(error);
    }
  }

  /**
   * How long a call whose `waitMs` has passed waits on until a request leaves, or is looked at again. The request may be that of
   * another call, whose try it shares, and which waits for longer.
   */
  #slotLeftMs(unsentSince: number | undefined): number {
    const now = this.#session.clock.atMost();
    return this.attemptEnds(unsentSince ?? now) - now;
  }

  /** Rings when its `waitMs` has passed, and after that for a request that has not left. */
  #setTimer(ms: number): void {
    this.#cancelTimer?.();
    this.#cancelTimer = replyAlarm(this.#session.clock, ms, () => this.#timeUp());
  }

  #end(failure: Failure | undefined): boolean {
    if (this.isSettled) return false;
    this.isSettled = true;
    this.#unregister?.();
    this.#cancelTimer?.();
    this.#stopListening?.();
    this.#endLongWatch?.();
    this.#mayExit?.();
    for (const listener of this.#onEnd) listener(failure);
    return true;
  }

  /** What the channels tell of each call that has ended without the lock. */
  get #ended(): Pick<Diagnostics["dynamutex:failed"], "name" | "call" | "waitedMs"> {
    return { name: this.name ?? "", call: this.number, waitedMs: this.waitedMs };
  }
}
