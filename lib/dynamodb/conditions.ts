import type { Terms } from "../store.js";

/**
 * What each write asks of the row that it meets. The words with a `#` are attributes, those with a `:` values; who
 * sends a condition gives both.
 *
 * | the row that is there                      | take   | take, kept | take, ticked | by uuid (***) | restamp |
 * |--------------------------------------------|--------|------------|--------------|---------------|---------|
 * | none                                       | yes    | yes        | yes          | no            | no      |
 * | not ours: no format, another, other types  | no     | no         | no           | no            | no      |
 * | ours, lease or hold over, or kept but free | yes    | yes        | yes          |               |         |
 * | ours, lease or hold runs                   | no     | no         | no           |               |         |
 * | ours, it runs, but was seen unchanged      | yes    | yes        | yes          |               |         |
 * | ours, carries `fence`                      | no     | as above   | as above     |               |         |
 * | ours, carries `tick`                       | no     | no         | as above     |               |         |
 * | ours, its `tick` is the claim's or later   | no     | no         | no           |               |         |
 * | ours, the uuid it names                    | no (*) | no (*)     | no (*)       | yes (**)      | no      |
 * | ours, the uuid it names, exact `expires`   | no (*) | no (*)     | no (*)       | yes (**)      | yes     |
 *
 * (*) A claim is stamped later than the `earliest` that it is sent with, and nobody watches an acquisition of his own.
 * (**) A renewal or reissue only where it moves `expires` forward, so that a late copy of an earlier one changes nothing.
 * (***) Renewals, reissues, releases, unlocks by force and the marks of waiters: writes that name the one acquisition
 * that they are about. An unlock by force takes that uuid away, so a late copy of it touches nobody.
 *
 * A reissue or a release takes the old uuid off the row, or the row away, so no second copy of it, nor a late copy of
 * anything else that the holder sent, meets what it asks for: not on a row that was parked either. A late copy of a
 * take that draws a fencing token may be admitted by the row that its release left free: it spends a token that nobody
 * hears of, and the tokens after it are greater still.
 */

/** No item at all under this key. Every item has its partition key, whoever wrote it. */
export const NO_ROW = "attribute_not_exists(#name)";

/**
 * An item that this library wrote, in the format that it reads: whatever a takeover may replace must be one that
 * would parse. A comparison with an attribute that is missing, or has another type, is false.
 */
const IS_OURS =
  "#format = :format AND attribute_type(#owner, :string) AND attribute_type(#ttlMs, :number) " +
  "AND attribute_type(#acquired, :number) AND (attribute_not_exists(#uuid) OR attribute_type(#uuid, :string))";

/** Nothing that must outlive the next holder: a put would wipe it out. */
const REMEMBERS_NOTHING = "attribute_not_exists(#fence) AND attribute_not_exists(#tick)";

/** Nothing that must outlive a purge date. */
const REMEMBERS_NO_TICK = "attribute_not_exists(#tick)";

/**
 * Nothing has run at this tick, nor at a later one. The write that asks for it writes the tick, so that a late copy of
 * it is refused by what the first one left, whatever has become of the lease.
 */
const IS_LATER_TICK = "(attribute_not_exists(#tick) OR #tick < :tick)";

/** The lease or the hold ended on the table's clock; a kept row that is free has the stamp 0. */
const IS_OVER = "#expires < :earliest";

/** The holder was watched for its whole lease and did not renew. Two watchers cannot both win: the first changes the pair. */
const IS_UNCHANGED = "(#expires < :earliest OR (#uuid = :seenUuid AND #expires = :seenExpires))";

/** The same for a row without a holder, whose hold was watched: whoever takes it puts a uuid there. */
const IS_PARKED_UNCHANGED = "(#expires < :earliest OR (attribute_not_exists(#uuid) AND #expires = :seenExpires))";

/** Nobody's, for a take under these terms. */
export function isFree({ unchanged, kept, ticked }: Terms, tick: number | undefined): string {
  const asks = [IS_OURS];
  if (!kept) asks.push(REMEMBERS_NOTHING);
  else if (ticked !== true) asks.push(REMEMBERS_NO_TICK);
  else if (tick !== undefined) asks.push(IS_LATER_TICK);
  if (unchanged === undefined) asks.push(IS_OVER);
  else asks.push(unchanged.uuid === undefined ? IS_PARKED_UNCHANGED : IS_UNCHANGED);
  return `${NO_ROW} OR (${asks.join(" AND ")})`;
}

/** Held by the writer. */
export const IS_MINE = "#uuid = :uuid AND #format = :format";

/** Held by the writer, on a lease that ends earlier than the one it writes. */
export const IS_MINE_AND_EARLIER: string = `${IS_MINE} AND #expires < :expires`;

/**
 * Held by the writer of a transaction, who has renewed: its stamp is later than the first one of this uuid.
 *
 * A late copy of the take can bring the uuid back after the release, with its first stamp and no other, and so can a
 * late copy of a reissue. Where the lock is fenced, such a copy has drawn another token as well.
 */
export const IS_STILL_HELD: string = `${IS_MINE} AND #expires > :after`;

export const IS_STILL_HELD_WITH_TOKEN: string = `${IS_STILL_HELD} AND #fence = :fence`;

/** Exactly the lease that the writer stamped: not renewed, not taken, not corrected already. */
export const IS_EXACTLY = "#uuid = :seenUuid AND #format = :format AND #expires = :seenExpires";

/** No counter yet, or one that this library wrote. A copy of a draw only leaves a ticket out. */
export const IS_COUNTER: string = `${NO_ROW} OR (#format = :format AND attribute_type(#n, :number))`;
