import type { QueryCommandInput, ScanCommandInput } from "@aws-sdk/client-dynamodb";
import { LockStoreError } from "../errors.js";
import type { TableLayout } from "../options/table.js";
import { type Address, kindOf, LOCK_SORT, PERMITS, READERS, WRITER_SORT } from "../protocol/addresses.js";
import { type Attributes, FORMAT, parseRow, type Row } from "../protocol/row.js";
import { BadRow, type Cursor, type Page, type RangeQuery, sorted } from "../store.js";
import { type Item, itemKey, storedValue } from "./compile.js";
import { unmarshalledData } from "./data.js";
import type { Reply } from "./transport.js";

const MAX_SHOWN = 500;

/** How many items one page of a scan reads, locks or not: no request takes long, and a caller may stop early. */
const PAGE_ITEMS = 250;

/** The address of an item whose key begins with the table's prefix. */
export function addressOf(layout: TableLayout, item: Item): Address {
  const name = (item[layout.partition]?.S ?? "").slice(layout.keyPrefix.length);
  return { name, sort: layout.sort === undefined ? LOCK_SORT : (item[layout.sort]?.S ?? "") };
}

/** An item's attributes without its key. */
export function attributesOf(layout: TableLayout, item: Item): Attributes {
  const all = Object.entries(unmarshalledData(item));
  const others = all.filter(([name]) => name !== layout.partition && name !== layout.sort);
  return Object.fromEntries(others.map(([name, value]) => [name === layout.ttl ? "purge" : name, value]));
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

function show(item: Item): string {
  const json = JSON.stringify(item, (_key, value) =>
    value instanceof Uint8Array ? Buffer.from(value).toString("base64") : value,
  );
  return json.length > MAX_SHOWN ? `${json.slice(0, MAX_SHOWN)}…` : json;
}

/** @throws {@link LockStoreError} for a table without a sort key. */
export function queryOf(layout: TableLayout, query: RangeQuery): QueryCommandInput {
  const { tableName, keyPrefix, partition, sort } = layout;
  if (sort === undefined) {
    throw new LockStoreError(`Table ${tableName} has no sort key, and so no rows of lock ${query.name} beside its own`);
  }
  return {
    TableName: tableName,
    KeyConditionExpression: "#name = :name AND #sort BETWEEN :first AND :last",
    ExpressionAttributeNames: { "#name": partition, "#sort": sort },
    ExpressionAttributeValues: {
      ":name": storedValue(keyPrefix + query.name),
      ":first": storedValue(query.first),
      ":last": storedValue(query.last),
    },
    Limit: query.limit,
    ConsistentRead: query.consistent,
    ...(query.after !== undefined && { ExclusiveStartKey: itemKey(layout, { name: query.name, sort: query.after }) }),
  };
}

export function rangePageOf(layout: TableLayout, reply: Reply): Page<string> {
  const { Items = [], LastEvaluatedKey } = reply ?? {};
  const next = LastEvaluatedKey && addressOf(layout, LastEvaluatedKey).sort;
  return { ...sorted(Items, (item) => ourRow(layout, item)), next };
}

/** One page of a scan for locks' rows. The filter spares the network, not the read: every item that is passed is paid for. */
export function scanOf(layout: TableLayout, prefix: string, after: Cursor | undefined): ScanCommandInput {
  const begin = layout.keyPrefix + prefix;
  const names: Record<string, string> = { "#format": "format" };
  const values: Item = { ":format": storedValue(FORMAT) };
  const filters = ["#format = :format"];
  if (layout.sort !== undefined) {
    names["#sort"] = layout.sort;
    values[":lock"] = storedValue(LOCK_SORT);
    values[":writer"] = storedValue(WRITER_SORT);
    values[":permits"] = storedValue(PERMITS.first.slice(0, -4));
    values[":readers"] = storedValue(READERS.first);
    filters.push("(#sort IN (:lock, :writer) OR begins_with(#sort, :permits) OR begins_with(#sort, :readers))");
  }
  // Every name begins with nothing.
  if (begin !== "") {
    names["#name"] = layout.partition;
    values[":begin"] = storedValue(begin);
    filters.push("begins_with(#name, :begin)");
  }
  return {
    TableName: layout.tableName,
    FilterExpression: filters.join(" AND "),
    ExpressionAttributeNames: names,
    ExpressionAttributeValues: values,
    Limit: PAGE_ITEMS,
    ExclusiveStartKey: after as Item | undefined,
  };
}

export function scanPageOf(layout: TableLayout, reply: Reply): Page<Cursor> {
  const { Items = [], LastEvaluatedKey } = reply ?? {};
  const { rows, bad } = sorted(Items, (item) => ourRow(layout, item));
  // What an application keeps in the same table may look like a lock's row from afar: then it is none of ours.
  return { rows, bad: bad.filter(({ isDamaged }) => isDamaged), next: LastEvaluatedKey };
}

/** The row of an item under a key of ours. What else an application keeps in between is none of ours. */
function ourRow(layout: TableLayout, item: Item): Row | undefined {
  const address = addressOf(layout, item);
  return kindOf(address.sort) === undefined ? undefined : rowOf(layout, address, item);
}
