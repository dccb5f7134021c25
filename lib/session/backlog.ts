import { LockStoreError } from "../errors.js";
import type { Clock } from "../time/clock.js";
import { onAbort } from "./abort-listening.js";

/** What a request does, for the least share that each kind has. */
export type RequestKind = "renewal" | "release" | "take" | "read";

const KINDS: readonly RequestKind[] = ["renewal", "release", "take", "read"];

/** Of so many requests in a row that leave the backlog, each kind that waits has at least one. */
const SHARED_AMONG = 8;

/** As many while a renewal is urgent, and a take would add to what cannot be renewed in time. */
const TAKES_SHARED_AMONG = 256;

/**
 * When so many others have left the backlog since a kind's last one, its next one has priority. Several kinds can come to
 * that at once, and the last of them must still be among {@link SHARED_AMONG}.
 */
const OVERDUE_AFTER = SHARED_AMONG - KINDS.length + 1;

/** A request that waits for a slot. Moments are on the `atMost` stopwatch. */
export interface ScheduledRequest {
  readonly kind: RequestKind;
  /** Until when an answer is of use: the earliest goes first. Read when the request is queued. */
  readonly deadline: number;
  /** When the wait for a slot ends. Looked at when the request is queued, and again when that moment comes. Default: never. */
  readonly until?: (() => number) | undefined;
  /** Ends the wait for a slot. A request that has left is not touched. */
  readonly enough?: AbortSignal | undefined;
}

interface Waiting {
  readonly kind: RequestKind;
  readonly deadline: number;
  /** Decides between equal deadlines: the lower one arrived first. */
  readonly order: number;
  readonly leave: () => void;
}

/**
 * The requests that wait for a slot, and which of them leaves next: renewals before all others, for what is held is worth
 * more than what is not held yet, and the earliest deadline first among those. Each kind that waits has a least share: no
 * burst of one kind holds up another. That of takes is small while a renewal is urgent: a process that cannot keep what it
 * holds takes no more.
 */
export class Backlog {
  /** How many wait. */
  size = 0;
  readonly #clock: Clock;
  /** The earliest deadline first. */
  readonly #queues: Readonly<Record<RequestKind, Waiting[]>> = { renewal: [], release: [], take: [], read: [] };
  /** How many have left since the last one of this kind did, while one of this kind waited. */
  readonly #passedOver: Record<RequestKind, number> = { renewal: 0, release: 0, take: 0, read: 0 };
  #order = 0;
  #cancelAlarm: (() => void) | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** @param underWay the requests that have slots, for the message of one that gets none. */
  add<T>(request: ScheduledRequest, send: () => Promise<T>, underWay: { readonly size: number }): Promise<T> {
    const { kind, deadline, enough, until } = request;
    const queuedAt = this.#clock.atLeast();
    return new Promise<T>((resolve, reject) => {
      let cancelUntil: (() => void) | undefined;
      const stopListening = enough && onAbort(enough, () => giveUp(enough.reason));
      const stopWaiting = (): void => {
        this.#remove(waiting);
        cancelUntil?.();
        stopListening?.();
      };
      const giveUp = (reason: unknown): void => {
        stopWaiting();
        reject(reason);
      };
      const giveUpAt = (end: () => number): void => {
        const leftMs = end() - this.#clock.atMost();
        const why = `${underWay.size} requests of this process were under way, and others went first`;
        if (leftMs <= 0) giveUp(notSent(this.#clock.atLeast() - queuedAt, why));
        else if (leftMs < Number.POSITIVE_INFINITY) cancelUntil = this.#clock.alarm(leftMs, () => giveUpAt(end));
      };
      const leave = (): void => {
        stopWaiting();
        resolve(send());
      };
      const waiting: Waiting = { kind, deadline, order: this.#order++, leave };
      const queue = this.#queues[kind];
      if (queue.length === 0) this.#passedOver[kind] = 0;
      // Looked for from the end: most come with a later deadline than those that wait.
      queue.splice(queue.findLastIndex((other) => compare(other, waiting) < 0) + 1, 0, waiting);
      this.size += 1;
      if (until !== undefined) giveUpAt(until);
    });
  }

  /**
   * Lets the first renewal leave, or the request with the earliest deadline, or one of a kind that has been passed over
   * for too long.
   *
   * @param urgentMs a renewal with so much time left is urgent.
   * @returns whether one has left.
   */
  leaveNext({ urgentMs, renewalsOnly }: { readonly urgentMs: number; readonly renewalsOnly: boolean }): boolean {
    const [renewal] = this.#queues.renewal;
    const firsts = renewalsOnly
      ? this.#queues.renewal.slice(0, 1)
      : KINDS.flatMap((kind) => this.#queues[kind][0] ?? []);
    const isUrgent = renewal !== undefined && renewal.deadline - this.#clock.atMost() < urgentMs;
    const [next] = firsts.sort(
      (one, other) => this.#overdue(other, isUrgent) - this.#overdue(one, isUrgent) || compare(one, other),
    );
    if (next === undefined) return false;
    for (const kind of KINDS) this.#passedOver[kind] = kind === next.kind ? 0 : this.#passedOver[kind] + 1;
    next.leave();
    return true;
  }

  /** Calls `ring` after so many ms if requests have waited all along. One alarm at a time: it is not moved. */
  alarm(ms: number, ring: () => void): void {
    this.#cancelAlarm ??= this.#clock.alarm(ms, () => {
      this.#cancelAlarm = undefined;
      ring();
    });
  }

  /** By how much a kind has been passed over; 0 while that is not too much. */
  #overdue({ kind }: Waiting, isRenewalUrgent: boolean): number {
    const after = kind === "take" && isRenewalUrgent ? TAKES_SHARED_AMONG : OVERDUE_AFTER;
    return this.#passedOver[kind] < after ? 0 : this.#passedOver[kind];
  }

  #remove(waiting: Waiting): void {
    const queue = this.#queues[waiting.kind];
    queue.splice(queue.indexOf(waiting), 1);
    this.size -= 1;
    if (this.size > 0) return;
    this.#cancelAlarm?.();
    this.#cancelAlarm = undefined;
  }
}

/** Negative where `one` goes first. */
function compare(one: Waiting, other: Waiting): number {
  if (one.kind !== other.kind && (one.kind === "renewal" || other.kind === "renewal"))
    return one.kind === "renewal" ? -1 : 1;
  // Not by subtraction: two that never end differ by no number.
  if (one.deadline !== other.deadline) return one.deadline < other.deadline ? -1 : 1;
  return one.order - other.order;
}

/** The error of a request that has waited for so many ms and was not sent. */
export function notSent(waitedMs: number, why: string): LockStoreError {
  return new LockStoreError(`Not sent within ${Math.round(waitedMs)} ms: ${why}`, { transient: true, answered: false });
}
