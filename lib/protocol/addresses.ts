/** The key of a row. */
export interface Address {
  readonly name: string;
  readonly sort: string;
}

/** The sort key of a mutex's row, and of the row that says that a shared mutex has a writer. */
export const LOCK_SORT = "lock";
export const WRITER_SORT = "writer";

/**
 * The sort key of the last result of a single flight, right before the mutex's own row: one query shows both. Behind that row,
 * it would lie between the row and the places of the fair queue, and every look at the queue would read the value as well.
 */
const RESULT_SORT = "flight";

/** Every key has four digits, so that keys sort as numbers do: more than the permits of a semaphore need. */
const PERMIT_SORT = /^semaphore#(\d{4})$/;

const READER_PREFIX = "reader#";
const READER_SORT = /^reader#[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** The greatest number that DynamoDB keeps exact has 38 digits. */
const TICKET_DIGITS = 38;
const LAST_TICKET = 10n ** BigInt(TICKET_DIGITS) - 1n;
const PLACE_SORT = /^(?:semaphore-|writer-)?queue#(\d{38})$/;

/** Some of the rows of one name, by their sort keys: from the first to the last. */
export interface SortRange {
  readonly first: string;
  readonly last: string;
}

/**
 * The queue of a name, one for each kind of lock. Its places sort right behind the rows that they wait for, so that one query
 * shows these and the first places, and no row of another kind lies in between; its counter, which is no row, sorts behind
 * them.
 */
export interface QueueKeys {
  readonly prefix: string;
  /** The sort key of the counter that numbers its places. */
  readonly counter: string;
}

export const MUTEX_QUEUE: QueueKeys = { prefix: "queue#", counter: "tickets" };
export const SEMAPHORE_QUEUE: QueueKeys = { prefix: "semaphore-queue#", counter: "semaphore-tickets" };
export const SHARED_MUTEX_QUEUE: QueueKeys = { prefix: "writer-queue#", counter: "writer-tickets" };

/** The key of a mutex's own row. */
export const lockAt = (name: string): Address => ({ name, sort: LOCK_SORT });

/** The key of the result of a single flight. */
export const resultAt = (name: string): Address => ({ name, sort: RESULT_SORT });

/** The result of the last flight, and the mutex's own row. */
export const RESULT_AND_LOCK: SortRange = { first: RESULT_SORT, last: LOCK_SORT };

/** The key of one permit of a semaphore; they are numbered from 0. */
export const permitAt = (name: string, permit: number): Address => ({ name, sort: permitSort(permit) });

/** The key of the exclusive side of a shared mutex. */
export const writerAt = (name: string): Address => ({ name, sort: WRITER_SORT });

/** The key of one acquisition of the shared side. */
export const readerAt = (name: string, uuid: string): Address => ({ name, sort: READER_PREFIX + uuid });

const permitSort = (permit: number): string => `semaphore#${String(permit).padStart(4, "0")}`;

/** All permits of a semaphore, including those that only another host knows of. */
export const PERMITS: SortRange = { first: permitSort(0), last: permitSort(9_999) };

/** All acquisitions of the shared side: `$` follows `#`. */
export const READERS: SortRange = { first: READER_PREFIX, last: "reader$" };

/** The permit that a sort key names; undefined for a row that is not a permit. */
export function permitOf(sort: string): number | undefined {
  const digits = PERMIT_SORT.exec(sort)?.[1];
  return digits === undefined ? undefined : Number(digits);
}

/**
 * The uuid on each row of permits that were taken together: the first has that of the acquisition, and each of the others one of its
 * own, so that no write for one of them is taken for that of another.
 */
export const memberUuid = (uuid: string, index: number): string => (index === 0 ? uuid : `${uuid}#${index}`);

/** The acquisition that a row belongs to: that of its uuid, but for permits that were taken together. */
export function acquisitionOf({ sort, uuid }: { readonly sort: string; readonly uuid: string }): string {
  return permitOf(sort) === undefined ? uuid : uuid.replace(/#\d+$/, "");
}

/** The key of a place in a fair queue. Tickets sort as their numbers do. */
export const placeAt = (name: string, ticket: bigint, queue: QueueKeys = MUTEX_QUEUE): Address => ({
  name,
  sort: placeSort(ticket, queue),
});

/** Tickets before the first and after the last have the sort key of the first and the last. */
export function placeSort(ticket: bigint, { prefix }: QueueKeys = MUTEX_QUEUE): string {
  const inRange = ticket < 0n ? 0n : ticket > LAST_TICKET ? LAST_TICKET : ticket;
  return prefix + inRange.toString().padStart(TICKET_DIGITS, "0");
}

/** All places of a queue. */
export const placesOf = (queue: QueueKeys): SortRange => ({
  first: placeSort(0n, queue),
  last: placeSort(LAST_TICKET, queue),
});

/** The ticket that a sort key names; undefined for a row that is not a place. */
export function ticketOf(sort: string): bigint | undefined {
  const digits = PLACE_SORT.exec(sort)?.[1];
  return digits === undefined ? undefined : BigInt(digits);
}

/** What a row is a lease on, by its sort key; a `result` is no lease. Undefined for an item that is not one of our rows. */
export type RowKind = "lock" | "permit" | "writer" | "reader" | "place" | "result";

export function kindOf(sort: string): RowKind | undefined {
  if (sort === LOCK_SORT) return "lock";
  if (sort === WRITER_SORT) return "writer";
  if (sort === RESULT_SORT) return "result";
  if (PERMIT_SORT.test(sort)) return "permit";
  if (READER_SORT.test(sort)) return "reader";
  return PLACE_SORT.test(sort) ? "place" : undefined;
}
