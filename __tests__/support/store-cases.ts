import { randomUUID } from "node:crypto";
import { expect } from "@jest/globals";
import { lockAt } from "../../lib/protocol/addresses.js";
import type { Sighting } from "../../lib/protocol/may-take.js";
import { type Attributes, FORMAT, type Memory, type Row } from "../../lib/protocol/row.js";
import type { Take } from "../../lib/protocol/writes.js";

/** What every take of {@link TAKES} trusts to be over if it is earlier. */
export const EARLIEST = 1_000_000;

/** What a fresh row does not have. */
export const NOTHING_ELSE = {
  wanted: undefined,
  fence: undefined,
  tick: undefined,
  due: undefined,
  attempt: undefined,
  ran: undefined,
  permits: undefined,
  handOff: undefined,
  result: undefined,
};

/** A row whose lease runs. */
export function rowWith(differences: Partial<Row>): Row {
  return {
    ...lockAt(randomUUID()),
    uuid: "theirs",
    expires: EARLIEST + 1,
    ttlMs: 30_000,
    owner: "host#1",
    acquired: EARLIEST - 5,
    data: undefined,
    ...NOTHING_ELSE,
    ...differences,
  };
}

/** The item that shows a row. */
export function itemOf({ name: _, sort: __, ...attributes }: Row): Attributes {
  const present = Object.entries({ format: FORMAT, ...attributes }).filter(([, value]) => value !== undefined);
  return Object.fromEntries(present);
}

/** A take of a lock of its own that trusts a clock, and believes that the row remembers nothing. */
export function takeWith(differences: Partial<Take>): Take {
  return {
    kind: "take",
    at: lockAt(randomUUID()),
    uuid: randomUUID(),
    expires: EARLIEST + 30_000,
    ttlMs: 30_000,
    owner: "host#2",
    acquired: EARLIEST,
    knowledge: { earliest: EARLIEST },
    remembers: "nothing",
    ...differences,
  };
}

/** The row that a take leaves where there was none, and it draws no token. */
export function rowOf({ at, uuid, expires, ttlMs, owner, acquired, data, tick, attempt, permits }: Take): Row {
  return {
    ...at,
    uuid,
    expires,
    ttlMs,
    owner,
    acquired,
    data,
    ...NOTHING_ELSE,
    tick,
    due: attempt === undefined ? undefined : tick,
    attempt,
    ran: tick === undefined ? undefined : { tick, ...(attempt !== undefined && { attempt }), owner, at: acquired },
    permits,
  };
}

/** Whether somebody who respects so much may replace what remembers this. */
export function respects(remembers: Memory, free: Freedom): boolean {
  if (free === "yes" || free === "no") return free === "yes";
  return remembers === "tick" || (free === "if fence" && remembers === "fence");
}

/** Whether a row may be taken: or only by who respects a fence, or a tick. */
export type Freedom = "yes" | "no" | "if fence" | "if tick";

const OVER = { expires: EARLIEST - 1 };
const RUNS = { expires: EARLIEST + 1 };
/** Nobody holds it, and it is not free either. */
const PARKED = { uuid: undefined, expires: EARLIEST + 1 };
const KEPT = { uuid: undefined, expires: 0 };
/** What somebody who watches {@link RUNS} has seen. */
const SEEN = { uuid: "theirs", expires: EARLIEST + 1 };
const SEEN_OTHER = { uuid: "others", expires: EARLIEST + 1 };

/** The truth table of a take, row by row. */
export const TAKES: readonly {
  readonly row: Partial<Row>;
  readonly unchanged?: Sighting;
  /** The tick of the take, where that is to be a take for one. */
  readonly tick?: number;
  readonly free: Freedom;
}[] = [
  { row: OVER, free: "yes" },
  { row: { expires: EARLIEST }, free: "no" },
  { row: RUNS, free: "no" },
  // Parked.
  { row: { uuid: undefined, expires: EARLIEST - 1 }, free: "yes" },
  { row: PARKED, free: "no" },
  // Kept.
  { row: { ...KEPT, fence: 3n }, free: "if fence" },
  { row: { ...KEPT, tick: 4 }, free: "if tick" },
  { row: { ...KEPT, tick: 4, fence: 3n }, free: "if tick" },
  { row: { ...OVER, fence: 2n ** 80n }, free: "if fence" },
  { row: { ...OVER, tick: 4 }, free: "if tick" },
  { row: { ...RUNS, fence: 3n }, free: "no" },
  { row: { ...RUNS, tick: 4 }, free: "no" },
  // Watched.
  { row: RUNS, unchanged: SEEN, free: "yes" },
  { row: { expires: EARLIEST + 2 }, unchanged: SEEN, free: "no" },
  { row: { expires: EARLIEST }, unchanged: SEEN, free: "no" },
  { row: RUNS, unchanged: SEEN_OTHER, free: "no" },
  { row: PARKED, unchanged: SEEN, free: "no" },
  { row: { ...RUNS, fence: 3n }, unchanged: SEEN, free: "if fence" },
  { row: OVER, unchanged: { uuid: "others", expires: 1 }, free: "yes" },
  { row: { ...RUNS, tick: 4 }, unchanged: SEEN, free: "if tick" },
  // Parked, and watched.
  { row: PARKED, unchanged: PARKED, free: "yes" },
  { row: { uuid: undefined, expires: EARLIEST + 2 }, unchanged: PARKED, free: "no" },
  { row: RUNS, unchanged: PARKED, free: "no" },
  { row: OVER, unchanged: { uuid: undefined, expires: 1 }, free: "yes" },
  { row: { ...PARKED, tick: 4 }, unchanged: PARKED, free: "if tick" },
  // For a tick.
  { row: OVER, tick: 4, free: "if tick" },
  { row: { ...KEPT, tick: 4 }, tick: 5, free: "if tick" },
  { row: { ...KEPT, tick: 4 }, tick: 4, free: "no" },
  { row: { ...KEPT, tick: 4 }, tick: 3, free: "no" },
  { row: { ...KEPT, tick: 0 }, tick: -1, free: "no" },
  { row: { ...KEPT, tick: -1 }, tick: 0, free: "if tick" },
  { row: { ...KEPT, tick: 9 }, tick: 10, free: "if tick" },
  { row: { ...KEPT, tick: Number.MAX_SAFE_INTEGER - 1 }, tick: Number.MAX_SAFE_INTEGER, free: "if tick" },
  { row: { ...RUNS, tick: 4 }, tick: 5, free: "no" },
  { row: { ...OVER, tick: 4 }, tick: 5, free: "if tick" },
  { row: { ...OVER, tick: 5 }, tick: 5, free: "no" },
  { row: { ...RUNS, tick: 5 }, unchanged: SEEN, tick: 5, free: "no" },
];

/** What a row of ours would have, and a stamp that is over. */
const OURS: Attributes = {
  format: FORMAT,
  uuid: "theirs",
  expires: 5,
  ttlMs: 5,
  owner: "them",
  acquired: 5,
  mark: "their own",
};

function without(attribute: string): Attributes {
  return Object.fromEntries(Object.entries(OURS).filter(([name]) => name !== attribute));
}

/** Items under a lock's key that are not a lock's row, and would be over if they were. */
export const FOREIGN: readonly (readonly [string, Attributes])[] = [
  ["without any attribute of ours", { mark: "their own" }],
  ["without a format", without("format")],
  ["in another format", { ...OURS, format: 2 }],
  ["with a format that is no number", { ...OURS, format: "1" }],
  ["without a stamp", without("expires")],
  ["with a stamp that is no number", { ...OURS, expires: "5" }],
  ["without a ttl", without("ttlMs")],
  ["with a ttl that is no number", { ...OURS, ttlMs: "5" }],
  ["without an owner", without("owner")],
  ["with an owner that is no string", { ...OURS, owner: 5 }],
  ["without a date", without("acquired")],
  ["with a uuid that is no string", { ...OURS, uuid: 5 }],
];

/** The error that shows such an item. */
export const NOT_OURS = { code: "LOCK_STORE", transient: false, message: expect.stringContaining("their own") };

/** Sort keys that look like ours, and are an application's own: each between two of ours. */
export const FOREIGN_SORTS: readonly string[] = [
  "lock#1",
  "locks",
  "member#1",
  "permit",
  "semaphore#",
  "semaphore#1",
  "semaphore#00001",
  "semaphore#000a",
  "semaphore-queue#7",
  "semaphore-queue#",
  "queue#",
  "queue#7",
  `queue#${"7".repeat(37)}`,
  `queue#${"7".repeat(39)}`,
  `my-queue#${"7".repeat(38)}`,
  `reader-queue#${"7".repeat(38)}`,
  "reader#",
  "reader#7",
  "reader#01234567-89AB-CDEF-0123-456789ABCDEF",
  "reader#01234567-89ab-cdef-0123-456789abcdef0",
  "readers",
  "writer#1",
  "writer-queue#7",
  "writers",
];

class Report {
  readonly title = "of a class";
}

function circle(): Record<string, unknown> {
  const start: Record<string, unknown> = {};
  start.middle = [start];
  return start;
}

/** `levels` maps inside one another, `data` included. */
function nested(levels: number): Record<string, unknown> {
  return levels === 1 ? { a: "leaf" } : { a: nested(levels - 1) };
}

/** What DynamoDB cannot store, and the path by which it is refused. */
export const UNSTORABLE: readonly (readonly [string, Record<string, unknown>, string])[] = [
  ["undefined", { a: [undefined] }, "data.a.0"],
  ["a hole in an array", { a: new Array(2) }, "data.a.0"],
  ["a function", { a: { b: () => 1 } }, "data.a.b"],
  ["a symbol", { a: Symbol("s") }, "data.a"],
  ["half of a surrogate pair", { a: ["\ud800"] }, "data.a.0"],
  ["half of a surrogate pair in a name", { "\udc00": 1 }, "data"],
  ["NaN", { a: Number.NaN }, "data.a"],
  ["an infinite number", { a: [Number.NEGATIVE_INFINITY] }, "data.a.0"],
  ["a number that is too great", { a: 1e126 }, "data.a"],
  ["a number that is too small", { a: -9e-131 }, "data.a"],
  ["a bigint of 39 digits", { a: 10n ** 38n + 1n }, "data.a"],
  ["a bigint that is too great", { a: -(10n ** 126n) }, "data.a"],
  ["a date", { a: { at: new Date(0) } }, "data.a.at"],
  ["an object of a class", { a: new Report() }, "data.a"],
  ["a Map", { a: new Map() }, "data.a"],
  ["an object that contains itself", circle(), "data.middle.0"],
  ["an empty set", { a: new Set() }, "data.a"],
  ["a mixed set", { a: new Set([1, "1"]) }, "data.a"],
  ["a set with the same number twice", { a: new Set<unknown>([1, 1n]) }, "data.a"],
  ["a set of objects", { a: new Set([{}]) }, "data.a"],
  ["a property without a name", { a: { "": 1 } }, "data.a"],
  ["nesting deeper than DynamoDB's", nested(32), `data${".a".repeat(31)}`],
  ["more than an item may hold", { a: "x".repeat(400 * 1_024) }, "data"],
  ["an array in the place of data", [] as unknown as Record<string, unknown>, "data"],
];
