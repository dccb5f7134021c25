import type { LockInfo } from "../lock-info.js";
import type { Row, Terms } from "../store.js";
import type { Bounds } from "../time/clock.js";

/** The version of the row's layout that this library reads and writes. */
export const FORMAT = 1;

/** How long after its lease a row may stay before DynamoDB's TTL feature removes it. */
const PURGE_AFTER_MS = 7 * 24 * 60 * 60 * 1_000;

/** Whether the row outlives its release, because it remembers something. */
export function isKept(row: Row): boolean {
  return row.fence !== undefined || row.tick !== undefined;
}

/** Whether another host says that it waits for the lock. A hint: without bounds it is believed. */
export function isWanted(row: Row, bounds: Bounds | undefined): boolean {
  return row.wanted !== undefined && (bounds === undefined || row.wanted > bounds.earliest);
}

/** Whether the row's tick, if it has one, leaves room for a run at this one. */
export function isDone(row: Row, tick: number | undefined): boolean {
  return tick !== undefined && row.tick !== undefined && row.tick >= tick;
}

/**
 * Whether the lock is somebody's, for those who only look: its holder's, also when its lease is over and nobody has taken
 * it since, or nobody's until the end of a hold. Without bounds no hold is known to be over.
 */
export function isTaken(row: Row, bounds: Bounds | undefined): boolean {
  return row.uuid !== undefined || row.expires >= earliestOf(bounds);
}

/** Whether a take under these terms would replace the row. The same truth table as the store's conditions. */
export function admits(terms: Terms, row: Row, tick?: number): boolean {
  if (isKept(row) && !terms.kept) return false;
  if ((row.tick !== undefined && terms.ticked !== true) || isDone(row, tick)) return false;
  if (row.expires < terms.earliest) return true;
  const { unchanged } = terms;
  return unchanged !== undefined && row.uuid === unchanged.uuid && row.expires === unchanged.expires;
}

/** What a condition may compare `expires` with. Without bounds only a kept row that is free counts as over. */
export function earliestOf(bounds: Bounds | undefined): number {
  return bounds === undefined ? 1 : Math.max(1, Math.floor(bounds.earliest));
}

/** Epoch seconds, which is what DynamoDB's TTL feature reads: a week after the lease, so that it never ends a live one. */
export function purgeAt(expires: number): number {
  return Math.ceil((expires + PURGE_AFTER_MS) / 1_000);
}

export function infoOf(row: Row): LockInfo {
  return {
    name: row.name,
    uuid: row.uuid,
    owner: row.owner,
    acquired: new Date(row.acquired),
    expires: new Date(row.expires),
    ttlMs: row.ttlMs,
    data: row.data,
    tick: row.tick,
  };
}
