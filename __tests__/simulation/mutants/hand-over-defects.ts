import { acquisition, backlog, contention, lease, mark, renewals, rowTake, turns, watch } from "./files.js";
import type { Defects } from "./patch.js";

/** Defects of what the sections of one process share. What each breaks is said in lib/queues/ and lib/session/. */
export const HAND_OVER_DEFECTS: Defects = {
  "a lease is passed on although others wait for ever": [
    contention(/isTurnOver\(at, handOverMs\) \{/g, "$& return false;"),
  ],
  "a lease is passed on without a look whether others wait": [turns(/ >= settings\.handOverMs/g, " >= Infinity")],
  "a process does not stand back for those who wait": [
    contention(/const until = now \+ \(needMs \?\? STAND_BACK_POLLS \* longestPollMs\);/g, "const until = now;"),
  ],
  "a mark does not say how long its writer needs": [
    mark(/\(needInMark\(needMs\) \/ NEED_STEP_MS\) \* STEP_FRACTION/g, "0"),
  ],
  "a process stands back for two of its own longest polls, whatever a waiter needs": [
    contention(/needMs \?\? STAND_BACK_POLLS/g, "STAND_BACK_POLLS"),
  ],
  "a smaller need is written over a larger one": [contention(/Math\.max\(known\.needMs \?\? 0, needMs\)/g, "needMs")],
  "a waiter that needs longer counts on the mark of another": [
    watch(/\(markInNumber\(row\.wanted\)\.needMs \?\? UNSAID_NEED_MS\) >= /g, "Infinity >= "),
  ],
  "a take forgets that others wait": [rowTake(/contention\?\.markOf\(at\)/g, "undefined")],
  "nobody looks for marks where a lease cannot be passed on": [
    acquisition(/this\.#session\.contended\(\)\.sees\(outcome\.replaced\)/g, "void 0", 2),
  ],
  "a waiter marks before it looks": [
    watch(/if \(row !== first\)/g, ""),
    // Only a waiter that has been kept out before would mark what a refusal shows: with this, each does.
    watch(/now - blocked\.since < settings\.handOverMs \|\| /g, ""),
  ],
  "a passed lease does not change the uuid after a guard": [renewals(/this\.#usage === "guarded" \|\| /g, "")],
  "the loss of a passed lease is told to the section before": [
    lease(/\bbegin\(section\) \{/g, "$& section = this.firstSection ??= section;"),
  ],
  "a renewal leaves before one whose lease ends first": [backlog(/\? one\.deadline < other\.deadline :/g, "? false :")],
};
