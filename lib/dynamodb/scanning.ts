import type { ScanCommandInput } from "@aws-sdk/client-dynamodb";
import type { TableLayout } from "../options/table.js";
import { FORMAT } from "../protocol/row.js";
import type { Cursor, Row, RowPage } from "../store.js";
import { type Item, LOCK_SORT, number, rowOf } from "./items.js";
import type { Reply } from "./transport.js";

/**
 * How many items one page looks at, whether they are locks or not: so that no request takes long, and whoever has seen
 * enough has not paid for much more.
 */
const PAGE_ITEMS = 250;

/** One page of a scan for locks' rows. The filter spares the network, not the read: every item that is passed is paid for. */
export function scanOf(layout: TableLayout, prefix: string, after: Cursor | undefined): ScanCommandInput {
  const begin = layout.keyPrefix + prefix;
  const names: Record<string, string> = { "#format": "format" };
  const values: Item = { ":format": number(FORMAT) };
  const filters = ["#format = :format"];
  if (layout.sort !== undefined) {
    names["#sort"] = layout.sort;
    values[":lock"] = { S: LOCK_SORT };
    filters.push("#sort = :lock");
  }
  // Every name begins with nothing.
  if (begin !== "") {
    names["#name"] = layout.partition;
    values[":begin"] = { S: begin };
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

export function pageOf(layout: TableLayout, reply: Reply): RowPage {
  const { Items = [], LastEvaluatedKey } = reply ?? {};
  return { rows: Items.flatMap((item) => lockIn(layout, item)), next: LastEvaluatedKey };
}

/** What an application keeps in the same table may look like a lock's row from afar: then it is none of ours. */
function lockIn(layout: TableLayout, item: Item): Row[] {
  try {
    return [rowOf(layout, item)];
  } catch {
    return [];
  }
}
