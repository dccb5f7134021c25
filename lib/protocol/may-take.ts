import { all, any, type Condition, equal, holds, less, missing } from "./conditions.js";
import type { Row } from "./row.js";

/** A row as a watcher saw it: the identity of one lease between two renewals, or of one hold without a holder. */
export interface Sighting {
  /** Absent where the row had no holder. */
  readonly uuid: string | undefined;
  readonly expires: number;
}

/** What a process knows of the time, and of the row that it wants, at the moment at which it asks. */
export interface Knowledge {
  /** The earliest time that the table's clock may show; 1 where no clock is trusted: only a row that was kept free is over. */
  readonly earliest: number;
  /** The lease that has been seen unchanged for the row's own `ttlMs`. */
  readonly unchanged?: Sighting | undefined;
}

/**
 * Whether a row may be taken, by either rule of a takeover:
 *
 * | the row                                                   | may be taken |
 * |-----------------------------------------------------------|--------------|
 * | none                                                      | yes          |
 * | its `expires` is before `earliest` (kept but free: 0)     | yes          |
 * | exactly the lease that was seen unchanged for its `ttlMs` | yes          |
 * | any other                                                 | no           |
 *
 * Two watchers cannot both win: the first one's take changes uuid and `expires`.
 */
export function mayTake(row: Row | undefined, knowledge: Knowledge): boolean {
  return row === undefined || holds(isOver(knowledge), { ...row });
}

/** The same of a row that is there, as a condition of a write. */
export function isOver({ earliest, unchanged }: Knowledge): Condition {
  const hasExpired = less("expires", earliest);
  if (unchanged === undefined) return hasExpired;
  const sameHolder = unchanged.uuid === undefined ? missing("uuid") : equal("uuid", unchanged.uuid);
  return any(hasExpired, all(sameHolder, equal("expires", unchanged.expires)));
}
