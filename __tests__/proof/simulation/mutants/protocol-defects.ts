import type { Defects } from "./defect.js";

/**
 * Defects of the rules in lib/protocol, which the table in memory applies and lib/dynamodb compiles. What each breaks is a
 * row of a table there, or a sentence of docs/design/protocol.md.
 */
export const PROTOCOL_DEFECTS: Defects = {
  "a lease is counted from the reply": {
    takesOut: ["trap 11", "protocol#keeping 3", "guarantees#one-holder"],
    "protocol/lease-time.ts": {
      "return Math.min(atMost + (expires - bounds.latest), sentAt + ttlMs);": "return atMost + ttlMs;",
    },
  },
  "a stamp that lies too late is trusted for as long as it says": {
    takesOut: ["trap 11", "trap 16", "protocol#keeping 3"],
    "protocol/lease-time.ts": {
      "return Math.min(atMost + (expires - bounds.latest), sentAt + ttlMs);":
        "return atMost + (expires - bounds.latest);",
    },
    test: "behaviour/holding/loss",
  },
  "a stamp lies a minute too late": {
    takesOut: ["protocol#taking 1", "guarantees#networks-and-crashes: If a process dies"],
    "protocol/lease-time.ts": { "Math.ceil(bounds.latest) + ttlMs": "Math.ceil(bounds.latest) + ttlMs + 60_000" },
  },
  "a contender compares with the latest time it may be": {
    takesOut: ["protocol#taking-over 1", "protocol#time", "guarantees#one-holder"],
    "protocol/lease-time.ts": { "Math.floor(bounds.earliest)": "Math.ceil(bounds.latest)" },
  },
  "a row may be taken while its lease runs": {
    takesOut: [
      "protocol#taking 2",
      "protocol#the-rows-states: held",
      "guarantees#one-holder",
      "leader-election#what-is-promised: Two leaders never hold",
      "single-flight#what-is-promised: One run of a name",
    ],
    "protocol/may-take.ts": {
      'HAS_EXPIRED: Condition = less("expires", { value: "earliest" })':
        'HAS_EXPIRED: Condition = less("expires", Infinity)',
    },
  },
  "a row is taken by its uuid, renewed or not": {
    takesOut: ["protocol#taking-over 2", "protocol#late-copies: takeover of an unchanged row"],
    "protocol/may-take.ts": {
      'IS_SEEN_LEASE: Condition = all( equal("uuid", { value: "seenUuid" }), equal("expires", { value: "seenExpires" }), )':
        'IS_SEEN_LEASE: Condition = equal("uuid", { value: "seenUuid" })',
    },
  },
  "a take admits its own uuid": {
    takesOut: [
      "protocol#taking 2",
      "protocol#late-copies: take, of a mutex",
      "guarantees#networks-and-crashes: A late duplicate",
    ],
    "protocol/rules.ts": {
      "...more, ...ofToken, isOver)": '...more, ...ofToken, any(equal("uuid", { value: "uuid" }), isOver))',
      "values: { earliest,": "values: { uuid: write.uuid, earliest,",
    },
  },
  "a take forgets the tick that the row remembers": {
    takesOut: [
      "locks#while-you-hold-it: holdAtLeastMs",
      "protocol#ticks: With a tick",
      "protocol#late-copies: take for a tick",
    ],
    "protocol/rules.ts": { "newTick: where(IS_LATER_TICK)": "newTick: where()" },
  },
  "a put replaces a row that remembers something": {
    takesOut: ["protocol#the-row: What a row remembers", "trap 10", "protocol#the-rows-states: kept, free"],
    "protocol/rules.ts": { "nothing: where(REMEMBERS_NOTHING)": "nothing: where()" },
  },
  "a row with a tick gets a purge date": {
    takesOut: ["protocol#the-row: What a row remembers"],
    "protocol/rules.ts": { 'if (respects === "tick")': "if (false)" },
  },
  "a lease is purged while it runs": {
    takesOut: ["guarantees#one-holder"],
    "protocol/rules.ts": { "expires + PURGE_AFTER_MS": "expires - 2_000" },
  },
  "a renewal has no condition": {
    takesOut: [
      "trap 3",
      "protocol#keeping 1",
      "protocol#late-copies: renewal",
      "guarantees#networks-and-crashes: A late duplicate",
    ],
    "protocol/rules.ts": {
      'case "renew": return { condition: IS_MINE_AND_EARLIER':
        'case "renew": return { condition: all(isString("uuid"), less("expires", { value: "expires" }))',
    },
  },
  "a renewal may move expires back": {
    takesOut: ["trap 19", "protocol#keeping 1", "protocol#late-copies: renewal"],
    "protocol/rules.ts": {
      'case "renew": return { condition: IS_MINE_AND_EARLIER': 'case "renew": return { condition: IS_MINE',
    },
  },
  "a renewal may leave the row as it was": {
    takesOut: ["trap 21", "protocol#keeping 1"],
    "protocol/lease-time.ts": { "last + 1)": "last)" },
    "protocol/rules.ts": {
      'case "renew": return { condition: IS_MINE_AND_EARLIER':
        'case "renew": return { condition: all(IS_MINE, any(less("expires", { value: "expires" }), equal("expires", { value: "expires" })))',
    },
    test: "protocol/store-contract/writes",
  },
  "a reissue draws no token": {
    takesOut: ["protocol#releasing"],
    "taking/row-writes.ts": {
      "fenced ? tokenDraw(boundsOf(session.clock), fence) : undefined": "undefined",
      "fenced ? written.drawn : fence": "fence",
    },
  },
  "a token is counted up whatever the time is": {
    takesOut: ["protocol#fencing-tokens 2", "trap 10"],
    "protocol/lease-time.ts": { "const least = earliestOf(bounds);": "const least = 1;" },
  },
  "a first token is drawn from the earliest time": {
    takesOut: ["protocol#fencing-tokens 1"],
    "protocol/lease-time.ts": { "seed: Math.ceil(bounds.latest)": "seed: Math.floor(bounds.earliest)" },
    test: "behaviour/fencing/tokens",
  },
  "a take that counts the token up takes a row whose token is behind": {
    takesOut: ["protocol#fencing-tokens 3"],
    "protocol/rules.ts": { 'counts: [any(missing("fence"), ...NOT_BEHIND)]': "counts: []" },
    test: "protocol/store-contract/writes",
  },
  "a take is sent in its other form however late it is": {
    takesOut: ["protocol#fencing-tokens 3"],
    "dynamodb/row-store.ts": { "other === undefined || !inTime()": "other === undefined" },
    test: "protocol/store-contract/writes",
  },
  "a write that is refused by its form is not sent in the other": {
    takesOut: ["protocol#fencing-tokens 3"],
    "dynamodb/row-store.ts": {
      "if (other === undefined || !inTime()) return outcome;": "if (other !== null) return outcome;",
    },
    test: "protocol/store-contract/writes",
  },
  "a release has no condition": {
    takesOut: ["trap 9", "protocol#releasing 2", "protocol#late-copies: reissue, release, parking"],
    "protocol/rules.ts": {
      "isDelete(write) ? IS_MINE_TO_DELETE : IS_MINE,":
        'all(isString("uuid"), isDelete(write) ? REMEMBERS_NOTHING : all()),',
    },
  },
  "a release deletes what the row remembers": {
    takesOut: ["trap 10", "protocol#releasing 2", "protocol#the-row: What a row remembers"],
    "protocol/rules.ts": {
      "IS_MINE_TO_DELETE = all(IS_MINE, REMEMBERS_NOTHING)": "IS_MINE_TO_DELETE = IS_MINE",
      'leaves.result === undefined && remembers === "nothing"': "leaves.result === undefined",
    },
  },
  "a waiter that was renewed in between is swept": {
    takesOut: ["queue#how-it-works: A dead waiter is skipped", "protocol#late-copies: takeover of an unchanged row"],
    "protocol/rules.ts": {
      'equal("expires", { value: "seenExpires" })': "all()",
      "IS_SEEN_LEASE, REMEMBERS_NOTHING": 'equal("uuid", { value: "seenUuid" }), REMEMBERS_NOTHING',
    },
    test: "protocol/store-contract/removals",
  },
  "a lock that is taken by force is free at once": {
    takesOut: ["protocol#the-rows-states: unlocked by force; parked"],
    "protocol/rules.ts": {
      'case "untilExpires": return { kind: "update", set: { attempt }':
        'case "untilExpires": return { kind: "update", set: { expires: 0 }',
    },
  },
  "a guard asks for the uuid alone": {
    takesOut: [
      "fencing-and-guards#what-a-guard-asks: A late duplicate",
      "protocol#late-copies: a caller's transaction with a guard",
    ],
    "protocol/rules.ts": {
      'IS_STILL_HELD = all(IS_MINE, greater("expires", { value: "after" }));': "IS_STILL_HELD = IS_MINE;",
    },
    test: "behaviour/fencing/guards",
  },
  "a row that stays taken does not say for how long": {
    takesOut: ["protocol#taking-over 2", "protocol#releasing 2"],
    "protocol/lease-time.ts": { "ttlMs: Math.ceil(left)": "ttlMs: 1" },
  },
  "a row stays taken until the earliest end of its hold": {
    takesOut: ["protocol#releasing 2"],
    "protocol/lease-time.ts": { "bounds.latest + ms": "bounds.earliest + ms" },
  },
  "an own claim on the row is not recognised": {
    takesOut: ["trap 1", "protocol#taking 3", "guarantees#networks-and-crashes: A lost reply"],
    "protocol/was-applied.ts": { 'case "take":': 'case "take": return "no";' },
  },
  "any refusal of a claim counts as its own earlier copy": {
    takesOut: ["protocol#taking 3", "guarantees#one-holder"],
    "protocol/was-applied.ts": { 'case "take":': 'case "take": return "yes";' },
  },
  "a release that is refused after a lost reply counts as a loss": {
    takesOut: ["trap 2", "protocol#releasing 3", "guarantees#networks-and-crashes: A lost reply"],
    "protocol/was-applied.ts": {
      'case "vacate": if (!earlierCopyUnanswered || isStillHeldBy(write.uuid, refusedBy)) return "no"; return isLeftBy(write, refusedBy) ? "yes" : "maybe";':
        'case "vacate": return "no";',
    },
  },
  "a purge date is in milliseconds": {
    takesOut: ["trap 7"],
    "protocol/rules.ts": { "Math.ceil((expires + PURGE_AFTER_MS) / 1_000)": "Math.ceil(expires + PURGE_AFTER_MS)" },
    test: "behaviour/taking/uncontended",
  },
  "a foreign item is taken for an expired lock": {
    takesOut: ["trap 25", "protocol#the-rows-states: not ours"],
    "protocol/rules.ts": {
      "any(NO_ITEM, all(IS_OURS, ...more, ...ofToken, isOver))":
        'any(NO_ITEM, all(...more, ...ofToken, isOver), all(missing("uuid"), missing("expires")))',
    },
    test: "protocol/rows",
  },
  "a bad row hides the others": {
    takesOut: ["trap 47"],
    "store.ts": {
      "if (!(error instanceof BadRow)) throw error;":
        'if (!(error instanceof BadRow) || error.code === "LOCK_STORE") throw error;',
    },
    test: "behaviour/bad-rows",
  },
  "a guard asks for a later stamp alone": {
    takesOut: [
      "fencing-and-guards#what-a-guard-asks: The guard fails",
      "shared-mutexes#what-is-promised: A guard of either side",
    ],
    "protocol/rules.ts": { "IS_STILL_HELD = all(IS_MINE, greater(": "IS_STILL_HELD = all(IS_OUR_FORMAT, greater(" },
    test: "behaviour/fencing/guards",
  },
  "a guard asks for no token": {
    takesOut: ["fencing-and-guards#what-a-guard-asks"],
    "protocol/rules.ts": {
      'all(IS_STILL_HELD, equal("fence", { value: "fence" }))':
        'all(IS_STILL_HELD, any(IS_MINE, equal("fence", { value: "fence" })))',
    },
    test: "behaviour/fencing/guards",
  },
  "the take of a flight asks for no result": {
    takesOut: ["protocol#late-copies: take of a flight", "single-flight#what-is-promised: With freshMs: 0"],
    "protocol/rules.ts": {
      "fenceSameResult: where(REMEMBERS_NO_TICK, IS_SAME_RESULT)": "fenceSameResult: where(REMEMBERS_NO_TICK)",
      "fenceNoResult: where(REMEMBERS_NO_TICK, HAS_NO_RESULT)": "fenceNoResult: where(REMEMBERS_NO_TICK)",
    },
    test: "behaviour/single-flight",
  },
};
