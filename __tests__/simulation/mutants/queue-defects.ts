import type { Defect } from "./defects.js";

const FAIR = "lib/queues/fair-queue.js";
const TICKET = "lib/queues/place.js";
const TICKET_QUEUE = "lib/queues/waiters.js";

/** Defects of the fair queue. What each breaks is a sentence of docs/fair-queue.md. */
export const QUEUE_DEFECTS: readonly Defect[] = [
  {
    name: "whoever is in front of the queue enters without the put",
    patches: [
      {
        file: FAIR,
        find: /return await tryAcquire\(this\.#host, target, data, wait, \{ until \}\);/g,
        replace:
          'return { kind: "granted", uuid: this.#host.uuid(), sentAt: this.#host.clock.atMost(), acquired: 0, guessed: false, ' +
          "expires: Math.ceil(this.#host.clock.wall().latest) + target.settings.ttlMs, kept: false, ticked: false, data };",
      },
    ],
  },
  {
    name: "dead waiters are never skipped",
    patches: [
      { file: TICKET_QUEUE, find: /#isDead\(waiter, \{ earliest, at \}\) \{/g, replace: "#isDead() { return false;" },
    ],
  },
  {
    name: "a lost ticket is not noticed",
    patches: [{ file: TICKET, find: /\n {4}lose\(reason\) \{/g, replace: "\n    lose(reason) { return;" }],
  },
  {
    name: "nobody looks once more before he enters",
    patches: [{ file: FAIR, find: /if \(ahead !== undefined\)\s+return undefined;/g, replace: "" }],
  },
  {
    name: "a newcomer does not look at the queue",
    patches: [{ file: FAIR, find: /if \(first !== undefined\)/g, replace: "if (false)" }],
  },
  {
    name: "a wait that ends leaves its ticket",
    patches: [{ file: FAIR, find: /this\.#host\.detach\(ticket\.leave\(\)\);/g, replace: "ticket.until();" }],
  },
];
