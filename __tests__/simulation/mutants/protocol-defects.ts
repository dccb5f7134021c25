import { acquisition, leaseTime, mayTake, rules, wasApplied } from "./files.js";
import type { Defects } from "./patch.js";

const RENEWS_IF = /(case "renew":\s+return \{ condition: )IS_MINE_AND_EARLIER/g;
const LEASE_END = /return Math\.min\(atMost \+ \(expires - bounds\.latest\), sentAt \+ ttlMs\);/g;

/**
 * Defects of the rules in lib/protocol, which the table in memory applies and lib/dynamodb compiles. What each breaks is a
 * row of a table there, or a sentence of docs/protocol.md.
 */
export const PROTOCOL_DEFECTS: Defects = {
  "a lease is counted from the reply": [leaseTime(LEASE_END, "return atMost + ttlMs;")],
  "a stamp that lies too late is trusted for as long as it says": [
    leaseTime(LEASE_END, "return atMost + (expires - bounds.latest);"),
  ],
  "a stamp lies a minute too late": [
    leaseTime(/Math\.ceil\(bounds\.latest\) \+ ttlMs/g, "Math.ceil(bounds.latest) + ttlMs + 60_000"),
  ],
  "a contender compares with the latest time it may be": [
    leaseTime(/Math\.floor\(bounds\.earliest\)/g, "Math.ceil(bounds.latest)"),
  ],
  "a row may be taken while its lease runs": [
    mayTake(/HAS_EXPIRED = less\("expires", \{ value: "earliest" \}\)/g, 'HAS_EXPIRED = less("expires", Infinity)'),
  ],
  "a row is taken by its uuid, renewed or not": [
    mayTake(
      /all\(equal\("uuid", \{ value: "seenUuid" \}\), equal\("expires", \{ value: "seenExpires" \}\)\)/g,
      'equal("uuid", { value: "seenUuid" })',
    ),
  ],
  "a take admits its own uuid": [
    rules(/\.\.\.more, isOver\)/g, '...more, any(equal("uuid", { value: "uuid" }), isOver))'),
    rules(/values: \{ earliest,/g, "values: { uuid: write.uuid, earliest,"),
  ],
  "a take forgets the tick that the row remembers": [rules(/newTick: where\(IS_LATER_TICK\)/g, "newTick: where()")],
  "a put replaces a row that remembers something": [rules(/nothing: where\(REMEMBERS_NOTHING\)/g, "nothing: where()")],
  "a row with a tick gets a purge date": [rules(/if \(respects === "tick"\)/g, "if (false)")],
  "a lease is purged while it runs": [rules(/expires \+ PURGE_AFTER_MS/g, "expires - 2_000")],
  "a renewal has no condition": [rules(RENEWS_IF, '$1all(isString("uuid"), less("expires", { value: "expires" }))')],
  "a renewal may move expires back": [rules(RENEWS_IF, "$1IS_MINE")],
  "a renewal may leave the row as it was": [
    leaseTime(/last \+ 1\)/g, "last)"),
    rules(
      RENEWS_IF,
      '$1all(IS_MINE, any(less("expires", { value: "expires" }), equal("expires", { value: "expires" })))',
    ),
  ],
  "a reissue draws no token": [
    rules(/fenced \? \{ attribute: "fence" \} : undefined/g, "undefined"),
    acquisition(/if \(write\.fenced\)/g, "if (false)"),
  ],
  "a release has no condition": [
    rules(
      /isDelete\(write\) \? IS_MINE_TO_DELETE : IS_MINE,/g,
      'all(isString("uuid"), isDelete(write) ? REMEMBERS_NOTHING : all()),',
    ),
  ],
  "a release deletes what the row remembers": [
    rules(/IS_MINE_TO_DELETE = all\(IS_MINE, REMEMBERS_NOTHING\)/g, "IS_MINE_TO_DELETE = IS_MINE"),
    rules(/leaves\.result === undefined && remembers === "nothing"/g, "leaves.result === undefined"),
  ],
  "a waiter that was renewed in between is swept": [
    rules(/equal\("expires", \{ value: "seenExpires" \}\)/g, "all()"),
    rules(/IS_SEEN_LEASE(, REMEMBERS_NOTHING)/g, 'equal("uuid", { value: "seenUuid" })$1'),
  ],
  "a lock that is taken by force is free at once": [
    rules(
      /case "untilExpires":\s+return \{ kind: "update", set: \{ attempt \}/g,
      'case "untilExpires": return { kind: "update", set: { expires: 0 }',
    ),
  ],
  "a guard asks for the uuid alone": [rules(/IS_STILL_HELD = all\(IS_MINE, .*\);/g, "IS_STILL_HELD = IS_MINE;")],
  "a row that stays taken does not say for how long": [leaseTime(/ttlMs: Math\.ceil\(left\)/g, "ttlMs: 1")],
  "a row stays taken until the earliest end of its hold": [leaseTime(/bounds\.latest \+ ms/g, "bounds.earliest + ms")],
  "an own claim on the row is not recognised": [wasApplied(/case "take":/g, 'case "take": return "no";')],
  "any refusal of a claim counts as its own earlier copy": [wasApplied(/case "take":/g, 'case "take": return "yes";')],
  "a release that is refused after a lost reply counts as a loss": [
    wasApplied(/case "vacate":/g, 'case "vacate": return "no";'),
  ],
};
