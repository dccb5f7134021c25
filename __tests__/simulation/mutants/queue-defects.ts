import { fair, fairLine, line, place, places, rows, rowTake, view } from "./files.js";
import type { Defects, Patch } from "./patch.js";

/** A row is looked at, and renewed before the reply comes. */
export const JUDGED_BY_REPLY: Patch = rows(
  /const known = (knownNow\(.*\));\s+return \{ \.\.\.\(await session\.store\.query\(query, signal\)\), \.\.\.known \};/g,
  "const sentAt = session.clock.atMost(); const page = await session.store.query(query, signal);\n" +
    "return { ...page, ...$1, sentAt };",
);

/** Defects of the fair queue. What each breaks is a sentence of docs/fair-queue.md. */
export const QUEUE_DEFECTS: Defects = {
  "whoever is in front of the queue enters without the put": [
    rowTake(
      /\bsend\(signal\) \{/g,
      "$& const { at, settings } = this.#target;\n" +
        'if (settings.fair && at.sort === "lock" && this.write) return Promise.resolve({ kind: "applied" });',
    ),
  ],
  "dead waiters are never skipped": [view(/isDead\(looker, place, page\)/g, "false")],
  "a waiter is judged by what is known when the reply comes": [JUDGED_BY_REPLY],
  "a lost place is not noticed": [place(/get lost\(\) \{/g, "$& return undefined;")],
  "nobody looks once more before he enters": [fair(/if \(!look\.isConsistent\) \{/g, "if (false) {")],
  "a claim leaves long after its look": [fair(/LOOK_LASTS_MS = 3_000/g, "LOOK_LASTS_MS = 60_000")],
  "a newcomer does not look at the queue": [fair(/if \(admission\.othersWait\) \{/g, "if (false) {")],
  "a place that nobody shares is kept": [places(/this\.#standing\[0\]\.last < first/g, "false")],
  "a place serves those who asked after its draw": [fairLine(/upTo = own\.last;/g, "upTo = asked;")],
  "a place serves all who have asked by the time that its row is there": [
    place(
      /new Place\(session, result\.granted, ticket, last\)/g,
      "new Place(session, result.granted, ticket, sharing().last)",
    ),
  ],
  "the lease goes on to an own place behind another host's": [
    fairLine(/return \{ upTo, othersWait: true \};/g, "continue;"),
  ],
  "a look serves those who ask while it is under way": [
    fairLine(/isWhole \? asked : upTo/g, "isWhole ? this.lastNumber : upTo"),
  ],
  "the lease goes on without a look": [
    fair(/await this\.#lookAgain\(line, own\);\s+return line\.admitsFirst;/g, "return true;"),
    fairLine(/get admitsFirst\(\) \{/g, "$& return true;"),
  ],
  "the lease goes on after a look that may be stale": [
    fair(/look\(\{ ask, sightings \}, \{ isConsistent: true \}/g, "look({ ask, sightings }, { isConsistent: false }"),
  ],
  "a page of the queue counts as the whole of it": [view(/isWhole: false/g, "isWhole: true")],
  "a claim relies on a place that is not there": [
    fair(/if \(look\.isConsistent && !look\.places\.some/g, "if (false && !look.places.some"),
  ],
  "the callers of a process are served in another order": [
    line(/this\.#waiters\.shift\(\)/g, "this.#waiters.pop()"),
    line(/this\.#leader \?\? this\.#waiters\[0\]/g, "this.#leader ?? this.#waiters.at(-1)"),
  ],
};
