import { LockStoreError } from "../errors.js";
import type { Row } from "../protocol/row.js";
import { awaitShared } from "../session/abort-listening.js";
import { answeredWithin } from "../session/overdue.js";
import { persist, type Request, sendOnce } from "../session/requests.js";
import { type AttemptLog, LONGEST_ATTEMPT_MS, type Persistence, pauseMs } from "../session/retry.js";
import type { Session } from "../session/session.js";
import { isTimeKnown } from "../time/clock.js";
import { type Call, FIRST_ANSWER_MS, type Progress } from "./call.js";
import type { Ask } from "./rows.js";
import { View } from "./view.js";

/** What the sender of a request decides about its retries; the wait adds its own bounds. */
type RequestBounds = Pick<Persistence, "kind" | "firstTimeoutMs" | "until">;

/** One request of a bid, with all of its attempts: several may be under way at once, and an answer to one says nothing of another. */
interface Asking {
  readonly tried: AttemptLog;
  isUnderWay: boolean;
  /** Since when it has been waiting to leave, on `atMost`; undefined if it is not. */
  unsentSince?: number | undefined;
  /** The failure of its last attempt; and how many answers the table had given this process by then. */
  failure?: { readonly cause: unknown; readonly answers: number };
  /** Whether an attempt has left since that failure. */
  isRepeating: boolean;
}

/** How many times it may ask again at once: the second answer is mostly new. */
const AT_ONCE = 2;

const FIRST_EACH_TIME = "It looked free several times, and another caller was first each time";

/** For whom a bid asks the table. */
export interface Asker {
  readonly call: Call<unknown>;
}

/**
 * Asks the table for a lock, for one call and for no other. When that call ends, the bid is withdrawn: it sends nothing more, and
 * what a claim in flight takes is not its caller's. What it has seen is in its {@link View}, which may be that of the next bid. Each
 * request is sent in the asynchronous context of its call.
 */
export class Bid<For extends Asker = Asker> implements Progress {
  readonly asker: For;
  readonly view: View;
  isTrying = true;
  because: string | undefined;
  readonly #session: Session;
  readonly #withdrawal = new AbortController();
  /** Aborts when its call has ended: nothing more is sent. */
  readonly withdrawn: AbortSignal = this.#withdrawal.signal;
  /** What it asks at present; and what has failed in the end, until the next request goes on with it. */
  readonly #asking = new Set<Asking>();
  /** How often it has asked again without a pause. */
  #times = 0;

  constructor(session: Session, asker: For, view: View = new View(session)) {
    this.#session = session;
    this.asker = asker;
    this.view = view;
  }

  get call(): Call<unknown> {
    return this.asker.call;
  }

  get isPatient(): boolean {
    return this.call.isPatient;
  }

  get failed(): unknown {
    for (const { failure, isRepeating } of this.#asking)
      if (failure !== undefined && !isRepeating) return failure.cause;
    return undefined;
  }

  get unsentSince(): number | undefined {
    let first: number | undefined;
    for (const { unsentSince } of this.#asking)
      if (unsentSince !== undefined) first = Math.min(first ?? unsentSince, unsentSince);
    return first;
  }

  /** Another request of this process may have been answered since: then one of this call was lost, and the table is not silent. */
  get silence(): Progress["silence"] {
    const { clock, scheduler } = this.#session;
    for (const { failure, tried } of this.#asking) {
      if (failure === undefined || failure.answers !== scheduler.answers) continue;
      const { cause } = failure;
      if (cause instanceof LockStoreError && cause.answered) continue;
      return { ms: clock.atLeast() - tried.since, cause };
    }
    return undefined;
  }

  /** A try begins: what it sends may bring the lock. */
  tries(): void {
    this.isTrying = true;
    this.because = undefined;
  }

  /** The try has ended: somebody has the lock, or goes first. @param because why, where no row says it. */
  waits(because?: string): void {
    this.isTrying = false;
    this.because = because;
    this.#progressed();
  }

  /** Those who share its view come first: the end of its call may begin another bid, whose first attempt they would wait for. */
  #progressed(): void {
    this.view.shared.onProgress();
    this.call.review();
  }

  get waitedMs(): number {
    return this.call.waitedMs;
  }

  get remainingMs(): number {
    return this.call.remainingMs;
  }

  readonly until = (): number => this.call.until();

  /** Its call has ended. */
  withdraw(reason: unknown): void {
    this.#withdrawal.abort(reason);
  }

  /** Notes the row that is in the way. */
  saw(row: Row): void {
    this.view.saw(row);
    this.call.isBlocked();
    this.call.onSeen?.(row);
  }

  /**
   * Called before it asks again although nothing has failed: the row looked free and was not, a place is gone, a reply told no
   * time. The first two times it goes on at once, and then after growing, jittered pauses. So no request is repeated without a
   * pause for ever, whatever the table answers. @throws what ended the call.
   */
  async again(): Promise<void> {
    this.#times += 1;
    if (this.#times <= AT_ONCE) return;
    // What looked free each time had been taken by others, unless a request has failed: then nobody need be in the way.
    if (this.view.hasRow && this.failed === undefined) this.waits(FIRST_EACH_TIME);
    await this.#sleep(pauseMs(this.#session, this.#times - AT_ONCE));
    this.tries();
  }

  /** Pauses for a reason of its own, so that {@link again} begins anew. @throws what ended the call. */
  async pause(ms: number, because?: string): Promise<void> {
    this.waits(because);
    await this.#sleep(ms);
    this.#times = 0;
  }

  /** Sleeps within the bounds of its call. */
  #sleep(ms: number): Promise<void> {
    const { clock } = this.#session;
    return clock.sleep(Math.max(0, Math.min(ms, this.until() - clock.atMost())), this.withdrawn);
  }

  /**
   * Sends a request until it is answered, within `bounds` and those of its call.
   * @param skipWith works as in {@link persist}.
   */
  async persist<T>(bounds: RequestBounds, request: Request<T>, skipWith?: () => Promise<T> | undefined): Promise<T> {
    const { clock } = this.#session;
    const asking = this.#next();
    const sentAt = clock.atMost();
    // Its requests wait for others of this process no longer than one attempt beyond `waitMs`.
    const slotUntil = (): number => this.call.attemptEnds(sentAt);
    const persistence: Persistence = {
      ...bounds,
      tried: asking.tried,
      deadline: Math.min(sentAt + FIRST_ANSWER_MS, slotUntil()),
      slotUntil,
      endSignal: this.withdrawn,
      unrepeatedFrom: () => this.call.unrepeatedFrom(),
      onFailure: (cause) => this.#failed(asking, cause),
    };
    asking.unsentSince = sentAt;
    const send = (signal: AbortSignal): Promise<T> => {
      asking.unsentSince = undefined;
      asking.isRepeating = true;
      return request(signal);
    };
    try {
      const answer = await this.call.inContext(() => persist(this.#session, persistence, send, skipWith));
      this.#asking.delete(asking);
      return answer;
    } finally {
      asking.isUnderWay = false;
      asking.unsentSince = undefined;
    }
  }

  /** The next request goes on with the attempts of one that has failed in the end: an error then reports all of them. */
  #next(): Asking {
    let next: Asking | undefined;
    for (const asking of this.#asking) {
      if (asking.isUnderWay) continue;
      this.#asking.delete(asking);
      next ??= asking;
    }
    next ??= { tried: { since: this.#session.clock.atLeast(), sent: 0 }, isUnderWay: true, isRepeating: false };
    next.isUnderWay = true;
    this.#asking.add(next);
    return next;
  }

  /** Notes the failure of a request that others have sent for its call, which that may be the end of. */
  requestFailed(cause: unknown): void {
    const asking = this.#next();
    asking.isUnderWay = false;
    this.#failed(asking, cause);
  }

  #failed(asking: Asking, cause: unknown): void {
    asking.failure = { cause, answers: this.#session.scheduler.answers };
    asking.isRepeating = false;
    asking.unsentSince = undefined;
    this.call.requestFailed(cause);
    this.#progressed();
  }

  /** Until when one request of its try goes on from now on, with all of its attempts. */
  requestEnds(): () => number {
    const end = this.call.attemptEnds(this.#session.clock.atMost());
    return () => Math.min(this.until(), end);
  }

  /**
   * Waits for the answer to what others of this process have sent, within the bounds of its call.
   * @returns undefined if none comes in time. @throws what that fails with; what ended the call.
   */
  answered<T>(shared: Promise<T>): Promise<T | undefined> {
    const { clock } = this.#session;
    return awaitShared(this.withdrawn, answeredWithin(clock, this.requestEnds()() - clock.atMost(), shared));
  }

  /** Asks the table one question. */
  readonly ask: Ask = (question, skipWith) =>
    this.persist({ kind: "read", firstTimeoutMs: LONGEST_ATTEMPT_MS, until: this.until }, question, skipWith);

  /** Sends one attempt, which is of use but not needed. @throws why it has failed. */
  once<T>(bounds: Pick<RequestBounds, "kind" | "firstTimeoutMs">, request: Request<T>): Promise<T> {
    return this.call.inContext(() => sendOnce(this.#session, { ...bounds, endSignal: this.withdrawn }, request));
  }

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
}

/** Asks the table for one call. `work` settles the call, unless it fails. */
export function askFor<For extends Asker>(
  session: Session,
  asker: For,
  work: (bid: Bid<For>) => Promise<unknown>,
  view?: View,
): void {
  const { call } = asker;
  const bid = new Bid(session, asker, view);
  const { holderNow } = call;
  call.holderNow = () => bid.view.holder ?? holderNow?.();
  call.progressNow = () => bid;
  call.atEnd((failure) => {
    if (failure !== undefined) bid.withdraw(failure.reason);
  });
  session.detach(work(bid).catch((error: unknown) => call.fail(error)));
}

/** Begins a call, and asks the table for it: see {@link askFor}. */
export function runFor<Answer>(
  session: Session,
  call: Call<Answer>,
  work: (bid: Bid) => Promise<unknown>,
): Promise<Answer> {
  return call.begin(() => askFor(session, { call }, work));
}
