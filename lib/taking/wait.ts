import { type Diagnostics, isHeard, publish } from "../diagnostics.js";
import { LockTimeoutError } from "../errors.js";
import type { LockInfo } from "../lock-info.js";
import type { MutexSettings } from "../options/mutex.js";
import { infoOf, type Row } from "../protocol/row.js";
import { onAbort } from "../session/abort-listening.js";
import { Pacing } from "../session/pacing.js";
import { persist, type Request, untried } from "../session/requests.js";
import { isTransient, LONGEST_ATTEMPT_MS, NotAsked, type Persistence, type Tried } from "../session/retry.js";
import type { Session } from "../session/session.js";
import { isTimeKnown } from "../time/clock.js";
import type { Target } from "./acquisition.js";
import type { Ask } from "./rows.js";
import { watchForStuck } from "./stuck.js";
import { tooSlow } from "./too-slow.js";

/** How long a call waits for a first sign of life from the table, however long it would wait for the lock. */
const FIRST_ANSWER_MS = 10_000;

/** How many leases of one call may be over before they are handed out. One or two may be by chance: a host was suspended. */
const MOST_OVER = 3;

/** What ends what is under way for a call that has its lock. */
const SERVED: Error = new Error("The call has its lock");

const nothing = (): void => undefined;

/** The number of the last call: global, because the channels are, which all copies of this library in a process share. */
const LAST_CALL = Symbol.for("dynamutex.lastCall");
const numbering = globalThis as { [LAST_CALL]?: number };

function nextCall(): number {
  const call = (numbering[LAST_CALL] ?? 0) + 1;
  numbering[LAST_CALL] = call;
  return call;
}

/** What a wait does not decide itself of how long a request is tried. */
type Asked = Pick<Persistence, "kind" | "attemptMs" | "until" | "copies">;

/**
 * The bounds of one call that wants a lock: its caller's signal, its timeout, the table's close. When one of them is
 * reached, the caller is answered at once; requests in flight go on in the background, so that what they take is released.
 */
export class Wait {
  /** Of the lock; undefined for an administrative request. */
  readonly name: string | undefined;
  /** The number of the call, on the channels. */
  readonly call: number;
  /** The ticks that a claim of this call without an answer may have taken, and what that claim failed of. */
  readonly doubtfulTicks: Map<number | undefined, unknown> = new Map();
  /** The uuids of its claims for a tick that were refused: a late copy of one may take the tick all the same. */
  readonly refusedClaims: Set<string | undefined> = new Set();
  readonly #session: Session;
  readonly #startedAt: number;
  readonly #startedAtLeast: number;
  /** How many answers of the table were there when it began. */
  readonly #answersBefore: number;
  #enough: AbortController | undefined;
  #stopped: { readonly reason: unknown } | undefined;
  /** Whether it waits for the lock, and waits out outages once the table has answered. */
  readonly isPatient: boolean;
  /** How many locks its caller asks for; 0 for a wait of the library's own, of which the channels do not tell. */
  readonly #asksFor: number;
  #isMissed = false;
  #waitMs = Number.POSITIVE_INFINITY;
  #inTheWay: Row | undefined;
  #localHolder: (() => LockInfo | undefined) | undefined;
  #lastFailure: unknown;
  /** Since the table last answered this call. */
  #tried: Tried = untried();
  /** Ends the watch for a section that does not end. There is none before somebody is in the way, in a try, or at the end. */
  #endStuckWatch: (() => void) | undefined;
  #leasesOver = 0;
  #pacing: Pacing | undefined;

  constructor(
    session: Session,
    name: string | undefined,
    { patient, asksFor = 0 }: { readonly patient: boolean; readonly asksFor?: number },
  ) {
    this.#session = session;
    this.name = name;
    this.call = nextCall();
    this.isPatient = patient;
    this.#asksFor = asksFor;
    if (!patient) this.#endStuckWatch = nothing;
    this.#startedAt = session.clock.atMost();
    this.#startedAtLeast = session.clock.atLeast();
    this.#answersBefore = session.scheduler.answers;
  }

  /** Aborts when the caller has had its answer: nothing more is sent for this call. */
  get enough(): AbortSignal {
    // Made when first asked for: a lock that is free is taken without.
    this.#enough ??= new AbortController();
    if (this.#stopped !== undefined) this.#enough.abort(this.#stopped.reason);
    return this.#enough.signal;
  }

  /** The pauses of this call where nothing else makes it pause before it asks again. */
  get pacing(): Pacing {
    this.#pacing ??= new Pacing(this.#session, this);
    return this.#pacing;
  }

  /** Whether the caller has had its answer. */
  get isOver(): boolean {
    return this.#stopped !== undefined;
  }

  /** How long this call has waited, on the stopwatch that does not run ahead: a clock that is set forward adds nothing. */
  get waitedMs(): number {
    return this.#session.clock.atLeast() - this.#startedAtLeast;
  }

  /** How long this call would go on waiting. */
  get remainingMs(): number {
    return this.#waitMs - this.waitedMs;
  }

  /**
   * Until when requests are sent again, on `atMost`. Outages are waited out where the table has answered since the wait
   * began; where it has not, the wait ends.
   */
  readonly until = (): number => {
    const { scheduler } = this.#session;
    if (!this.isPatient) return this.#startedAt + FIRST_ANSWER_MS;
    if (scheduler.answers > this.#answersBefore) return Number.POSITIVE_INFINITY;
    return Math.max(this.#startedAt, scheduler.silentSince) + FIRST_ANSWER_MS;
  };

  /** Keeps the process alive, which the timeout's alarm does not, until the returned function is called. */
  stay(): () => void {
    return this.#session.clock.stay?.() ?? (() => undefined);
  }

  throwIfEnough(): void {
    if (this.#stopped !== undefined) throw this.#stopped.reason;
  }

  /**
   * Notes that a claim got no answer while its lease would have lasted: an outage, which is waited out, unless for so long
   * not even the quickest answer to anything would have come in time. @throws {@link LockStoreError} then.
   */
  claimWasUnanswered({ at, settings }: Target, leaseMs: number, cause: unknown): void {
    const { distanceMs = 0 } = this.#session.scheduler;
    if (this.waitedMs >= FIRST_ANSWER_MS && distanceMs >= leaseMs) throw tooSlow(at.name, settings, cause);
  }

  /** Notes a lease that was over before it could be handed out. @throws {@link LockStoreError} if that is so again and again. */
  leaseWasOver({ name, settings }: { readonly name: string; readonly settings: MutexSettings }): void {
    this.#leasesOver += 1;
    if (this.#leasesOver >= MOST_OVER) throw tooSlow(name, settings);
  }

  /** Notes the row that is in the way. A claim that this process has given up is nobody's, so it is not named. */
  saw(row: Row): void {
    if (!this.#session.sightings.isAbandoned(row)) this.#inTheWay = row;
    this.#watchForStuck();
  }

  /** Notes that a section of this process is in the way; `holder` is called for its details when they are needed. */
  sawLocally(holder: () => LockInfo | undefined): void {
    this.#localHolder = holder;
    this.#watchForStuck();
  }

  /** Sends a request until it is answered, within the bounds of this call and of `persistence`. */
  async persist<T>(persistence: Asked, request: Request<T>): Promise<T> {
    const wait = this;
    const deadline = this.#session.clock.atMost() + FIRST_ANSWER_MS;
    const answer = await persist(
      this.#session,
      {
        ...persistence,
        tried: this.#tried,
        deadline: () => deadline,
        get enough() {
          return wait.enough;
        },
        onFailure: (cause) => this.#failed(cause),
      },
      request,
    ).catch((error: unknown) => {
      // What had no time to leave hides no failure before it, also where the table has answered something since.
      throw this.#tried.sent === 0 && isTransient(error) ? (this.#lastFailure ?? error) : error;
    });
    this.#tried = untried();
    return answer;
  }

  /** Asks the table one question, within the bounds of this call. */
  readonly ask: Ask = (question) =>
    this.persist({ kind: "read", attemptMs: LONGEST_ATTEMPT_MS, until: this.until }, question);

  /**
   * The same for a write that depends on the time: its first copy leaves only while the time is known.
   * @returns undefined if the time has to be learned first: the process was suspended, or idle.
   */
  async persistAtKnownTime<T>(persistence: Asked, write: Request<T>): Promise<T | undefined> {
    let left = false;
    try {
      return await this.persist(persistence, (signal) => {
        // A further copy says what the first one said.
        if (!left && !isTimeKnown(this.#session.clock)) throw new NotAsked();
        left = true;
        return write(signal);
      });
    } catch (error) {
      if (error instanceof NotAsked) return undefined;
      throw error;
    }
  }

  /**
   * Runs `work`, which hands over its result with `deliver`, until it does, fails, or one of the bounds is reached.
   * `deliver` returns false if the caller has had another answer. It checks and answers in one synchronous step, so a
   * lock is either handed out or released, never forgotten.
   *
   * What a timer, a signal or a close runs here throws nothing: where it fails, the call is settled with that.
   */
  run<T>(
    work: (deliver: (result: T) => boolean) => Promise<void>,
    { signal, waitMs }: { readonly signal?: AbortSignal | undefined; readonly waitMs: number },
  ): Promise<T> {
    this.#waitMs = waitMs;
    return new Promise((resolve, reject) => {
      const stop = (reason: unknown, because?: "aborted" | "closed" | "error"): void => {
        if (this.#stopped !== undefined) return;
        end();
        this.#stopped = { reason };
        reject(reason);
        if (because !== undefined) this.#tellFailed(because, reason);
        this.#enough?.abort(reason);
      };
      const timeOut = (): void => {
        try {
          this.missed("timeout");
          stop(this.timeout());
        } catch (error) {
          stop(error, "error");
        }
      };
      const unregister = this.#session.waiting((reason) => stop(reason, "closed"));
      const { clock } = this.#session;
      const cancelTimer = Number.isFinite(waitMs) ? clock.alarm(waitMs, timeOut) : undefined;
      let ended = false;
      const end = (): void => {
        ended = true;
        unregister();
        cancelTimer?.();
        stopListening?.();
        this.#endStuckWatch?.();
        this.#endStuckWatch = nothing;
      };
      const stopListening = signal && onAbort(signal, () => stop(signal.reason, "aborted"));
      const deliver = (result: T): boolean => {
        if (ended) return false;
        end();
        this.#stopped = { reason: SERVED };
        resolve(result);
        this.#enough?.abort(SERVED);
        return true;
      };
      const failed = (error: unknown): void => {
        if (!ended) {
          end();
          this.#tellFailed("error", error);
        }
        reject(error);
      };
      // Now, in the caller's own asynchronous context: nothing was awaited before. A subscriber may end the call.
      if (isHeard("dynamutex:asked")) this.#tellAsked();
      if (!ended) this.#session.detach(work(deliver).catch(failed));
    });
  }

  /** Who is in the way, as last seen. */
  get holder(): LockInfo | undefined {
    return this.#inTheWay === undefined ? this.#localHolder?.() : infoOf(this.#inTheWay);
  }

  timeout(): LockTimeoutError {
    const options = this.#lastFailure === undefined ? undefined : { cause: this.#lastFailure };
    return new LockTimeoutError(this.name ?? "", this.waitedMs, this.holder, options);
  }

  /** Publishes that the call ends without the lock. */
  missed(because: Diagnostics["dynamutex:missed"]["because"]): void {
    if (this.isOver) return;
    this.#isMissed = true;
    if (!isHeard("dynamutex:missed")) return;
    const { name = "", call, holder, waitedMs } = this;
    publish("dynamutex:missed", { name, call, because, holder, waitedMs });
  }

  #tellAsked(): void {
    const { name = "", call } = this;
    if (this.#asksFor > 0) publish("dynamutex:asked", { name, call, locks: this.#asksFor });
  }

  #tellFailed(because: Diagnostics["dynamutex:failed"]["because"], cause: unknown): void {
    if (!isHeard("dynamutex:failed") || this.#asksFor === 0 || this.#isMissed) return;
    const { name = "", call, waitedMs } = this;
    publish("dynamutex:failed", { name, call, because, cause, waitedMs });
  }

  #watchForStuck(): void {
    // A set waits for the lock that was last seen in the way.
    this.#endStuckWatch ??= watchForStuck(this.#session, this.call, () => this.holder?.uuid);
  }

  #failed(cause: unknown): void {
    if (this.#tried.sent > 0) this.#lastFailure = cause;
    else this.#lastFailure ??= cause;
    if (this.name !== undefined) publish("dynamutex:wait-failed", { name: this.name, cause });
  }
}
