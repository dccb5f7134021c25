import { CHANNELS, type Diagnostics, publish } from "../diagnostics.js";
import { LockTimeoutError } from "../errors.js";
import type { LockInfo } from "../lock-info.js";
import { onAbort } from "../session/abort-listening.js";
import { Pacing } from "../session/pacing.js";
import { persist, type Request } from "../session/requests.js";
import { type AttemptLog, LONGEST_ATTEMPT_MS, type Persistence } from "../session/retry.js";
import type { Session } from "../session/session.js";
import type { Sightings } from "../session/sightings.js";
import { isTimeKnown } from "../time/clock.js";
import { Blocker } from "./blocker.js";
import type { Ask } from "./rows.js";
import { leaseInUse } from "./stuck.js";

/** How long a call waits for a first answer from the table, however long it would wait for the lock. */
export const FIRST_ANSWER_MS = 10_000;

/** The reason with which `endSignal` aborts when the call has its lock. */
const SERVED: Error = new Error("The call has its lock");

/** The number of the last call. It is global, because all copies of this library in a process share the diagnostics channels. */
const LAST_CALL = Symbol.for("dynamutex.lastCall");
const numbering = globalThis as { [LAST_CALL]?: number };

/** What the sender of a request decides about its retries; the wait adds its own bounds. */
type RequestBounds = Pick<Persistence, "kind" | "firstTimeoutMs" | "until">;

/**
 * The bounds of one call that wants a lock: its caller's signal, its timeout, the table's close. When one of them is
 * reached, the caller is answered at once; requests in flight go on in the background, so that what they take is released.
 */
export class Wait {
  /** The lock's name; undefined for an administrative request. */
  readonly name: string | undefined;
  /** The number of the call, on the channels. */
  readonly call: number;
  readonly #session: Session;
  readonly #startedAt: number;
  readonly #startedAtLeast: number;
  /** How many answers the table had given when this call began. */
  readonly #answersBefore: number;
  /** Whether it waits for the lock, and waits out outages once the table has answered. */
  readonly isPatient: boolean;
  /** Whether its error is to name the holder: a call that does not wait then asks who has the lock before it gives up. */
  readonly namesHolder: boolean;
  /** How many locks the caller asks for; 0 for a wait of the library's own, which the channels do not report. */
  readonly #asksFor: number;
  #isMissed = false;
  #waitMs = Number.POSITIVE_INFINITY;
  readonly #end = new AbortController();
  /** Aborts when the caller has had its answer: the call is over, and nothing more is sent for it. */
  readonly endSignal: AbortSignal = this.#end.signal;
  /** How many of its leases were over before they could be handed out. */
  leasesOver = 0;
  /** What its requests have tried since the table last answered one of them. */
  #tried: AttemptLog | undefined;
  /** The failure of its last request that failed; undefined if none has. */
  #failure: unknown;
  #blocker: Blocker | undefined;
  #pacing: Pacing | undefined;
  #sightings: Sightings | undefined;

  constructor(
    session: Session,
    name: string | undefined,
    {
      patient,
      asksFor = 0,
      namesHolder = false,
    }: { readonly patient: boolean; readonly asksFor?: number; readonly namesHolder?: boolean },
  ) {
    this.#session = session;
    this.name = name;
    this.call = (numbering[LAST_CALL] ?? 0) + 1;
    numbering[LAST_CALL] = this.call;
    this.isPatient = patient;
    this.namesHolder = namesHolder;
    this.#asksFor = asksFor;
    this.#startedAt = session.clock.atMost();
    this.#startedAtLeast = session.clock.atLeast();
    this.#answersBefore = session.scheduler.answers;
  }

  /** The pauses before this call asks again, where nothing else makes it pause. */
  get pacing(): Pacing {
    this.#pacing ??= new Pacing(this.#session, this);
    return this.#pacing;
  }

  /** What this call has seen of rows, and which of its claims it has given up. */
  get sightings(): Sightings {
    this.#sightings ??= this.#session.sightings.ofCall();
    return this.#sightings;
  }

  /** Who is in its way. */
  get blocker(): Blocker {
    this.#blocker ??= new Blocker(this.#session, this, { isWatched: this.isPatient && !this.endSignal.aborted });
    return this.#blocker;
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
   * Until when requests are sent again, on `atMost`. If the table has answered since the wait began, outages are waited out;
   * otherwise the wait ends after {@link FIRST_ANSWER_MS}.
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

  /**
   * Sends a request until it is answered, within `bounds` and those of this call.
   * @param skipWith works as in {@link persist}.
   */
  async persist<T>(bounds: RequestBounds, request: Request<T>, skipWith?: () => Promise<T> | undefined): Promise<T> {
    const { clock } = this.#session;
    this.#tried ??= { since: clock.atLeast(), sent: 0 };
    const persistence: Persistence = {
      ...bounds,
      tried: this.#tried,
      deadline: clock.atMost() + FIRST_ANSWER_MS,
      endSignal: this.endSignal,
      onFailure: (cause) => {
        this.#failure = cause;
        if (this.name !== undefined) publish("dynamutex:wait-failed", { name: this.name, cause });
      },
    };
    const answer = await persist(this.#session, persistence, request, skipWith);
    this.#tried = undefined;
    return answer;
  }

  /** Asks the table one question, within the bounds of this call. */
  readonly ask: Ask = (question, skipWith) =>
    this.persist({ kind: "read", firstTimeoutMs: LONGEST_ATTEMPT_MS, until: this.until }, question, skipWith);

  /**
   * Like `persist`, for a write that depends on the time: its first copy leaves only while the time is known.
   * @returns undefined if the time has to be learned first: the process was suspended, or idle.
   */
  persistAtKnownTime<T>(bounds: RequestBounds, write: Request<T>): Promise<T | undefined> {
    let mayLeave = false;
    const learnFirst = (): Promise<undefined> | undefined => {
      // Further copies need no check: they repeat what the first one said.
      mayLeave ||= isTimeKnown(this.#session.clock);
      return mayLeave ? undefined : Promise.resolve(undefined);
    };
    return this.persist<T | undefined>(bounds, write, learnFirst);
  }

  /**
   * Runs `work`, which hands over its result with `deliver`, until it does, fails, or one of the bounds is reached. `deliver`
   * returns false if the caller has had another answer. It checks and answers in one synchronous step, so a lock is either
   * handed out or released, never forgotten.
   *
   * Callbacks of timers, signals and closes throw nothing here: a failure in one of them settles the call.
   */
  run<T>(
    work: (deliver: (result: T) => boolean) => Promise<void>,
    { signal, waitMs }: { readonly signal?: AbortSignal | undefined; readonly waitMs: number },
  ): Promise<T> {
    this.#waitMs = waitMs;
    const { clock } = this.#session;
    return new Promise((resolve, reject) => {
      /** Settles the call, once. @returns false if it was settled before. */
      const settle = (reason: unknown, answer: () => void): boolean => {
        if (this.endSignal.aborted) return false;
        unregister();
        cancelTimer?.();
        stopListening?.();
        this.#blocker?.end();
        this.#end.abort(reason);
        answer();
        return true;
      };
      const fail = (reason: unknown, because: Diagnostics["dynamutex:failed"]["because"]): void => {
        settle(reason, () => {
          reject(reason);
          // A timeout was already published as a miss.
          if (this.#asksFor > 0 && !this.#isMissed)
            publish("dynamutex:failed", { ...this.#ended, because, cause: reason });
        });
      };
      const timeOut = (): void => {
        try {
          this.missed("timeout");
          fail(this.timeout(), "error");
        } catch (error) {
          fail(error, "error");
        }
      };
      const unregister = this.#session.waiting((reason) => fail(reason, "closed"));
      const cancelTimer = Number.isFinite(waitMs) ? clock.alarm(waitMs, timeOut) : undefined;
      const stopListening = signal && onAbort(signal, () => fail(signal.reason, "aborted"));
      const deliver = (result: T): boolean => settle(SERVED, () => resolve(result));
      // Publish before anything is awaited, in the caller's own asynchronous context. A subscriber may end the call.
      if (this.#asksFor > 0 && CHANNELS["dynamutex:asked"].hasSubscribers)
        publish("dynamutex:asked", { name: this.name ?? "", call: this.call, locks: this.#asksFor });
      if (!this.endSignal.aborted) this.#session.detach(work(deliver).catch((error: unknown) => fail(error, "error")));
    });
  }

  /** Who is in the way, as last seen. */
  get holder(): LockInfo | undefined {
    return this.#blocker?.holder;
  }

  /** The same, as this call itself has seen it. */
  get seen(): LockInfo | undefined {
    return this.#blocker?.seen;
  }

  timeout(): LockTimeoutError {
    const inThisProcess = leaseInUse(this.#session, this.holder?.uuid) !== undefined;
    const options = { inThisProcess, ...(this.#failure !== undefined && { cause: this.#failure }) };
    return new LockTimeoutError(this.name ?? "", this.waitedMs, this.holder, options);
  }

  /** Publishes that the call ends without the lock. */
  missed(because: Diagnostics["dynamutex:missed"]["because"]): void {
    if (this.endSignal.aborted) return;
    this.#isMissed = true;
    publish("dynamutex:missed", { ...this.#ended, because, holder: this.holder });
  }

  /** What the channels tell of each call that has ended without the lock. */
  get #ended(): Pick<Diagnostics["dynamutex:failed"], "name" | "call" | "waitedMs"> {
    return { name: this.name ?? "", call: this.call, waitedMs: this.waitedMs };
  }
}
