import type { LockData, LockInfo } from "../lock-info.js";

/** The version of the row's layout that this library reads and writes. */
export const FORMAT = 1;

/** The sort key of a mutex's own row, and of the counter that numbers the places of its queue. */
export const LOCK_SORT = "lock";
export const COUNTER_SORT = "tickets";

/** The greatest number that DynamoDB keeps exact has 38 digits: with as many in every key, keys sort as numbers do. */
const TICKET_DIGITS = 38;
const LAST_TICKET = 10n ** BigInt(TICKET_DIGITS) - 1n;
const PLACE_SORT = /^queue#(\d{38})$/;

/** The key of a row. */
export interface Address {
  readonly name: string;
  readonly sort: string;
}

/** The key of a mutex's own row. */
export const lockAt = (name: string): Address => ({ name, sort: LOCK_SORT });

/** The key of a place in the fair queue of a mutex. Tickets sort as their numbers do. */
export const placeAt = (name: string, ticket: bigint): Address => ({ name, sort: placeSort(ticket) });

/** Tickets before the first and after the last have the sort key of the first and the last. */
export function placeSort(ticket: bigint): string {
  const inRange = ticket < 0n ? 0n : ticket > LAST_TICKET ? LAST_TICKET : ticket;
  return `queue#${inRange.toString().padStart(TICKET_DIGITS, "0")}`;
}

export const FIRST_PLACE: string = placeSort(0n);
export const LAST_PLACE: string = placeSort(LAST_TICKET);

/** The ticket that a sort key names; undefined for a row that is not a place. */
export function ticketOf(sort: string): bigint | undefined {
  const digits = PLACE_SORT.exec(sort)?.[1];
  return digits === undefined ? undefined : BigInt(digits);
}

/** One of our rows, as it was at some moment. */
export interface Row extends Address {
  /** The acquisition that holds it; absent on a row without a holder, which is held for a while, or kept but free. */
  readonly uuid: string | undefined;
  /** Epoch ms on the table's clock; 0 on a row that is kept but free. */
  readonly expires: number;
  readonly ttlMs: number;
  readonly owner: string;
  readonly acquired: number;
  readonly data: LockData | undefined;
  /** Until when another host says that it waits. */
  readonly wanted: number | undefined;
  readonly fence: bigint | undefined;
  readonly tick: number | undefined;
}

/**
 * What a row remembers after its release, in the order of what it asks of its writers: a row with a `fence` is updated and
 * never replaced or deleted; a row with a `tick` gets no purge date either.
 */
export type Memory = "nothing" | "fence" | "tick";

/** An item's attributes as plain values, its key left out: strings, numbers, bigints where a number would be inexact. */
export type Attributes = Readonly<Record<string, unknown>>;

/** The row that an item shows, or what is wrong with the item: then this library did not write it. */
export type Parsed = { readonly row: Row } | { readonly problem: string };

export function parseRow({ name, sort }: Address, attributes: Attributes): Parsed {
  const { format, uuid, expires, ttlMs, owner, acquired, data, wanted, fence, tick } = attributes;
  if (format !== FORMAT) return { problem: `its format must be ${FORMAT}` };
  if (typeof owner !== "string") return { problem: "its owner must be a string" };
  if (uuid !== undefined && typeof uuid !== "string") return { problem: "its uuid must be a string" };
  if (!isInteger(expires)) return { problem: "its expires must be a whole number" };
  if (!isInteger(ttlMs)) return { problem: "its ttlMs must be a whole number" };
  if (!isInteger(acquired)) return { problem: "its acquired must be a whole number" };
  if (data !== undefined && !isMap(data)) return { problem: "its data must be a map" };
  if (wanted !== undefined && !isInteger(wanted)) return { problem: "its wanted must be a whole number" };
  if (tick !== undefined && !isInteger(tick)) return { problem: "its tick must be a whole number" };
  // A fencing token may exceed 2^53, so it is kept exact.
  if (fence !== undefined && !isToken(fence)) return { problem: "its fence must be a whole number, 0 or more" };
  const token = fence === undefined ? undefined : BigInt(fence);
  return { row: { name, sort, uuid, expires, ttlMs, owner, acquired, data, wanted, fence: token, tick } };
}

const isInteger = (value: unknown): value is number => Number.isSafeInteger(value);

function isToken(value: unknown): value is number | bigint {
  return (typeof value === "bigint" || isInteger(value)) && value >= 0;
}

function isMap(value: unknown): value is LockData {
  if (typeof value !== "object" || value === null) return false;
  return !Array.isArray(value) && !(value instanceof Set) && !(value instanceof Uint8Array);
}

/** What a row says about its lock, for people. */
export function infoOf(row: Omit<Row, "wanted" | "fence">): LockInfo {
  const { name, uuid, owner, acquired, expires, ttlMs, data, tick } = row;
  return { name, uuid, owner, acquired: new Date(acquired), expires: new Date(expires), ttlMs, data, tick };
}
