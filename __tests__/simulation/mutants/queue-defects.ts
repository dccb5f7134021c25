import type { Defect } from "./defects.js";

const FAIR = "lib/queues/fair-queue.js";
const LINE = "lib/queues/local-line.js";
const FAIR_LINE = "lib/queues/fair-line.js";
const PLACE = "lib/queues/place.js";
const PLACES = "lib/queues/own-places.js";
const VIEW = "lib/queues/queue-view.js";

/** Defects of the fair queue. What each breaks is a sentence of docs/fair-queue.md. */
export const QUEUE_DEFECTS: readonly Defect[] = [
  {
    name: "whoever is in front of the queue enters without the put",
    patches: [
      {
        file: "lib/taking/row-take.js",
        find: /\bsend\(signal\) \{/g,
        replace:
          "$& const { at, settings } = this.#target;\n" +
          'if (settings.fair && at.sort === "lock" && this.write) return Promise.resolve({ kind: "applied" });',
      },
    ],
  },
  {
    name: "dead waiters are never skipped",
    patches: [{ file: VIEW, find: /isDead\(this\.#session, place, page\)/g, replace: "false" }],
  },
  {
    name: "a waiter is judged by what is known when the reply comes",
    patches: [
      {
        file: "lib/taking/rows.js",
        find: /const known = (knownNow\(.*\));\s+return \{ \.\.\.\(await session\.store\.query\(query, signal\)\), \.\.\.known \};/g,
        replace:
          "const sentAt = session.clock.atMost(); const page = await session.store.query(query, signal);\n" +
          "return { ...page, ...$1, sentAt };",
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
    patches: [{ file: FAIR, find: /if \(admission\.othersWait\) \{/g, replace: "if (false) {" }],
  },
  {
    name: "a place that nobody shares is kept",
    patches: [{ file: PLACES, find: /this\.#standing\[0\]\.last < first/g, replace: "false" }],
  },
  {
    name: "a place serves those who asked after its draw",
    patches: [{ file: FAIR_LINE, find: /upTo = own\.last;/g, replace: "upTo = asked;" }],
  },
  {
    name: "a place serves all who have asked by the time that its row is there",
    patches: [
      {
        file: PLACE,
        find: /new Place\(session, result\.granted, ticket, last\)/g,
        replace: "new Place(session, result.granted, ticket, sharing().last)",
      },
    ],
  },
  {
    name: "the lease goes on to an own place behind another host's",
    patches: [{ file: FAIR_LINE, find: /return \{ upTo, othersWait: true \};/g, replace: "continue;" }],
  },
  {
    name: "a look serves those who ask while it is under way",
    patches: [{ file: FAIR_LINE, find: /isWhole \? asked : upTo/g, replace: "isWhole ? this.lastNumber : upTo" }],
  },
  {
    name: "the lease goes on without a look",
    patches: [
      {
        file: FAIR,
        find: /await this\.#lookAgain\(line, own\);\s+return line\.admitsFirst;/g,
        replace: "return true;",
      },
      { file: FAIR_LINE, find: /get admitsFirst\(\) \{/g, replace: "$& return true;" },
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
    patches: [{ file: VIEW, find: /isWhole: false/g, replace: "isWhole: true" }],
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
      { file: LINE, find: /this\.#waiters\.shift\(\)/g, replace: "this.#waiters.pop()" },
      { file: LINE, find: /this\.#leader \?\? this\.#waiters\[0\]/g, replace: "this.#leader ?? this.#waiters.at(-1)" },
    ],
  },
];
