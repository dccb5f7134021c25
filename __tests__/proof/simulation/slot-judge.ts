import type { RequestKind, ScheduledRequest } from "../../../lib/session/backlog.js";
import type { Scheduler } from "../../../lib/session/requests.js";

/** What a judge of slots has to tell. */
export interface SlotEvents {
  count(what: string): void;
  /** A request has left before one that should have. */
  unjust(detail: string): void;
  /** The stopwatch by which requests say how long they wait. */
  atMost(): number;
  /** A request is asked for. @returns what sends it when it has its slot. */
  asks(): (send: () => Promise<unknown>) => Promise<unknown>;
}

/** A request that may wait for a slot, with its deadline as it was when it asked for one. */
interface Waiting {
  readonly kind: RequestKind;
  readonly deadline: number;
  readonly endSignal: AbortSignal | undefined;
  /** Until when it waits at present. */
  readonly waitsUntil: () => number;
}

function asWaiting({ kind, until, slotUntil = until, deadline = until(), endSignal }: ScheduledRequest): Waiting {
  return { kind, deadline, endSignal, waitsUntil: () => Math.min(until(), slotUntil()) };
}

/**
 * Gives a process few slots for its requests, as throttling does, and watches in which order they leave: the
 * renewals first whose leases end first, and no take before a release.
 * @returns the requests that wait for a slot.
 */
export function watchSlots(scheduler: Scheduler, slots: number, events: SlotEvents): ReadonlySet<unknown> {
  const { count, unjust } = events;
  const { run } = scheduler;
  const waiting = new Set<Waiting>();
  const mustGoBefore = (request: Waiting): Waiting | undefined =>
    [...waiting].find(({ kind, deadline, endSignal, waitsUntil }) => {
      if (endSignal?.aborted || waitsUntil() <= events.atMost()) return false;
      return request.kind === "renewal"
        ? kind === "renewal" && deadline < request.deadline
        : kind === "release" && request.kind !== "release";
    });
  const leaves = (request: Waiting): void => {
    waiting.delete(request);
    const before = mustGoBefore(request);
    if (before !== undefined) unjust(`a ${request.kind} has left before a ${before.kind} that waited`);
  };
  // So many for renewals, of which ten times the width are under way, and one at a time for all else.
  Object.defineProperty(scheduler, "width", {
    get: () => Math.min(slots / 10, Reflect.get(Object.getPrototypeOf(scheduler), "width", scheduler) as number),
  });
  scheduler.run = <T>(request: ScheduledRequest, send: () => Promise<T>): Promise<T> => {
    const asked = asWaiting(request);
    const sendAsAsked = events.asks();
    let [hasLeft, isQueued] = [false, false];
    const answer = run.call(scheduler, request, () => {
      hasLeft = true;
      if (isQueued) count(`requests that waited for a slot: ${request.kind}`);
      leaves(asked);
      return sendAsAsked(send);
    }) as Promise<T>;
    // Most leave at once.
    if (hasLeft) return answer;
    isQueued = true;
    waiting.add(asked);
    return answer.finally(() => waiting.delete(asked));
  };
  return waiting;
}
