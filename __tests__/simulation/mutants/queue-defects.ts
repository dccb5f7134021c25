import type { Defect } from "./defects.js";

const FAIR = "lib/queues/fair-queue.js";
const LINE = "lib/queues/local-line.js";
const PARTY = "lib/queues/party.js";
const PLACE = "lib/queues/place.js";
const PLACES = "lib/queues/own-places.js";
const SECTIONS = "lib/queues/sections.js";
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
    patches: [{ file: VIEW, find: /#isDead\(place, \{[^}]*\}\) \{/g, replace: "$& return false;" }],
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
    patches: [{ file: FAIR, find: /if \(!look\.isConsistent\) \{/g, replace: "if (false) {" }],
  },
  {
    name: "a claim leaves long after its look",
    patches: [{ file: FAIR, find: /LOOK_LASTS_MS = 3_000/g, replace: "LOOK_LASTS_MS = 60_000" }],
  },
  {
    name: "a newcomer does not look at the queue",
    patches: [{ file: FAIR, find: /if \(turn\.othersWait\) \{/g, replace: "if (false) {" }],
  },
  {
    name: "a place that nobody shares is kept",
    patches: [{ file: PLACES, find: /this\.#standing\[0\]\.last < first/g, replace: "false" }],
  },
  {
    name: "a place serves those who asked after its draw",
    patches: [{ file: PARTY, find: /upTo = own\.last;/g, replace: "upTo = asked;" }],
  },
  {
    name: "a place serves all who have asked by the time that its row is there",
    patches: [
      {
        file: PARTY,
        find: /this\.places\.add\(\{ place, last \}\)/g,
        replace: "this.places.add({ place, last: this.line.asked })",
      },
    ],
  },
  {
    name: "the lease goes on to an own place behind another host's",
    patches: [{ file: PARTY, find: /return \{ upTo, othersWait: true \};/g, replace: "continue;" }],
  },
  {
    name: "a look serves those who ask while it is under way",
    patches: [{ file: PARTY, find: /isWhole \? asked : upTo/g, replace: "isWhole ? this.line.asked : upTo" }],
  },
  {
    name: "the lease goes on without a look",
    patches: [
      {
        file: FAIR,
        find: /await this\.#lookAgain\(party, target, lease\);\s+return party\.isTurn;/g,
        replace: "return true;",
      },
      { file: SECTIONS, find: /!this\.#fairQueue\.party\(target\)\.isTurn/g, replace: "false" },
    ],
  },
  {
    name: "the lease goes on after a look that may be stale",
    patches: [
      {
        file: FAIR,
        find: /sendOnce\(this\.#session, asked, request\), \{ isConsistent: true \}/g,
        replace: "sendOnce(this.#session, asked, request), { isConsistent: false }",
      },
    ],
  },
  {
    name: "a page of the queue counts as the whole of it",
    patches: [{ file: VIEW, find: /isWhole: rest === undefined/g, replace: "isWhole: true" }],
  },
  {
    name: "a claim relies on a place that is not there",
    patches: [
      {
        file: FAIR,
        find: /if \(look\.isConsistent && !look\.places\.some/g,
        replace: "if (false && !look.places.some",
      },
    ],
  },
  {
    name: "the callers of a process are served in another order",
    patches: [
      {
        file: LINE,
        find: /for \(const \[waiter, call\] of this\.#waiters\)/g,
        replace: "for (const [waiter, call] of [...this.#waiters].reverse())",
      },
    ],
  },
];
