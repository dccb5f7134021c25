import type { LockData } from "../lock-info.js";
import {
  all,
  any,
  type Condition,
  equal,
  greater,
  holds,
  isNumber,
  isString,
  less,
  missing,
  NO_ITEM,
} from "./conditions.js";
import { isOver, type Knowledge } from "./may-take.js";
import { type Address, type Attributes, FORMAT, type Memory, purgeAt } from "./row.js";

/**
 * Takes a row: one acquisition begins. Refused while another lease runs, and by the own uuid, which is how an earlier copy
 * is recognised.
 */
export interface Take {
  readonly kind: "take";
  readonly at: Address;
  readonly uuid: string;
  readonly expires: number;
  readonly ttlMs: number;
  readonly owner: string;
  readonly acquired: number;
  readonly data?: LockData | undefined;
  readonly knowledge: Knowledge;
  /** What the row is believed to remember: one that remembers more refuses. */
  readonly remembers: Memory;
  /** Draws a fencing token: one more than the row's last, or than this time of the table's, in ms, where it has none. */
  readonly fenceSeed?: number | undefined;
  /** The tick that this acquisition is for: refused where the row remembers this tick or a later one. */
  readonly tick?: number | undefined;
}

/** Moves `expires` forward under the same uuid, and replaces the caller's data, if given. */
export interface Renew {
  readonly kind: "renew";
  readonly at: Address;
  readonly uuid: string;
  readonly expires: number;
  readonly data?: LockData | undefined;
  readonly remembers: Memory;
}

/** Gives the row a fresh uuid, and a later `expires`: nothing that was written under the old uuid passes any more. */
export interface Reissue {
  readonly kind: "reissue";
  readonly at: Address;
  readonly from: string;
  readonly uuid: string;
  readonly expires: number;
  /** Whether it draws the next fencing token: refused where the row has none. */
  readonly fenced: boolean;
  readonly remembers: Memory;
}

/** How a row is left by whoever takes its uuid off it. */
export type Left =
  /** Gone; kept but free where it remembers something. */
  | { readonly kind: "free" }
  /** Without a holder, and taken until `expires`; `ttlMs` is what is left until then, for those who watch. */
  | { readonly kind: "held"; readonly expires: number; readonly ttlMs: number }
  /** Without a holder, and taken until its lease would have ended. */
  | { readonly kind: "untilExpires" }
  /** There, and free at once. */
  | { readonly kind: "kept" };

/** Takes a uuid off its row: a release, an unlock by force, the removal of a waiter that is gone. */
export interface Vacate {
  readonly kind: "vacate";
  readonly at: Address;
  readonly uuid: string;
  /** Only where `expires` is still exactly this, as it was seen. */
  readonly seenExpires?: number | undefined;
  readonly leaves: Left;
  readonly remembers: Memory;
}

/** Marks a row as wanted by another host. A hint: it asks only that somebody holds the row. */
export interface Want {
  readonly kind: "want";
  readonly at: Address;
  readonly until: number;
}

/** Draws the number of a place: one more than the last, or than this time of the table's, in ms, where there is none. */
export interface Draw {
  readonly kind: "draw";
  readonly at: Address;
  readonly seed: number;
}

/** Changes nothing: ties other writes of a transaction to an acquisition, which has renewed and still holds the row. */
export interface Check {
  readonly kind: "check";
  readonly at: Address;
  readonly uuid: string;
  /** `expires` is later: a late copy of the write that brought the uuid cannot make the row pass again. */
  readonly after: number;
  /** The row has this token, where the lock is fenced. */
  readonly fence: bigint | undefined;
}

/** What the library ever asks a table to do to a row. */
export type Write = Take | Renew | Reissue | Vacate | Want | Draw | Check;

/** An attribute that becomes one more than it was, or than `seed` where it is missing. Without a seed, it is there. */
export interface Count {
  readonly attribute: string;
  readonly seed?: number | undefined;
}

/** What a write does to an item that meets its condition. */
export type Effect =
  | { readonly kind: "put"; readonly attributes: Attributes }
  | {
      readonly kind: "update";
      readonly set: Attributes;
      readonly remove: readonly string[];
      readonly count?: Count | undefined;
    }
  | { readonly kind: "delete" }
  | { readonly kind: "nothing" };

/** An item that this library wrote, in the format that it reads: what a take may replace must be one that would parse. */
const IS_OURS = all(
  equal("format", FORMAT),
  isString("owner"),
  isNumber("ttlMs"),
  isNumber("acquired"),
  any(missing("uuid"), isString("uuid")),
);

const REMEMBERS_NOTHING = all(missing("fence"), missing("tick"));

/**
 * What may be replaced by a writer that respects so much: a put wipes out everything, a purge date ends a tick. What stays
 * on the row is a number: with another type there it would not parse, and a token could not be counted up.
 */
const REMEMBERS_NO_MORE_THAN: Readonly<Record<Memory, readonly Condition[]>> = {
  nothing: [REMEMBERS_NOTHING],
  fence: [missing("tick"), isNumberIfAny("fence")],
  tick: [isNumberIfAny("tick"), isNumberIfAny("fence")],
};

/** What a take respects: what the row is believed to remember, and what it is about to remember. */
export function memoryAfter({ remembers, fenceSeed, tick }: Take): Memory {
  if (remembers === "tick" || tick !== undefined) return "tick";
  return fenceSeed === undefined ? remembers : "fence";
}

/**
 * What a write asks of the row that it meets.
 *
 * | the row that is there                       | take  | take, respects fence | respects tick | by uuid (1) | want |
 * |---------------------------------------------|-------|----------------------|---------------|-------------|------|
 * | none                                        | yes   | yes                  | yes           | no          | no   |
 * | not ours: no format, another, other types   | no    | no                   | no            | no (2)      | no   |
 * | ours, may be taken, remembers nothing       | yes   | yes                  | yes           |             |      |
 * | ours, may be taken, remembers a fence       | no    | yes                  | yes           |             |      |
 * | ours, may be taken, remembers a tick        | no    | no                   | yes           |             |      |
 * | the same, the tick is the take's, or later  | no    | no                   | no            |             |      |
 * | ours, may not be taken                      | no    | no                   | no            |             |      |
 * | ours, the uuid it names                     | no (3)| no (3)               | no (3)        | yes (4)     |      |
 * | ours, any uuid                              |       |                      |               |             | yes  |
 *
 * (1) Renewals, reissues, vacating: writes that name the one acquisition that they are about. They take its uuid off the
 * row, or move `expires` forward, so a late copy of them changes nothing.
 * (2) Of these only format and uuid are compared: nobody else writes a uuid of ours.
 * (3) A take is stamped later than the `earliest` that it is sent with, and nobody watches an acquisition of his own.
 * (4) A renewal or reissue only where it moves `expires` forward; a reissue that draws a token only where the row has one;
 * a delete only where the row remembers nothing.
 */
export function askedBy(write: Write): Condition {
  switch (write.kind) {
    case "take": {
      const { knowledge, tick } = write;
      const room = tick === undefined ? [] : [any(missing("tick"), less("tick", tick))];
      return any(NO_ITEM, all(IS_OURS, ...REMEMBERS_NO_MORE_THAN[memoryAfter(write)], ...room, isOver(knowledge)));
    }
    case "renew":
      return all(isHeldBy(write.uuid), less("expires", write.expires));
    case "reissue":
      return all(isHeldBy(write.from), less("expires", write.expires), ...(write.fenced ? [isNumber("fence")] : []));
    case "vacate": {
      const seen = write.seenExpires === undefined ? [] : [equal("expires", write.seenExpires)];
      return all(isHeldBy(write.uuid), ...seen, ...(isDelete(write) ? [REMEMBERS_NOTHING] : []));
    }
    case "want":
      return all(equal("format", FORMAT), isString("uuid"));
    case "draw":
      return any(NO_ITEM, all(equal("format", FORMAT), isNumber("n")));
    case "check": {
      const token = write.fence === undefined ? [] : [equal("fence", write.fence)];
      return all(isHeldBy(write.uuid), greater("expires", write.after), ...token);
    }
    default:
      return write satisfies never;
  }
}

/** What a write leaves where its condition holds. */
export function leftBy(write: Write): Effect {
  switch (write.kind) {
    case "take":
      return takes(write);
    case "renew": {
      const { expires, data, remembers } = write;
      return update({ expires, data }, [], remembers);
    }
    case "reissue": {
      const { uuid, expires, fenced, remembers } = write;
      return { ...update({ uuid, expires }, [], remembers), count: fenced ? { attribute: "fence" } : undefined };
    }
    case "vacate":
      return vacates(write);
    case "want":
      return { kind: "update", set: { wanted: write.until }, remove: [] };
    case "draw": {
      const set = { format: FORMAT, purge: purgeAt(write.seed) };
      return { kind: "update", set, remove: [], count: { attribute: "n", seed: write.seed } };
    }
    case "check":
      return { kind: "nothing" };
    default:
      return write satisfies never;
  }
}

/** What the table did: what was there before and what is there after, or what refused. */
export type Applied =
  | { readonly kind: "applied"; readonly before: Attributes | undefined; readonly after: Attributes | undefined }
  | { readonly kind: "refused"; readonly by: Attributes | undefined };

/** What a table does with a write, at one instant and whatever the time is. */
export function apply(item: Attributes | undefined, write: Write): Applied {
  if (!holds(askedBy(write), item)) return { kind: "refused", by: item };
  return { kind: "applied", before: item, after: changed(item, leftBy(write)) };
}

/**
 * The number that a write has drawn, by what was there before: a fencing token, or the ticket of a place. None where the
 * last one is not a whole number, 0 or more: this library did not write it.
 */
export function drawnBy(write: Write, before: Attributes | undefined): bigint | undefined {
  const count = countOf(write);
  const drawn = count && next(before?.[count.attribute], count.seed);
  return typeof drawn === "bigint" && drawn > 0n ? drawn : undefined;
}

/** What a write counts up, if it does. */
export function countOf(write: Write): Count | undefined {
  const effect = leftBy(write);
  return effect.kind === "update" ? effect.count : undefined;
}

function takes(write: Take): Effect {
  const { uuid, expires, ttlMs, owner, acquired, data, fenceSeed, tick } = write;
  const respects = memoryAfter(write);
  const row = { format: FORMAT, uuid, expires, ttlMs, owner, acquired, data };
  if (respects === "nothing") return { kind: "put", attributes: { ...row, purge: purgeAt(expires) } };
  const remove = data === undefined ? ["wanted", "data"] : ["wanted"];
  const count = fenceSeed === undefined ? undefined : { attribute: "fence", seed: fenceSeed };
  return { ...update({ ...row, tick }, remove, respects), count };
}

function vacates(write: Vacate): Effect {
  const { leaves, remembers } = write;
  if (isDelete(write)) return { kind: "delete" };
  switch (leaves.kind) {
    case "free":
    case "kept":
      return { kind: "update", set: { expires: 0 }, remove: ["uuid", "wanted"] };
    case "held":
      return update({ expires: leaves.expires, ttlMs: leaves.ttlMs }, ["uuid", "wanted"], remembers);
    case "untilExpires":
      return { kind: "update", set: {}, remove: ["uuid"] };
    default:
      return leaves satisfies never;
  }
}

function isDelete({ leaves, remembers }: Vacate): boolean {
  return leaves.kind === "free" && remembers === "nothing";
}

/** An update that stamps a lease, and with it the date of the purge, which a row with a tick must not have. */
function update(
  set: Attributes & { readonly expires: number },
  remove: readonly string[],
  respects: Memory,
): Extract<Effect, { kind: "update" }> {
  if (respects === "tick") return { kind: "update", set, remove: [...remove, "purge"] };
  return { kind: "update", set: { ...set, purge: purgeAt(set.expires) }, remove };
}

function isNumberIfAny(attribute: string): Condition {
  return any(missing(attribute), isNumber(attribute));
}

/** Held by this acquisition. */
function isHeldBy(uuid: string): Condition {
  return all(equal("uuid", uuid), equal("format", FORMAT));
}

function changed(item: Attributes | undefined, effect: Effect): Attributes | undefined {
  switch (effect.kind) {
    case "nothing":
      return item;
    case "delete":
      return undefined;
    case "put":
      return present(effect.attributes);
    case "update": {
      const { set, remove, count } = effect;
      const counted = count && { [count.attribute]: next(item?.[count.attribute], count.seed) };
      const removed = Object.fromEntries(remove.map((attribute) => [attribute, undefined]));
      return present({ ...item, ...present(set), ...counted, ...removed });
    }
    default:
      return effect satisfies never;
  }
}

function present(attributes: Attributes): Attributes {
  return Object.fromEntries(Object.entries(attributes).filter(([, value]) => value !== undefined));
}

/** One more, exactly; the condition has seen that the last one is a number, or that there is none and a seed. */
function next(last: unknown, seed: number | undefined): number | bigint | undefined {
  const from = last ?? seed;
  if (typeof from === "bigint" || Number.isSafeInteger(from)) return BigInt(from as number | bigint) + 1n;
  return typeof from === "number" ? from + 1 : undefined;
}
