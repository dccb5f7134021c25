import type { AttributeValue } from "@aws-sdk/client-dynamodb";
import { LockStoreError } from "../errors.js";
import type { TableLayout } from "../options/table.js";
import { type Address, LOCK_SORT } from "../protocol/addresses.js";
import { type Attributes, parseRow, type Row } from "../protocol/row.js";
import { BadRow } from "../store.js";
import { numberOf, unmarshalledData } from "./data.js";

export type Item = Record<string, AttributeValue>;

const MAX_SHOWN = 500;

/** The address of an item whose key begins with the table's prefix. */
export function addressOf(layout: TableLayout, item: Item): Address {
  const name = (item[layout.partition]?.S ?? "").slice(layout.keyPrefix.length);
  return { name, sort: layout.sort === undefined ? LOCK_SORT : (item[layout.sort]?.S ?? "") };
}

/** An item's attributes without its key: null for each that has a type which none of ours has. */
export function attributesOf(layout: TableLayout, item: Item): Attributes {
  const others = Object.entries(item).filter(([name]) => name !== layout.partition && name !== layout.sort);
  return Object.fromEntries(others.map(([name, value]) => [name === layout.ttl ? "purge" : name, plainOf(value)]));
}

/** The row that an item shows. @throws {@link LockStoreError} if this library did not write the item. */
export function rowOf(layout: TableLayout, address: Address, item: Item): Row {
  const parsed = parseRow(address, attributesOf(layout, item));
  if ("row" in parsed) return parsed.row;
  throw new BadRow(messageOf(layout, item, parsed.problem), address, {
    isDamaged: parsed.isDamaged,
    owner: item.owner?.S,
  });
}

export function foreign(layout: TableLayout, item: Item, because: string): LockStoreError {
  return new LockStoreError(messageOf(layout, item, because));
}

/** What is wrong and what to do about it, with the command that removes exactly this item: the library never does. */
function messageOf({ tableName, partition, sort }: TableLayout, item: Item, because: string): string {
  const names = [partition, sort].flatMap((name) => name ?? []);
  const key = JSON.stringify(Object.fromEntries(names.map((name) => [name, item[name]])));
  return (
    `Table ${tableName} has an item under this lock's key that is not a lock: ${because}. It was left as it is. ` +
    "Give the locks a table of their own, or a keyPrefix that nothing else uses, or remove the item if it is not " +
    `needed, with \`aws dynamodb delete-item --table-name ${tableName} --key '${key.replaceAll("'", "'\\''")}'\`: ${show(item)}`
  );
}

/** @param value undefined where the SDK gives no value: it has none for an attribute called `__proto__`. */
function plainOf(value: AttributeValue = { NULL: true }): unknown {
  const { S, N, M } = value;
  if (S !== undefined) return S;
  if (N !== undefined) return numberOf(N);
  return M === undefined ? null : unmarshalledData(M);
}

function show(item: Item): string {
  const json = JSON.stringify(item, (_key, value) =>
    value instanceof Uint8Array ? Buffer.from(value).toString("base64") : value,
  );
  return json.length > MAX_SHOWN ? `${json.slice(0, MAX_SHOWN)}…` : json;
}
