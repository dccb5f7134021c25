import type { Defect } from "./defects.js";

const BACKLOG = "lib/session/backlog.js";
const LEASE = "lib/holding/lease.js";
const SECTIONS = "lib/queues/sections.js";

/** Defects of what the sections of one process share. What each breaks is said in lib/queues/sections.ts and lib/session/. */
export const HAND_OVER_DEFECTS: readonly Defect[] = [
  {
    name: "a lease is passed on although others wait for ever",
    patches: [{ file: SECTIONS, find: /isWanted\(row, clock\.wall\(\)\)/g, replace: "false" }],
  },
  {
    name: "a lease is passed on without a look whether others wait",
    patches: [{ file: SECTIONS, find: / < lease\.settings\.handOverMs/g, replace: " < Infinity" }],
  },
  {
    name: "a process does not stand back for those who wait",
    patches: [{ file: SECTIONS, find: /STAND_BACK_POLLS = 2/g, replace: "STAND_BACK_POLLS = 0" }],
  },
  {
    name: "a passed lease does not change the uuid after a guard",
    patches: [{ file: LEASE, find: /this\.#usage === "guarded" \|\| /g, replace: "" }],
  },
  {
    name: "the loss of a passed lease is told to the section before",
    patches: [{ file: LEASE, find: /\bbegin\(section\) \{/g, replace: "$& section = this.firstSection ??= section;" }],
  },
  {
    name: "a take is sent before a due renewal",
    patches: [{ file: BACKLOG, find: /\|\| compare\(one, other\)/g, replace: "|| one.order - other.order" }],
  },
];
