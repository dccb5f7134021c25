import type { LockStoreError } from "../errors.js";
import type { TableLayout } from "../options/table.js";
import { FORMAT, purgeAt } from "../protocol/row.js";
import type { Waiter } from "../ticket-store.js";
import { foreign, type Item, number, rowOf } from "./items.js";

/** A table in which a lock can have more rows than its own. */
export interface QueueLayout extends TableLayout {
  readonly sort: string;
}

/** The greatest number that DynamoDB keeps exact has 38 digits: with as many in every key, keys sort as numbers do. */
const DIGITS = 38;
const LAST_TICKET = 10n ** BigInt(DIGITS) - 1n;

const COUNTER_SORT = "tickets";
const WAITER_SORT = /^queue#(\d+)$/;

export function counterKeyOf(layout: QueueLayout, name: string): Item {
  return { [layout.partition]: { S: layout.keyPrefix + name }, [layout.sort]: { S: COUNTER_SORT } };
}

export function waiterKeyOf(layout: QueueLayout, name: string, ticket: bigint): Item {
  return { [layout.partition]: { S: layout.keyPrefix + name }, [layout.sort]: { S: sortOf(ticket) } };
}

/** The sort key of a waiter's row. Tickets before the first and after the last have those of the first and last. */
export function sortOf(ticket: bigint): string {
  const inRange = ticket < 0n ? 0n : ticket > LAST_TICKET ? LAST_TICKET : ticket;
  return `queue#${inRange.toString().padStart(DIGITS, "0")}`;
}

export const FIRST_SORT: string = sortOf(0n);
export const LAST_SORT: string = sortOf(LAST_TICKET);

/** The ticket that a key names; undefined for one that is not a waiter's. */
export function ticketOf(layout: QueueLayout, key: Item): bigint | undefined {
  const digits = WAITER_SORT.exec(key[layout.sort]?.S ?? "")?.[1];
  return digits === undefined ? undefined : BigInt(digits);
}

export function waiterItemOf(layout: QueueLayout, waiter: Waiter): Item {
  return {
    ...waiterKeyOf(layout, waiter.name, waiter.ticket),
    format: number(FORMAT),
    uuid: { S: waiter.uuid },
    expires: number(waiter.expires),
    ttlMs: number(waiter.ttlMs),
    owner: { S: waiter.owner },
    acquired: number(waiter.acquired),
    [layout.ttl]: number(purgeAt(waiter.expires)),
  };
}

/** The waiter that an item shows. @throws {@link LockStoreError} if this library did not write the item. */
export function waiterOf(layout: QueueLayout, item: Item): Waiter {
  const { name, uuid, expires, ttlMs, owner, acquired } = rowOf(layout, item);
  const ticket = ticketOf(layout, item);
  if (ticket === undefined) throw foreign(layout, item, "its key is not that of a waiter");
  if (uuid === undefined) throw foreign(layout, item, "it has no uuid");
  return { name, ticket, uuid, expires, ttlMs, owner, acquired };
}

/** The ticket that a draw has given. @throws {@link LockStoreError} for a reply that shows none. */
export function drawnTicketOf(layout: QueueLayout, attributes: Item | undefined): bigint {
  const drawn = attributes?.n?.N;
  if (drawn === undefined || !/^\d+$/.test(drawn)) throw foreignCounter(layout, attributes);
  return BigInt(drawn);
}

export function foreignCounter(layout: QueueLayout, item: Item | undefined): LockStoreError {
  return foreign(layout, item ?? {}, "it does not count tickets");
}
