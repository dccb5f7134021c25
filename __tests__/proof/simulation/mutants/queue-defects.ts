import type { Defects } from "./defect.js";

/** Defects of the fair queue. What each breaks is a sentence of docs/fair-queue.md. */
export const QUEUE_DEFECTS: Defects = {
  "whoever is in front of the queue enters without the put": {
    "taking/row-take.ts": {
      "send(signal: AbortSignal): Promise<WriteOutcome> {":
        'send(signal: AbortSignal): Promise<WriteOutcome> { const { at, settings } = this.#target; if (settings.fair && at.sort === "lock" && this.write) return Promise.resolve({ kind: "applied", replaced: undefined, drawn: undefined });',
    },
  },
  "dead waiters are never skipped": { "queues/queue-view.ts": { "isDead(looker, place, page)": "false" } },
  "a waiter is judged by what is known when the reply comes": {
    "taking/rows.ts": {
      "const known = knownNow(session, takeover); return { ...(await session.store.query(query, signal)), ...known };":
        "const sentAt = session.clock.atMost(); const page = await session.store.query(query, signal); return { ...page, ...knownNow(session, takeover), sentAt };",
    },
    test: "behaviour/fair/queue",
  },
  "a lost place is not noticed": {
    "queues/place.ts": {
      "get lost(): LockLostError | undefined {": "get lost(): LockLostError | undefined { return undefined;",
    },
  },
  "nobody looks once more before he enters": {
    "queues/fair-queue.ts": { "if (!look.isConsistent) {": "if (false) {" },
  },
  "a claim leaves long after its look": {
    "queues/fair-queue.ts": { "LOOK_LASTS_MS = 3_000": "LOOK_LASTS_MS = 60_000" },
  },
  "a newcomer does not look at the queue": {
    "queues/fair-queue.ts": { "if (admission.othersWait) {": "if (Boolean(0)) {" },
  },
  "a place that nobody shares is kept": { "queues/own-places.ts": { "this.#standing[0].last < first": "false" } },
  "a place serves those who asked after its draw": { "queues/fair-line.ts": { "upTo = own.last;": "upTo = asked;" } },
  "a place serves all who have asked by the time that its row is there": {
    "queues/place.ts": {
      "new Place(session, result.granted, ticket, last)": "new Place(session, result.granted, ticket, sharing().last)",
    },
    test: "behaviour/fair/shared-places",
  },
  "the lease goes on to an own place behind another host's": {
    "queues/fair-line.ts": { "return { upTo, othersWait: true };": "continue;" },
  },
  "a look serves those who ask while it is under way": {
    "queues/fair-line.ts": { "isWhole ? asked : upTo": "isWhole ? this.lastNumber : upTo" },
    test: "behaviour/fair/shared-places",
  },
  "the lease goes on without a look": {
    "queues/fair-queue.ts": { "await this.#lookAgain(line, own); return line.admitsFirst;": "return true;" },
    "queues/fair-line.ts": { "get admitsFirst(): boolean {": "get admitsFirst(): boolean { return true;" },
  },
  "the lease goes on after a look that may be stale": {
    "queues/fair-queue.ts": {
      "look({ ask, sightings }, { isConsistent: true }": "look({ ask, sightings }, { isConsistent: false }",
    },
    test: "behaviour/fair/shared-places",
  },
  "a page of the queue counts as the whole of it": {
    "queues/queue-view.ts": { "isWhole: false": "isWhole: true" },
    test: "behaviour/fair/shared-places",
  },
  "a claim relies on a place that is not there": {
    "queues/fair-queue.ts": { "if (look.isConsistent && !look.places.some": "if (false && !look.places.some" },
    test: "behaviour/fair/queue",
  },
  "the callers of a process are served in another order": {
    "queues/line.ts": { "this.waiters.find(": "this.waiters.findLast(" },
    "queues/sections.ts": {
      "const [first] = line.waiters;": "const first = line.waiters.at(-1);",
      "{ leases, waiters: [first] }: Line, own: OwnLease): boolean {":
        "{ leases, waiters }: Line, own: OwnLease): boolean { const first = waiters.at(-1);",
    },
  },
};
