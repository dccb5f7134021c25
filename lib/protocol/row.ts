import type { LockData, LockInfo } from "../lock-info.js";
import { type Address, kindOf } from "./addresses.js";
import { type HandOff, handOffIn } from "./hand-off.js";

/** The version of the row's layout that this library reads and writes. */
export const FORMAT = 1;

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
  /** How many permits the semaphore has, as the holder of this one knows it. */
  readonly permits: number | undefined;
  /** What the last hand-off has left; it counts only as long as it names the uuid that it is asked for. */
  readonly handOff: HandOff | undefined;
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
  const { format, uuid, expires, ttlMs, owner, acquired, data, wanted, fence, tick, permits } = attributes;
  if (format !== FORMAT) return { problem: `its format must be ${FORMAT}` };
  if (typeof owner !== "string") return { problem: "its owner must be a string" };
  if (uuid !== undefined && typeof uuid !== "string") return { problem: "its uuid must be a string" };
  if (!isInteger(expires)) return { problem: "its expires must be a whole number" };
  if (!isInteger(ttlMs)) return { problem: "its ttlMs must be a whole number" };
  if (!isInteger(acquired)) return { problem: "its acquired must be a whole number" };
  if (data !== undefined && !isMap(data)) return { problem: "its data must be a map" };
  if (wanted !== undefined && !isInteger(wanted)) return { problem: "its wanted must be a whole number" };
  if (tick !== undefined && !isInteger(tick)) return { problem: "its tick must be a whole number" };
  if (permits !== undefined && !isInteger(permits)) return { problem: "its permits must be a whole number" };
  // A fencing token may exceed 2^53, so it is kept exact.
  if (fence !== undefined && !isToken(fence)) return { problem: "its fence must be a whole number, 0 or more" };
  const token = fence === undefined ? undefined : BigInt(fence);
  const handOff = handOffIn(attributes.handOff);
  return {
    row: { name, sort, uuid, expires, ttlMs, owner, acquired, data, wanted, fence: token, tick, permits, handOff },
  };
}

const isInteger = (value: unknown): value is number => Number.isSafeInteger(value);

function isToken(value: unknown): value is number | bigint {
  return (typeof value === "bigint" || isInteger(value)) && value >= 0;
}

function isMap(value: unknown): value is LockData {
  if (typeof value !== "object" || value === null) return false;
  return !Array.isArray(value) && !(value instanceof Set) && !(value instanceof Uint8Array);
}

/** What a row of each kind is for people. */
const KINDS = {
  lock: "mutex",
  place: "mutex",
  permit: "semaphore",
  writer: "exclusive",
  reader: "shared",
} as const;

/** What a row says about its lock, for people. */
export function infoOf(row: Omit<Row, "wanted" | "fence" | "permits" | "handOff"> & Partial<Row>): LockInfo {
  const kind = KINDS[kindOf(row.sort) ?? "lock"];
  const { name, uuid, owner, ttlMs, data, tick } = row;
  const [acquired, expires] = [new Date(row.acquired), new Date(row.expires)];
  const handedOff = uuid !== undefined && row.handOff?.uuid === uuid;
  return { name, kind, uuid, handedOff, owner, acquired, expires, ttlMs, data, tick };
}
