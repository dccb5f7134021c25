import type { Defect } from "./defects.js";

const ACQUISITION = "lib/taking/acquisition.js";
const LEASE_TIME = "lib/protocol/lease-time.js";
const MAY_TAKE = "lib/protocol/may-take.js";
const RULES = "lib/protocol/rules.js";
const WAS_APPLIED = "lib/protocol/was-applied.js";

const RENEWS_IF = /(case "renew":\s+return \{ condition: )IS_MINE_AND_EARLIER/g;
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
    patches: [
      {
        file: MAY_TAKE,
        find: /HAS_EXPIRED = less\("expires", \{ value: "earliest" \}\)/g,
        replace: 'HAS_EXPIRED = less("expires", Infinity)',
      },
    ],
  },
  {
    name: "a row is taken by its uuid, renewed or not",
    patches: [
      {
        file: MAY_TAKE,
        find: /all\(equal\("uuid", \{ value: "seenUuid" \}\), equal\("expires", \{ value: "seenExpires" \}\)\)/g,
        replace: 'equal("uuid", { value: "seenUuid" })',
      },
    ],
  },
  {
    name: "a take admits its own uuid",
    patches: [
      {
        file: RULES,
        find: /\.\.\.more, isOver\)/g,
        replace: '...more, any(equal("uuid", { value: "uuid" }), isOver))',
      },
      { file: RULES, find: /values: \{ earliest,/g, replace: "values: { uuid: write.uuid, earliest," },
    ],
  },
  {
    name: "a take forgets the tick that the row remembers",
    patches: [{ file: RULES, find: /newTick: where\(IS_LATER_TICK\)/g, replace: "newTick: where()" }],
  },
  {
    name: "a put replaces a row that remembers something",
    patches: [{ file: RULES, find: /nothing: where\(REMEMBERS_NOTHING\)/g, replace: "nothing: where()" }],
  },
  {
    name: "a row with a tick gets a purge date",
    patches: [{ file: RULES, find: /if \(respects === "tick"\)/g, replace: "if (false)" }],
  },
  {
    name: "a lease is purged while it runs",
    patches: [{ file: RULES, find: /expires \+ PURGE_AFTER_MS/g, replace: "expires - 2_000" }],
  },
  {
    name: "a renewal has no condition",
    patches: [
      { file: RULES, find: RENEWS_IF, replace: '$1all(isString("uuid"), less("expires", { value: "expires" }))' },
    ],
  },
  {
    name: "a renewal may move expires back",
    patches: [{ file: RULES, find: RENEWS_IF, replace: "$1IS_MINE" }],
  },
  {
    name: "a renewal may leave the row as it was",
    patches: [
      { file: LEASE_TIME, find: /last \+ 1\)/g, replace: "last)" },
      {
        file: RULES,
        find: RENEWS_IF,
        replace: '$1all(IS_MINE, any(less("expires", { value: "expires" }), equal("expires", { value: "expires" })))',
      },
    ],
  },
  {
    name: "a reissue draws no token",
    patches: [
      { file: RULES, find: /fenced \? \{ attribute: "fence" \} : undefined/g, replace: "undefined" },
      { file: ACQUISITION, find: /if \(write\.fenced\)/g, replace: "if (false)" },
    ],
  },
  {
    name: "a release has no condition",
    patches: [
      {
        file: RULES,
        find: /isDelete\(write\) \? IS_MINE_TO_DELETE : IS_MINE,/g,
        replace: 'all(isString("uuid"), isDelete(write) ? REMEMBERS_NOTHING : all()),',
      },
    ],
  },
  {
    name: "a release deletes what the row remembers",
    patches: [
      {
        file: RULES,
        find: /IS_MINE_TO_DELETE = all\(IS_MINE, REMEMBERS_NOTHING\)/g,
        replace: "IS_MINE_TO_DELETE = IS_MINE",
      },
      {
        file: RULES,
        find: /leaves\.result === undefined && remembers === "nothing"/g,
        replace: "leaves.result === undefined",
      },
    ],
  },
  {
    name: "a waiter that was renewed in between is swept",
    patches: [
      { file: RULES, find: /equal\("expires", \{ value: "seenExpires" \}\)/g, replace: "all()" },
      {
        file: RULES,
        find: /IS_SEEN_LEASE(, REMEMBERS_NOTHING)/g,
        replace: 'equal("uuid", { value: "seenUuid" })$1',
      },
    ],
  },
  {
    name: "a lock that is taken by force is free at once",
    patches: [
      {
        file: RULES,
        find: /case "untilExpires":\s+return \{ kind: "update", set: \{ attempt \}/g,
        replace: 'case "untilExpires": return { kind: "update", set: { expires: 0 }',
      },
    ],
  },
  {
    name: "a guard asks for the uuid alone",
    patches: [{ file: RULES, find: /IS_STILL_HELD = all\(IS_MINE, .*\);/g, replace: "IS_STILL_HELD = IS_MINE;" }],
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
    name: "a release that is refused after a lost reply counts as a loss",
    patches: [{ file: WAS_APPLIED, find: /case "vacate":/g, replace: 'case "vacate": return "no";' }],
  },
];
