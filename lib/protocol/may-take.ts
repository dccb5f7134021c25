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
  /**
   * The earliest time that the table's clock may show; 1 where no clock is trusted: then only a row that is kept but free is over.
   */
  readonly earliest: number;
  /**
   * The lease that has been seen unchanged for the row's own `ttlMs`; or a claim of this process that nobody relies on, as
   * it was seen.
   */
  readonly unchanged?: Sighting | undefined;
}

/** The lease ended on the table's clock; a row that is kept but free has the stamp 0. */
export const HAS_EXPIRED: Condition = less("expires", { value: "earliest" });

/** Exactly the lease that was seen: a renewal or a take changes the pair. */
export const IS_SEEN_LEASE: Condition = all(
  equal("uuid", { value: "seenUuid" }),
  equal("expires", { value: "seenExpires" }),
);

/**
 * The row's lease is over, or it is exactly the lease that was seen unchanged. Two watchers cannot both win: a take changes the
 * pair.
 */
export const IS_UNCHANGED_LEASE: Condition = any(HAS_EXPIRED, IS_SEEN_LEASE);

/** The same for a row without a holder. */
export const IS_UNCHANGED_HOLD: Condition = any(
  HAS_EXPIRED,
  all(missing("uuid"), equal("expires", { value: "seenExpires" })),
);

/**
 * Whether a row may be taken, by either rule of a takeover:
 *
 * | the row                                                   | may be taken |
 * |-----------------------------------------------------------|--------------|
 * | none                                                      | yes          |
 * | its `expires` is before `earliest` (kept but free: 0)     | yes          |
 * | exactly the lease that was seen unchanged for its `ttlMs` | yes          |
 * | any other                                                 | no           |
 */
export function mayTake(row: Pick<Row, "uuid" | "expires"> | undefined, { earliest, unchanged }: Knowledge): boolean {
  if (row === undefined) return true;
  const { uuid, expires } = row;
  if (unchanged === undefined) return holds(HAS_EXPIRED, { uuid, expires }, { earliest });
  const condition = unchanged.uuid === undefined ? IS_UNCHANGED_HOLD : IS_UNCHANGED_LEASE;
  const values = { earliest, seenUuid: unchanged.uuid, seenExpires: unchanged.expires };
  return holds(condition, { uuid, expires }, values);
}
