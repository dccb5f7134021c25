import type { Defect } from "./defects.js";

const FAIR = "lib/queues/fair-queue.js";
const PLACE = "lib/queues/place.js";
const VIEW = "lib/queues/queue-view.js";

/** Defects of the fair queue. What each breaks is a sentence of docs/fair-queue.md. */
export const QUEUE_DEFECTS: readonly Defect[] = [
  {
    name: "whoever is in front of the queue enters without the put",
    patches: [
      {
        file: FAIR,
        find: /^/g,
        replace:
          'import { Acquisition as Granted } from "../taking/acquisition.js";\n' +
          'import { stamp as stampNow } from "../protocol/lease-time.js";\n',
      },
      {
        file: FAIR,
        find: /await this\.#claim\(\{ target, data, wait \}, until\)/g,
        replace:
          "(() => { const { clock, uuid } = this.#session; const { ttlMs } = target.settings;\n" +
          "const take = { uuid: uuid(), expires: stampNow(clock.wall(), ttlMs), ttlMs, acquired: 0, knowledge: {} };\n" +
          'const sent = { take, sentAt: clock.atMost(), remembers: "nothing" };\n' +
          'return { kind: "granted", granted: new Granted(this.#session, target, sent) }; })()',
      },
    ],
  },
  {
    name: "dead waiters are never skipped",
    patches: [{ file: VIEW, find: /#isDead\(waiter, \{[^}]*\}\) \{/g, replace: "$& return false;" }],
  },
  {
    name: "a waiter is judged by what is known when the reply comes",
    patches: [
      {
        file: VIEW,
        find: /const known = \{ (.*) \};\s+return \{ \.\.\.\(await store\.query\(query, signal\)\), \.\.\.known \};/g,
        replace:
          "const sent = clock.atMost(); const page = await store.query(query, signal); return { ...page, $1, sentAt: sent };",
      },
    ],
  },
  {
    name: "a lost place is not noticed",
    patches: [{ file: PLACE, find: /get lost\(\) \{/g, replace: "$& return undefined;" }],
  },
  {
    name: "nobody looks once more before he enters",
    patches: [{ file: FAIR, find: /if \(ahead !== undefined\)\s+return undefined;/g, replace: "" }],
  },
  {
    name: "places are in the order of their rows",
    patches: [
      { file: PLACE, find: /this\.ticket = ticket;/g, replace: "$& this.acquired = lease.acquired;" },
      {
        file: VIEW,
        find: /this\.#firstAlive\((others|look\.rows), look\);/g,
        replace: "this.#firstAlive($1.filter((row) => row.acquired < own.acquired), look);",
        matches: 2,
      },
    ],
  },
  {
    name: "a claim leaves long after its look",
    patches: [{ file: FAIR, find: /LOOK_LASTS_MS = 3_000/g, replace: "LOOK_LASTS_MS = 60_000" }],
  },
  {
    name: "a newcomer does not look at the queue",
    patches: [{ file: FAIR, find: /if \(hasWaiters\)/g, replace: "if (false)" }],
  },
  {
    name: "a wait that ends leaves its place",
    patches: [{ file: FAIR, find: /this\.#session\.detach\(found\.leave\(\)\);/g, replace: "" }],
  },
];
