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
const ROW = "lib/protocol/row.js";
const STAMP = "lib/protocol/lease-time.js";
/** What the conditions of the writes are here: lib/dynamodb/conditions.ts keeps the same contract. */
const TABLE = "__tests__/simulation/memory-store.js";

const LEASE_END = /return Math\.min\(clock\.atMost\(\) \+ \(expires - bounds\.latest\), sentAt \+ ttlMs\);/g;

/** The whole list. What each breaks is a sentence of docs/protocol.md. */
export const DEFECTS: readonly Defect[] = [
  {
    name: "a lease is counted from the reply",
    patches: [{ file: STAMP, find: LEASE_END, replace: "return clock.atMost() + ttlMs;" }],
  },
  {
    name: "a stale stamp is trusted for a whole ttl",
    patches: [{ file: STAMP, find: LEASE_END, replace: "return sentAt + ttlMs;" }],
  },
  {
    name: "a stamp that lies too late is trusted for as long as it says",
    patches: [{ file: STAMP, find: LEASE_END, replace: "return clock.atMost() + (expires - bounds.latest);" }],
  },
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
    name: "a row is taken by its uuid, renewed or not",
    patches: [{ file: ROW, find: / && row\.expires === unchanged\.expires/g, replace: "" }],
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
    name: "a contender compares with the latest time it may be",
    patches: [{ file: ROW, find: /Math\.floor\(bounds\.earliest\)/g, replace: "Math.ceil(bounds.latest)" }],
  },
  {
    name: "a release has no condition",
    patches: [
      {
        file: TABLE,
        find: /case "release":\s+if \(row\?\.uuid !== operation\.uuid\)/g,
        replace: 'case "release": if (row === undefined)',
      },
    ],
  },
  {
    name: "a renewal has no condition",
    patches: [
      {
        file: TABLE,
        find: /case "renew":\s+if \(row\?\.uuid !== operation\.uuid \|\| row\.expires >= operation\.expires\)/g,
        replace: 'case "renew": if (row === undefined || row.expires >= operation.expires)',
      },
    ],
  },
  {
    name: "a renewal may move expires back",
    patches: [
      {
        file: TABLE,
        find: /(case "renew":\s+if \(row\?\.uuid !== operation\.uuid) \|\| row\.expires >= operation\.expires\)/g,
        replace: "$1)",
      },
    ],
  },
  {
    name: "a renewal may leave the row as it was",
    patches: [
      { file: STAMP, find: /last \+ 1\)/g, replace: "last)" },
      { file: TABLE, find: /row\.expires >= operation\.expires/g, replace: "row.expires > operation.expires" },
    ],
  },
  {
    name: "a take admits its own uuid",
    patches: [
      {
        file: TABLE,
        find: /row !== undefined && !admits\(/g,
        replace: "row !== undefined && row.uuid !== operation.claim.uuid && !admits(",
      },
    ],
  },
  {
    name: "a stamp is corrected under the same uuid",
    patches: [
      {
        file: HELD_ROW,
        find: /\{ uuid: uuid\(\), expires: stampNow\(clock, ttlMs\)\.expires \}/g,
        replace: "{ uuid: this.#uuid, expires: stampNow(clock, ttlMs).expires }",
      },
    ],
  },
  {
    name: "an own claim on the row is not recognised",
    patches: [
      { file: CLAIM, find: / \|\| outcome\.row\.uuid === claim\.uuid/g, replace: "" },
      { file: CLAIM, find: /if \(attempt\.unanswered > 0\)/g, replace: "if (false)" },
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
    name: "a release that is refused after a lost reply counts as a loss",
    patches: [{ file: "lib/taking/release.js", find: / && !outcome\.retried && attempts === 1/g, replace: "" }],
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
  {
    name: "a guard asks for the uuid alone",
    patches: [{ file: TABLE, find: / && row\.expires > after/g, replace: "" }],
  },
  {
    name: "a take forgets the tick that the row remembers",
    patches: [{ file: ROW, find: / \|\| isDone\(row, tick\)/g, replace: "" }],
  },
  {
    name: "a parked row does not say for how long",
    patches: [{ file: "lib/protocol/hold.js", find: /ttlMs: Math\.ceil\(left\)/g, replace: "ttlMs: 1" }],
  },
  {
    name: "a lock that is taken by force is free at once",
    patches: [{ file: TABLE, find: /if \(operation\.now\)/g, replace: "if (true)" }],
  },
];
