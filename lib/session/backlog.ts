import { LockStoreError } from "../errors.js";
import type { Clock } from "../time/clock.js";
import { onAbort } from "./abort-listening.js";

/** What a request does. */
export type RequestKind = "renewal" | "release" | "take" | "read";

/** A request that may have to wait for a slot. Moments are on the `atMost` stopwatch. */
export interface ScheduledRequest {
  readonly kind: RequestKind;
  /** When the wait for a slot ends. Looked at when the request is queued, and again when that moment comes. */
  readonly until: () => number;
  /** The same for the wait alone. A request that is sure to get its slot later fails at once, with a {@link TooLate}. */
  readonly slotUntil?: (() => number) | undefined;
  /** Until when an answer is of use: the earliest goes first. Default: `until`, as it is when the request is queued. */
  readonly deadline?: number | undefined;
  /** Ends the wait for a slot. A request that has left is not touched. */
  readonly endSignal?: AbortSignal | undefined;
}

/** A request that waits for a slot. `send` sends it. */
type Waiting = { readonly kind: RequestKind; readonly deadline: number; readonly send: () => void };

/**
 * The requests that wait for a slot: renewals first, then releases, then the rest. Within each of these the earliest deadline
 * goes first, and of equal deadlines the request that came first. Without releases before the rest, 1 651 of 3 000 releases are
 * not sent in time in a burst of as many takes, on a table that serves 200 requests a second (`proof/load/load.test.ts`).
 */
export class Backlog {
  readonly #clock: Clock;
  readonly #underWay: () => number;
  readonly #soonestMs: (ahead: number) => number;
  /** In the order in which they leave. A property, so that a look at it costs no call. */
  readonly waiting: Waiting[] = [];

  /**
   * @param underWay how many requests have left and are not answered, for the message of one that gets no slot.
   * @param soonestMs in how many ms a request leaves at the soonest that so many others leave before.
   */
  constructor(clock: Clock, underWay: () => number, soonestMs: (ahead: number) => number) {
    this.#clock = clock;
    this.#underWay = underWay;
    this.#soonestMs = soonestMs;
  }

  /** Calls `send` when it is the request's turn. */
  add<T>(request: ScheduledRequest, send: () => Promise<T>): Promise<T> {
    const { kind, until, slotUntil, deadline = until(), endSignal } = request;
    const queuedAt = this.#clock.atLeast();
    return new Promise<T>((resolve, reject) => {
      let cancelCheck: (() => void) | undefined;
      const end = (answer: () => void): void => {
        this.waiting.splice(this.waiting.indexOf(waiting), 1);
        cancelCheck?.();
        stopListening?.();
        answer();
      };
      const leftMs = (): number => Math.min(until(), slotUntil?.() ?? Number.POSITIVE_INFINITY) - this.#clock.atMost();
      const late = (): void => end(() => reject(this.unsent(this.#clock.atLeast() - queuedAt)));
      const check = (): void => {
        const ms = leftMs();
        if (ms <= 0) late();
        else if (ms < Number.POSITIVE_INFINITY) cancelCheck = this.#clock.alarm(ms, check);
      };
      const stopListening = endSignal && onAbort(endSignal, () => end(() => reject(endSignal.reason)));
      // In a process that stood still, a slot may become free before the check that is overdue.
      const leave = (): void => (leftMs() > 0 ? end(() => resolve(send())) : late());
      const waiting: Waiting = { kind, deadline, send: leave };
      const ahead = this.#placeOf(waiting);
      this.waiting.splice(ahead, 0, waiting);
      if (slotUntil !== undefined && this.#soonestMs(ahead) > leftMs()) end(() => reject(new TooLate(ahead, leftMs())));
      else check();
    });
  }

  /** The error of a request that got no slot within so long. */
  unsent(waitedMs: number): NotSent {
    return notSent(waitedMs, `${this.#underWay()} requests of this process were under way, and others went first`);
  }

  /** Behind all that do not come after it. Bisected: 10 000 may wait, and each that asks again comes before most of them. */
  #placeOf(waiting: Waiting): number {
    let [low, high] = [0, this.waiting.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (isBefore(waiting, this.waiting[middle] as Waiting)) high = middle;
      else low = middle + 1;
    }
    return low;
  }
}

/** The lowest rank leaves first. */
export const RANKS: Readonly<Record<RequestKind, number>> = { renewal: 0, release: 1, take: 2, read: 2 };

function isBefore(one: Waiting, other: Waiting): boolean {
  const [rank, otherRank] = [RANKS[one.kind], RANKS[other.kind]];
  return rank === otherRank ? one.deadline < other.deadline : rank < otherRank;
}

/** The request was never sent: no slot was free, or too little time was left. */
export class NotSent extends LockStoreError {}

/** It is sure that no slot would have been free in time. */
export class TooLate extends NotSent {
  /** @param ahead how many requests leave before it. @param ms within how long it needed a slot. */
  constructor(ahead: number, ms: number) {
    const message = `Not sent: ${ahead} requests of this process wait to be sent first, which takes more than ${Math.round(ms)} ms`;
    super(message, { transient: true, answered: false });
  }
}

/** The error of a request that has waited for `waitedMs` and was not sent. */
export function notSent(waitedMs: number, why = "too little time was left for an answer"): NotSent {
  return new NotSent(`Not sent within ${Math.round(waitedMs)} ms: ${why}`, { transient: true, answered: false });
}
