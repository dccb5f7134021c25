import type { QueryCommandInput, ScanCommandInput } from "@aws-sdk/client-dynamodb";
import { LockStoreError } from "../errors.js";
import type { TableLayout } from "../options/table.js";
import { kindOf, LOCK_SORT, PERMITS, READERS, WRITER_SORT } from "../protocol/addresses.js";
import { FORMAT, type Row } from "../protocol/row.js";
import { type Cursor, type Page, type RangeQuery, sorted } from "../store.js";
import { keyOf, storedValue } from "./compile.js";
import { addressOf, type Item, rowOf } from "./items.js";
import type { Reply } from "./transport.js";

/** How many items one page of a scan reads, locks or not: no request takes long, and a caller may stop early. */
const PAGE_ITEMS = 250;

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
    ...(query.after === undefined ? {} : { ExclusiveStartKey: keyOf(layout, { name: query.name, sort: query.after }) }),
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
    ...(after === undefined ? {} : { ExclusiveStartKey: after as Item }),
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
