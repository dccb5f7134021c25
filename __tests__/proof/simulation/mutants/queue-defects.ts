import type { Defects } from "./defect.js";

/** Defects of the fair queue. What each breaks is a sentence of docs/design/queue.md. */
export const QUEUE_DEFECTS: Defects = {
  "whoever is in front of the queue enters without the put": {
    takesOut: ["queue#how-it-works: Only the lock's own row"],
    "taking/row-take.ts": {
      "send(signal: AbortSignal, inTime: () => boolean): Promise<WriteOutcome> {":
        'send(signal: AbortSignal, inTime: () => boolean): Promise<WriteOutcome> { const { at, settings } = this.#target; if (settings.fair && at.sort === "lock" && this.write) return Promise.resolve({ kind: "applied", replaced: undefined, drawn: undefined });',
    },
  },
  "dead waiters are never skipped": {
    takesOut: ["queue#how-it-works: A dead waiter"],
    "queues/queue-view.ts": { "isDead(this.#session, place, page)": "false" },
  },
  "a waiter is judged by what is known when the reply comes": {
    takesOut: ["trap 39", "queue#how-it-works: A dead waiter"],
    "taking/rows.ts": {
      "const known = knownNow(session, takeover); return { ...(await session.store.query(query, signal)), ...known };":
        "const sentAt = session.clock.atMost(); const page = await session.store.query(query, signal); return { ...page, ...knownNow(session, takeover), sentAt };",
    },
    test: "behaviour/fair/queue",
  },
  "a lost place is not noticed": {
    takesOut: ["queue#how-it-works: A process that loses a place"],
    "queues/place.ts": {
      "get lost(): LockLostError | undefined {": "get lost(): LockLostError | undefined { return undefined;",
    },
  },
  "nobody looks once more before he enters": {
    takesOut: ["fair-queue#what-order-means"],
    "queues/fair-queue.ts": { "if (!look.isConsistent) {": "if (false) {" },
  },
  "a claim leaves long after its look": {
    takesOut: ["fair-queue#what-order-means"],
    "queues/fair-queue.ts": { "LOOK_LASTS_MS = 3_000": "LOOK_LASTS_MS = 60_000" },
  },
  "a newcomer does not look at the queue": {
    takesOut: ["queue#how-it-works: Where no other host waits"],
    "queues/fair-queue.ts": { "if (admission.othersWait) {": "if (Boolean(0)) {" },
  },
  "a place that nobody shares is kept": {
    takesOut: ["queue#how-it-works: The callers of one process"],
    "queues/own-places.ts": { "this.#standing[0].last < first": "false" },
  },
  "a place serves those who asked after its draw": {
    takesOut: ["queue#how-it-works: The callers of one process"],
    "queues/fair-line.ts": { "upTo = own.last;": "upTo = asked;" },
    test: "behaviour/fair/shared-places",
  },
  "a place serves all who have asked by the time that its row is there": {
    takesOut: ["queue#how-it-works: The callers of one process"],
    "queues/place.ts": {
      "new Place(session, result.granted, ticket, last)": "new Place(session, result.granted, ticket, sharing().last)",
    },
    test: "behaviour/fair/shared-places",
  },
  "the lease goes on to an own place behind another host's": {
    takesOut: ["queue#how-it-works: Where no other host waits", "fair-queue#what-order-means"],
    "queues/fair-line.ts": { "return { upTo, othersWait: true };": "continue;" },
  },
  "a look serves those who ask while it is under way": {
    takesOut: ["queue#how-it-works: Where no other host waits"],
    "queues/fair-line.ts": { "isWhole ? asked : upTo": "isWhole ? this.lastNumber : upTo" },
    test: "behaviour/fair/shared-places",
  },
  "the lease goes on without a look": {
    takesOut: ["queue#how-it-works: Where no other host waits", "fair-queue#what-order-means"],
    "queues/fair-queue.ts": { "await this.#lookAgain(line, own, until); return line.admitsFirst;": "return true;" },
    "queues/fair-line.ts": { "get admitsFirst(): boolean {": "get admitsFirst(): boolean { return true;" },
    test: "behaviour/fair/shared-places",
  },
  "the lease goes on after a look that may be stale": {
    takesOut: ["queue#how-it-works: Where no other host waits"],
    "queues/fair-queue.ts": {
      "look(ask, own.resource, { isConsistent: true }": "look(ask, own.resource, { isConsistent: false }",
    },
    test: "behaviour/fair/shared-places",
  },
  "a page of the queue counts as the whole of it": {
    takesOut: ["queue#how-it-works: Where no other host waits"],
    "queues/queue-view.ts": { "isWhole: false": "isWhole: true" },
    test: "behaviour/fair/shared-places",
  },
  "a claim relies on a place that is not there": {
    takesOut: ["queue#how-it-works: A process that loses a place"],
    "queues/fair-queue.ts": { "if (look.isConsistent && !look.places.some": "if (false && !look.places.some" },
    test: "behaviour/fair/queue",
  },
  "the callers of a process are served in another order": {
    takesOut: ["locks#waiting: Callers in one process queue", "fair-queue#what-order-means"],
    "queues/line.ts": { "this.waiters.find(": "this.waiters.findLast(" },
    "queues/sections.ts": {
      "const [first] = line.waiters;": "const first = line.waiters.at(-1);",
      "{ leases, waiters: [first] }: Line, own: Tenure): boolean {":
        "{ leases, waiters }: Line, own: Tenure): boolean { const first = waiters.at(-1);",
    },
  },
  "a bid goes on when its call has ended": {
    takesOut: ["protocol#waiting 6"],
    "taking/bid.ts": { "this.#withdrawal.abort(reason);": "void [reason, this.#withdrawal];" },
    test: "queues/line",
  },
  "the next bid asks what the one before it has just asked": {
    takesOut: ["protocol#waiting 6"],
    "queues/line.ts": { "retargeted(bid.view.inTheWay, resource)": "retargeted(undefined, resource)" },
    test: "behaviour/semaphores/hand-over",
  },
  "calls that end together begin bids for one another": {
    takesOut: ["protocol#waiting 6"],
    "queues/sections.ts": { "await undefined; this.#pump(line);": "this.#pump(line);" },
    test: "queues/gone-callers",
  },
  "each lease that passes puts the next look off": {
    takesOut: ["protocol#waiting 6", "protocol#semaphores: A lease that a section leaves"],
    "taking/polling.ts": { "this.#isPausing ? Math.min(this.#lookAt, whole) : whole": "whole" },
    test: "behaviour/semaphores/hand-over",
  },
  "a place is drawn in the context of the caller that needs it first": {
    takesOut: ["protocol#waiting 6"],
    "queues/fair-line.ts": { "this.#session .inOwnContext(() => this.#draw()) .finally": "this.#draw().finally" },
    test: "queues/bids",
  },
  "a call that needs several permits marks those of its own process": {
    takesOut: ["protocol#semaphores: A waiter marks"],
    "kinds/semaphore.ts": { "!isOwn && !isMarkedFor": "(isOwn || true) && !isMarkedFor" },
    test: "behaviour/semaphores/in-the-way",
  },
  "a host that has died is accused of another number of permits": {
    takesOut: ["protocol#semaphores: A waiter marks"],
    "kinds/permits.ts": {
      "const [other] = heldAmong(session, resource, others);": "const [other] = others;",
    },
    test: "behaviour/semaphores/in-the-way",
  },
  "a fair lock claims a tick by a look from before it began": {
    takesOut: ["queue#how-it-works: No claim relies on an old look"],
    "queues/fair-queue.ts": { "look.sentAt > LOOK_LASTS_MS / 2": "look.sentAt < 0" },
    test: "behaviour/cron/named-ticks",
  },
  "a watcher lives on after a lease passed to its waiter": {
    takesOut: ["protocol#semaphores: A lease that a section leaves"],
    "queues/line.ts": {
      "bid.withdraw(failure === undefined ? NOBODY_WAITS : failure.reason);":
        "if (failure !== undefined) bid.withdraw(failure.reason);",
    },
    test: "proof/work/work.full",
  },
};
