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

const ACQUIRE = "lib/taking/watch.js";
const CLAIM = "lib/taking/claim.js";
const CLOCK = "lib/time/clock.js";
const HELD_ROW = "lib/holding/held-row.js";
const LEASE = "lib/holding/lease.js";
const OBSERVATIONS = "lib/session/sightings.js";

/** Defects of taking and holding. What each breaks is a sentence of docs/protocol.md. */
export const DEFECTS: readonly Defect[] = [
  {
    name: "a lease does not run while its host is suspended",
    patches: [{ file: CLOCK, find: /monotonic \+ suspended \+ missed/g, replace: "monotonic" }],
  },
  {
    name: "nobody looks at the deadline",
    patches: [{ file: LEASE, find: /this\.#host\.clock\.atMost\(\) >= this\.#deadline/g, replace: "false" }],
  },
  {
    name: "a watcher counts on the lease's stopwatch",
    patches: [{ file: OBSERVATIONS, find: /#clock\.atLeast\(\)/g, replace: "#clock.atMost()", matches: 2 }],
  },
  {
    name: "a watcher waits for its own ttl and not the row's",
    patches: [
      {
        file: ACQUIRE,
        find: /observations\.note\(target\.name, next\)/g,
        replace: "observations.note(target.name, next && { ...next, ttlMs: target.settings.ttlMs })",
      },
      {
        file: CLAIM,
        find: /observations\.note\(target\.name, row\)/g,
        replace: "observations.note(target.name, row && { ...row, ttlMs: target.settings.ttlMs })",
        matches: 2,
      },
    ],
  },
  {
    name: "the clock is a point",
    patches: [
      {
        file: "lib/time/table-clock.js",
        find: /return \{ earliest, latest \};/g,
        replace: "const point = (earliest + latest) / 2; return { earliest: point, latest: point };",
      },
    ],
  },
  {
    name: "an own renewal on the row is not recognised",
    patches: [
      {
        file: HELD_ROW,
        find: /const applied = row\?\.uuid === stamp\.uuid && row\.expires === stamp\.expires;/g,
        replace: "const applied = false;",
      },
      {
        file: HELD_ROW,
        find: /!applied && \(row === undefined \|\| row\.uuid !== this\.#uuid\)/g,
        replace: "!applied",
      },
    ],
  },
  {
    name: "a put in flight is forgotten when its caller gives up",
    patches: [{ file: CLAIM, find: /if \(isTransient\(error\) \|\| attempt\.sent > 1\)/g, replace: "if (false)" }],
  },
  {
    name: "one refused copy counts as proof that no other is on its way",
    patches: [{ file: CLAIM, find: /if \(attempt\.unanswered > 0\)/g, replace: "if (false)" }],
  },
  {
    name: "a lock is delivered to a caller that has gone",
    patches: [
      { file: "lib/queues/sections.js", find: / && !wait\.isOver/g, replace: "" },
      { file: "lib/taking/wait.js", find: /if \(ended\)\s+return false;/g, replace: "" },
    ],
  },
  {
    name: "a passed lease keeps its token",
    patches: [{ file: LEASE, find: /this\.settings\.fencing \|\| this\.#isGuarded/g, replace: "this.#isGuarded" }],
  },
];
