/**
 * What each write asks of the row that it meets. The words with a `#` are attributes, those with a `:` values; who
 * sends a condition gives both.
 *
 * | the row that is there                       | take   | take, kept | by uuid (***) | restamp |
 * |---------------------------------------------|--------|------------|---------------|---------|
 * | none                                        | yes    | yes        | no            | no      |
 * | not ours: no format, another, other types   | no     | no         | no            | no      |
 * | ours, lease over, or kept but free          | yes    | yes        |               |         |
 * | ours, lease runs                            | no     | no         |               |         |
 * | ours, lease runs, but seen unchanged        | yes    | yes        |               |         |
 * | ours, carries `fence` or `tick`             | no     | as above   |               |         |
 * | ours, the uuid it names                     | no (*) | no (*)     | yes (**)      | no      |
 * | ours, the uuid it names, exact `expires`    | no (*) | no (*)     | yes (**)      | yes     |
 *
 * (*) A claim is stamped later than the `earliest` that it is sent with, and nobody watches an acquisition of his own.
 * (**) A renewal or reissue only where it moves `expires` forward, so that a late copy of an earlier one changes nothing.
 * (***) Renewals, reissues, releases and the marks of waiters: writes that name the one acquisition that they are about.
 *
 * A reissue takes the old uuid away, so a second copy of it meets a row that is no longer its writer's. A late copy of a
 * take that draws a fencing token may be admitted by the row that its release left free: it spends a token that nobody
 * hears of, and the tokens after it are greater still.
 */

/** No item at all under this key. Every item has its partition key, whoever wrote it. */
const NO_ROW = "attribute_not_exists(#name)";

/**
 * An item that this library wrote, in the format that it reads: whatever a takeover may replace must be one that
 * would parse. A comparison with an attribute that is missing, or has another type, is false.
 */
const IS_OURS =
  "#format = :format AND attribute_type(#owner, :string) AND attribute_type(#ttlMs, :number) " +
  "AND attribute_type(#acquired, :number) AND (attribute_not_exists(#uuid) OR attribute_type(#uuid, :string))";

/** Nothing that must outlive the next holder: a put would wipe it out. */
const REMEMBERS_NOTHING = "attribute_not_exists(#fence) AND attribute_not_exists(#tick)";

/** The lease ended on the table's clock; a kept row that is free has the stamp 0. */
const IS_OVER = "#expires < :earliest";

/** The holder was watched for its whole lease and did not renew. Two watchers cannot both win: the first changes the pair. */
const IS_UNCHANGED = "(#expires < :earliest OR (#uuid = :seenUuid AND #expires = :seenExpires))";

/** Nobody's, for each way of taking it. */
export const IS_FREE: Readonly<Record<"put" | "putUnchanged" | "update" | "updateUnchanged", string>> = {
  put: `${NO_ROW} OR (${IS_OURS} AND ${REMEMBERS_NOTHING} AND ${IS_OVER})`,
  putUnchanged: `${NO_ROW} OR (${IS_OURS} AND ${REMEMBERS_NOTHING} AND ${IS_UNCHANGED})`,
  update: `${NO_ROW} OR (${IS_OURS} AND ${IS_OVER})`,
  updateUnchanged: `${NO_ROW} OR (${IS_OURS} AND ${IS_UNCHANGED})`,
};

/** Held under the uuid that the write is about: the writer's own, or the one that a waiter saw. */
export const IS_MINE = "#uuid = :uuid AND #format = :format";

/** Held by the writer, on a lease that ends earlier than the one it writes. */
export const IS_MINE_AND_EARLIER: string = `${IS_MINE} AND #expires < :expires`;

/** Exactly the lease that the writer stamped: not renewed, not taken, not corrected already. */
export const IS_EXACTLY = "#uuid = :seenUuid AND #format = :format AND #expires = :seenExpires";
