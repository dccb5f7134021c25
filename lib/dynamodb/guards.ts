import type { AttributeValue, TransactWriteItem } from "@aws-sdk/client-dynamodb";
import { unmarshall } from "@aws-sdk/util-dynamodb";
import { LockConfigError } from "../errors.js";
import type { DocumentGuard } from "../guard.js";
import type { TableLayout } from "../options/table.js";
import { FORMAT } from "../protocol/row.js";
import type { Guard } from "../store.js";
import { IS_STILL_HELD, IS_STILL_HELD_WITH_TOKEN } from "./conditions.js";
import { type Item, keyOf, number } from "./items.js";

/** DynamoDB's limit for a transaction. */
const MOST_ITEMS = 100;

/** What both forms have, with nothing left out. */
interface Check extends Omit<DocumentGuard["ConditionCheck"], "Key" | "ExpressionAttributeValues"> {
  readonly Key: Item;
  readonly ExpressionAttributeValues: Item;
}

/** The guard as an item of a transaction. */
export function guardItem(layout: TableLayout, guard: Guard): TransactWriteItem {
  return { ConditionCheck: checkOf(layout, guard) };
}

/** The same for a DocumentClient, which takes plain values. */
export function documentGuard(layout: TableLayout, guard: Guard): DocumentGuard {
  const { Key, ExpressionAttributeValues, ...check } = checkOf(layout, guard);
  const plain = (item: Item) => unmarshall(item, { wrapNumbers: exactly });
  return { ConditionCheck: { ...check, Key: plain(Key), ExpressionAttributeValues: plain(ExpressionAttributeValues) } };
}

function checkOf(layout: TableLayout, { name, uuid, after, fence }: Guard): Check {
  const isFenced = fence !== undefined;
  const names = ["uuid", "format", "expires", ...(isFenced ? ["fence"] : [])];
  return {
    TableName: layout.tableName,
    Key: keyOf(layout, name),
    ConditionExpression: isFenced ? IS_STILL_HELD_WITH_TOKEN : IS_STILL_HELD,
    ExpressionAttributeNames: Object.fromEntries(names.map((attribute) => [`#${attribute}`, attribute])),
    ExpressionAttributeValues: {
      ":uuid": { S: uuid },
      ":format": number(FORMAT),
      ":after": number(after),
      ...(isFenced ? { ":fence": { N: `${fence}` } } : {}),
    },
    ReturnValuesOnConditionCheckFailure: "ALL_OLD",
  };
}

function exactly(digits: string): number | bigint {
  const value = Number(digits);
  return Number.isSafeInteger(value) ? value : BigInt(digits);
}

/**
 * Refuses what cannot go along with a guard, before anything is sent.
 * @throws {@link LockConfigError} for too many items, and for one on the lock's own row.
 */
export function admitItems(layout: TableLayout, name: string, items: readonly TransactWriteItem[]): void {
  if (!Array.isArray(items)) throw new LockConfigError("items", items, "must be an array of TransactWriteItems");
  if (items.length >= MOST_ITEMS) {
    throw new LockConfigError(
      "items",
      `${items.length} items`,
      `must be at most ${MOST_ITEMS - 1}: a transaction has ${MOST_ITEMS}, and the guard is one of them`,
    );
  }
  const own = keyOf(layout, name);
  for (const [index, item] of items.entries()) {
    if (typeof item !== "object" || item === null) {
      throw new LockConfigError(`items.${index}`, item, "must be a TransactWriteItem");
    }
    if (isOn(layout.tableName, own, item)) {
      throw new LockConfigError(
        `items.${index}`,
        item,
        "must not be on the lock's own row, on which the guard is: DynamoDB takes one action for each item",
      );
    }
  }
}

function isOn(tableName: string, key: Item, { Put, Update, Delete, ConditionCheck }: TransactWriteItem): boolean {
  const action = Update ?? Delete ?? ConditionCheck;
  const [table, item] = action === undefined ? [Put?.TableName, Put?.Item] : [action.TableName, action.Key];
  return isSameTable(table, tableName) && Object.entries(key).every(([name, value]) => isSame(item?.[name], value));
}

function isSame(one: AttributeValue | undefined, other: AttributeValue): boolean {
  return one?.S === other.S;
}

/** Either may be an ARN. The tables of one transaction are all in one region. */
function isSameTable(one: string | undefined, other: string): boolean {
  return one === other || (one !== undefined && nameOf(one) === nameOf(other));
}

function nameOf(table: string): string {
  return table.split(":table/")[1] ?? table;
}
