/** A change of one compiled file: every occurrence of `find`, of which there must be as many as stated. */
export interface Patch {
  readonly file: string;
  readonly find: RegExp;
  readonly replace: string;
  /** Default 1. */
  readonly matches?: number;
}

/** A defect that somebody might build in, and that the simulation has to find. */
export interface Defect {
  readonly name: string;
  readonly patches: readonly Patch[];
}

const ACQUISITION = "lib/taking/acquisition.js";
const CLAIM = "lib/taking/claim.js";
const RENEWALS = "lib/holding/renewals.js";
const ROW_TAKE = "lib/taking/row-take.js";
const CLOCK = "lib/time/clock.js";
const LEASE = "lib/holding/lease.js";
const ROWS = "lib/taking/rows.js";
const SIGHTINGS = "lib/session/sightings.js";
const TABLE_CLOCK = "lib/time/table-clock.js";
const WAIT = "lib/taking/wait.js";
const WAS_APPLIED = "lib/protocol/was-applied.js";
const WATCH = "lib/taking/watch.js";

/** Defects of taking and holding. What each breaks is a sentence of docs/protocol.md. */
export const DEFECTS: readonly Defect[] = [
  {
    name: "a lease does not run while its host is suspended",
    patches: [{ file: CLOCK, find: /monotonic \+ suspended \+ missed/g, replace: "monotonic" }],
  },
  {
    name: "nobody checks the deadline",
    patches: [{ file: LEASE, find: /this\.#session\.clock\.atMost\(\) >= this\.deadline/g, replace: "false" }],
  },
  {
    name: "a watcher counts on the lease's stopwatch",
    patches: [
      { file: SIGHTINGS, find: /#clock\.atLeast\(\)/g, replace: "#clock.atMost()", matches: 3 },
      { file: ROWS, find: /asOf: clock\.atLeast\(\)/g, replace: "asOf: clock.atMost()" },
    ],
  },
  {
    name: "a watcher waits for its own ttl and not the row's",
    patches: [
      {
        file: WATCH,
        find: /sightings\.note\(at, next\)/g,
        replace: "sightings.note(at, next && { ...next, ttlMs: target.settings.ttlMs })",
      },
      {
        file: CLAIM,
        find: /sightings\.note\(target\.at, row\)/g,
        replace: "sightings.note(target.at, { ...row, ttlMs: target.settings.ttlMs })",
      },
    ],
  },
  {
    name: "the clock is a point",
    patches: [
      {
        file: TABLE_CLOCK,
        find: /return \{ earliest, latest \};/g,
        replace: "const point = (earliest + latest) / 2; return { earliest: point, latest: point };",
      },
    ],
  },
  {
    name: "a write is sent on wide bounds",
    patches: [
      {
        file: TABLE_CLOCK,
        find: /function isCurrent\(\) \{/g,
        replace: "$& return known.bounds(read()) !== undefined || fallenBack;",
      },
    ],
  },
  {
    name: "the earliest time follows a single reply that contradicts it",
    patches: [
      { file: TABLE_CLOCK, find: /this\.#all = withOneMore\(heard, (\{.*\})\);/g, replace: "this.#all = [$1];" },
    ],
  },
  {
    name: "a second reply confirms a time that contradicts another",
    patches: [{ file: TABLE_CLOCK, find: /CONFIRM_MS = 60_000/g, replace: "CONFIRM_MS = 0" }],
  },
  {
    name: "an own renewal on the row is not recognised",
    patches: [
      { file: WAS_APPLIED, find: /case "renew":/g, replace: '$& return "no";' },
      { file: ACQUISITION, find: /if \(!isStillHeldBy\(this\.#uuid, row\)\)/g, replace: "if (true)" },
    ],
  },
  {
    name: "a claim in flight is forgotten when its caller gives up",
    patches: [{ file: CLAIM, find: /if \(isDoubtful \|\| copies\.sent > 1\)/g, replace: "if (false)" }],
  },
  {
    name: "a call counts its own earlier claim as another's",
    patches: [{ file: SIGHTINGS, find: /this\.#abandoned\.has\(uuid\)/g, replace: "false" }],
  },
  {
    name: "one refused copy counts as proof that no other is in flight",
    patches: [{ file: CLAIM, find: /if \(copies\.unanswered > 0 \|\| outcome\.retried\)/g, replace: "if (false)" }],
  },
  {
    name: "a lock is delivered to a caller that has gone",
    patches: [
      { file: "lib/queues/sections.js", find: /\(!wait\.isOver \|\| line\.isAwaited\(call\)\)/g, replace: "true" },
      { file: WAIT, find: /=> (settle\(SERVED, \(\) => resolve\(result\)\));/g, replace: "=> ($1, true);" },
    ],
  },
  {
    name: "a holder does not learn what the row remembers",
    patches: [{ file: ROW_TAKE, find: /memoryOf\((row|replaced)\)/g, replace: '"nothing"', matches: 2 }],
  },
  {
    name: "a passed lease keeps its token",
    patches: [{ file: RENEWALS, find: / \|\| \(this\.#usage === "used" && row\.settings\.fencing\)/g, replace: "" }],
  },
];
