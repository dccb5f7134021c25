import type { Defect } from "./defects.js";

const ACQUISITION = "lib/taking/acquisition.js";
const BACKLOG = "lib/session/backlog.js";
const ROW_TAKE = "lib/taking/row-take.js";
const LEASE = "lib/holding/lease.js";
const RENEWALS = "lib/holding/renewals.js";
const TURNS = "lib/queues/turns.js";
const CONTENTION = "lib/session/contention.js";
const WATCH = "lib/taking/watch.js";

/** Defects of what the sections of one process share. What each breaks is said in lib/queues/ and lib/session/. */
export const HAND_OVER_DEFECTS: readonly Defect[] = [
  {
    name: "a lease is passed on although others wait for ever",
    patches: [{ file: CONTENTION, find: /isTurnOver\(at, handOverMs\) \{/g, replace: "$& return false;" }],
  },
  {
    name: "a lease is passed on without a look whether others wait",
    patches: [{ file: TURNS, find: / >= settings\.handOverMs/g, replace: " >= Infinity" }],
  },
  {
    name: "a process does not stand back for those who wait",
    patches: [{ file: CONTENTION, find: /STAND_BACK_POLLS = 2/g, replace: "STAND_BACK_POLLS = 0" }],
  },
  {
    name: "a take forgets that others wait",
    patches: [{ file: ROW_TAKE, find: /contention\?\.markOf\(at\)/g, replace: "undefined" }],
  },
  {
    name: "nobody looks for marks where a lease cannot be passed on",
    patches: [
      {
        file: ACQUISITION,
        find: /this\.#session\.contended\(\)\.sees\(outcome\.replaced\)/g,
        replace: "void 0",
        matches: 2,
      },
    ],
  },
  {
    name: "a waiter marks before it looks",
    patches: [
      { file: WATCH, find: /if \(row !== first\)/g, replace: "" },
      // Only a waiter that has been kept out before would mark what a refusal shows: with this, each does.
      { file: WATCH, find: /now - blocked\.since < settings\.handOverMs \|\| /g, replace: "" },
    ],
  },
  {
    name: "a passed lease does not change the uuid after a guard",
    patches: [{ file: RENEWALS, find: /this\.#usage === "guarded" \|\| /g, replace: "" }],
  },
  {
    name: "the loss of a passed lease is told to the section before",
    patches: [{ file: LEASE, find: /\bbegin\(section\) \{/g, replace: "$& section = this.firstSection ??= section;" }],
  },
  {
    name: "a renewal leaves before one whose lease ends first",
    patches: [{ file: BACKLOG, find: /\? one\.deadline < other\.deadline :/g, replace: "? false :" }],
  },
];
