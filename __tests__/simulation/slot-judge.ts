import type { RequestKind, ScheduledRequest } from "../../lib/session/backlog.js";
import type { Scheduler } from "../../lib/session/requests.js";

/** Of so many requests that leave one after the other, each kind that waits has at least one, however late its deadline. */
const SHARED_AMONG = 8;

const KINDS: readonly RequestKind[] = ["renewal", "release", "take", "read"];

/** What a judge of slots has to tell. */
export interface SlotEvents {
  count(what: string): void;
  /** A request has left before one that should have. */
  unjust(detail: string): void;
}

/**
 * Gives a process few slots for its requests, as throttling does, and watches in which order they leave: none before a
 * renewal, but for the least share of its kind.
 */
export function watchSlots(scheduler: Scheduler, slots: number, { count, unjust }: SlotEvents): void {
  const { run } = scheduler;
  const waiting = new Set<ScheduledRequest>();
  /** By kind, how many others have left since one of it did, while one of it waited. */
  const passedOver: Record<RequestKind, number> = { renewal: 0, release: 0, take: 0, read: 0 };
  const isWaiting = (kind: RequestKind): boolean => [...waiting].some((other) => other.kind === kind);
  const leaves = (request: ScheduledRequest): void => {
    const { kind, deadline } = request;
    if (!waiting.delete(request)) return;
    const isOwed = passedOver[kind] > SHARED_AMONG - KINDS.length;
    const before = [...waiting].find((it) => it.kind === "renewal" && !it.enough?.aborted);
    if (kind !== "renewal" && before !== undefined && !isOwed) {
      unjust(`a ${kind} with ${deadline - before.deadline} ms more has left before a renewal`);
    }
    for (const other of KINDS) passedOver[other] = other !== kind && isWaiting(other) ? passedOver[other] + 1 : 0;
  };
  Object.defineProperty(scheduler, "width", {
    get: () => Math.min(slots, Reflect.get(Object.getPrototypeOf(scheduler), "width", scheduler) as number),
  });
  scheduler.run = async (request, send) => {
    if (!isWaiting(request.kind)) passedOver[request.kind] = 0;
    waiting.add(request);
    let isQueued = false;
    try {
      const answer = run.call(scheduler, request, () => {
        if (isQueued) count(`requests that waited for a slot: ${request.kind}`);
        leaves(request);
        return send();
      });
      isQueued = true;
      return (await answer) as Awaited<ReturnType<typeof send>>;
    } finally {
      waiting.delete(request);
    }
  };
}
