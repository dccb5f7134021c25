import type { Defect } from "./defects.js";

const LEASE_TIME = "lib/protocol/lease-time.js";
const MAY_TAKE = "lib/protocol/may-take.js";
const ROW = "lib/protocol/row.js";
const WAS_APPLIED = "lib/protocol/was-applied.js";
const WRITES = "lib/protocol/writes.js";

const LEASE_END = /return Math\.min\(atMost \+ \(expires - bounds\.latest\), sentAt \+ ttlMs\);/g;

/**
 * Defects of the rules in lib/protocol, which the table in memory applies and lib/dynamodb compiles. What each breaks is a
 * row of a table there, or a sentence of docs/protocol.md.
 */
export const PROTOCOL_DEFECTS: readonly Defect[] = [
  {
    name: "a lease is counted from the reply",
    patches: [{ file: LEASE_TIME, find: LEASE_END, replace: "return atMost + ttlMs;" }],
  },
  {
    name: "a stale stamp is trusted for a whole ttl",
    patches: [{ file: LEASE_TIME, find: LEASE_END, replace: "return sentAt + ttlMs;" }],
  },
  {
    name: "a stamp that lies too late is trusted for as long as it says",
    patches: [{ file: LEASE_TIME, find: LEASE_END, replace: "return atMost + (expires - bounds.latest);" }],
  },
  {
    name: "a stamp lies a minute too late",
    patches: [
      {
        file: LEASE_TIME,
        find: /Math\.ceil\(bounds\.latest\) \+ ttlMs/g,
        replace: "Math.ceil(bounds.latest) + ttlMs + 60_000",
      },
    ],
  },
  {
    name: "a contender compares with the latest time it may be",
    patches: [{ file: LEASE_TIME, find: /Math\.floor\(bounds\.earliest\)/g, replace: "Math.ceil(bounds.latest)" }],
  },
  {
    name: "a row may be taken while its lease runs",
    patches: [{ file: MAY_TAKE, find: /less\("expires", earliest\)/g, replace: 'less("expires", Infinity)' }],
  },
  {
    name: "a row is taken by its uuid, renewed or not",
    patches: [
      { file: MAY_TAKE, find: /all\(sameHolder, equal\("expires", unchanged\.expires\)\)/g, replace: "sameHolder" },
    ],
  },
  {
    name: "a take admits its own uuid",
    patches: [
      { file: WRITES, find: /isOver\(knowledge\)\)/g, replace: 'any(equal("uuid", write.uuid), isOver(knowledge)))' },
    ],
  },
  {
    name: "a take forgets the tick that the row remembers",
    patches: [{ file: WRITES, find: /\.\.\.room, /g, replace: "" }],
  },
  {
    name: "a put replaces a row that remembers something",
    patches: [{ file: WRITES, find: /nothing: \[REMEMBERS_NOTHING\]/g, replace: "nothing: []" }],
  },
  {
    name: "a row with a tick gets a date to be purged",
    patches: [{ file: WRITES, find: /if \(respects === "tick"\)/g, replace: "if (false)" }],
  },
  {
    name: "a lease is purged while it runs",
    patches: [{ file: ROW, find: /expires \+ PURGE_AFTER_MS/g, replace: "expires - 2_000" }],
  },
  {
    name: "a renewal has no condition",
    patches: [
      {
        file: WRITES,
        find: /(case "renew":\s+return all\()isHeldBy\(write\.uuid\)/g,
        replace: '$1isString("uuid")',
      },
    ],
  },
  {
    name: "a renewal may move expires back",
    patches: [
      {
        file: WRITES,
        find: /(case "renew":\s+return all\(isHeldBy\(write\.uuid\)), less\("expires", write\.expires\)/g,
        replace: "$1",
      },
    ],
  },
  {
    name: "a renewal may leave the row as it was",
    patches: [
      { file: LEASE_TIME, find: /last \+ 1\)/g, replace: "last)" },
      {
        file: WRITES,
        find: /(case "renew":\s+return all\(isHeldBy\(write\.uuid\), less\("expires", write\.expires)/g,
        replace: "$1 + 1",
      },
    ],
  },
  {
    name: "a reissue draws no token",
    patches: [{ file: WRITES, find: /fenced \? \{ attribute: "fence" \} : undefined/g, replace: "undefined" }],
  },
  {
    name: "a release has no condition",
    patches: [{ file: WRITES, find: /isHeldBy\(write\.uuid\), \.\.\.seen/g, replace: 'isString("uuid"), ...seen' }],
  },
  {
    name: "a release deletes what the row remembers",
    patches: [{ file: WRITES, find: /, \.\.\.\(isDelete\(write\) \? \[REMEMBERS_NOTHING\] : \[\]\)/g, replace: "" }],
  },
  {
    name: "a waiter that was renewed in between is swept",
    patches: [{ file: WRITES, find: /isHeldBy\(write\.uuid\), \.\.\.seen/g, replace: "isHeldBy(write.uuid)" }],
  },
  {
    name: "a lock that is taken by force is free at once",
    patches: [
      {
        file: WRITES,
        find: /case "untilExpires":\s+return \{ kind: "update", set: \{\}/g,
        replace: 'case "untilExpires": return { kind: "update", set: { expires: 0 }',
      },
    ],
  },
  {
    name: "a guard asks for the uuid alone",
    patches: [{ file: WRITES, find: /greater\("expires", write\.after\), /g, replace: "" }],
  },
  {
    name: "a row that stays taken does not say for how long",
    patches: [{ file: LEASE_TIME, find: /ttlMs: Math\.ceil\(left\)/g, replace: "ttlMs: 1" }],
  },
  {
    name: "a row stays taken until the earliest end of its hold",
    patches: [{ file: LEASE_TIME, find: /bounds\.latest \+ ms/g, replace: "bounds.earliest + ms" }],
  },
  {
    name: "an own claim on the row is not recognised",
    patches: [{ file: WAS_APPLIED, find: /case "take":/g, replace: 'case "take": return "no";' }],
  },
  {
    name: "any refusal of a claim counts as its own earlier copy",
    patches: [{ file: WAS_APPLIED, find: /case "take":/g, replace: 'case "take": return "yes";' }],
  },
  {
    name: "any stamp of its own on the row counts as a renewal's",
    patches: [{ file: WAS_APPLIED, find: / && refusedBy\.expires === write\.expires/g, replace: "" }],
  },
  {
    name: "a release that is refused after a lost reply counts as a loss",
    patches: [{ file: WAS_APPLIED, find: /case "vacate":/g, replace: 'case "vacate": return "no";' }],
  },
];
