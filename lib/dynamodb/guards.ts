import type { CancellationReason, TransactWriteItem } from "@aws-sdk/client-dynamodb";
import { LockConfigError } from "../errors.js";
import type { TableLayout } from "../options/table.js";
import type { Address } from "../protocol/addresses.js";
import type { Check } from "../protocol/writes.js";
import type { DocumentGuard } from "../store.js";
import { checkOf, type Item, itemKey } from "./compile.js";
import { unmarshalledData } from "./data.js";
import { isCancellation, isPassingCancellation, isRefusedItem, storeFailure } from "./failures.js";

/** DynamoDB's limit for a transaction. */
const MOST_ITEMS = 100;

/** The guard as an item of a transaction for a DocumentClient, which takes plain values. */
export function documentGuard(layout: TableLayout, check: Check): DocumentGuard {
  const { Key, ExpressionAttributeValues, ...rest } = checkOf(layout, check);
  const plain = { Key: unmarshalledData(Key), ExpressionAttributeValues: unmarshalledData(ExpressionAttributeValues) };
  return { ConditionCheck: { ...rest, ...plain } as DocumentGuard["ConditionCheck"] };
}

/**
 * Refuses what cannot go along with a guard, before anything is sent.
 * @throws {@link LockConfigError} for too many items, and for one on the lock's own row.
 */
export function admitItems(layout: TableLayout, at: Address, items: readonly TransactWriteItem[]): void {
  if (!Array.isArray(items)) throw new LockConfigError("items", items, "must be an array of TransactWriteItems");
  if (items.length >= MOST_ITEMS) {
    const remedy = `must be at most ${MOST_ITEMS - 1}: a transaction has ${MOST_ITEMS}, and the guard is one of them`;
    throw new LockConfigError("items", `${items.length} items`, remedy);
  }
  const own = itemKey(layout, at);
  for (const [index, item] of items.entries()) {
    if (typeof item !== "object" || item === null) {
      throw new LockConfigError(`items.${index}`, item, "must be a TransactWriteItem");
    }
    if (containsItself(item)) throw new LockConfigError(`items.${index}`, item, "must not contain itself");
    if (!isOn(layout.tableName, own, item)) continue;
    const remedy = "must not be on the lock's own row, on which the guard is: DynamoDB takes one action for each item";
    throw new LockConfigError(`items.${index}`, item, remedy);
  }
}

/** @param around the objects that a value is in. */
function containsItself(value: unknown, around: readonly unknown[] = []): boolean {
  if (typeof value !== "object" || value === null || value instanceof Uint8Array) return false;
  const path = [...around, value];
  const members = value instanceof Set ? [...value] : Object.values(value);
  return around.includes(value) || members.some((member) => containsItself(member, path));
}

/**
 * Why the guard of a transaction refused it, where it did: its action is the one with this index.
 * @throws {@link LockStoreError} for a failure that may pass. What is left is about the caller's own items.
 */
export function refusalOfGuard(error: unknown, index: number, tableName: string): CancellationReason | undefined {
  const reasons = isCancellation(error) ? (error.CancellationReasons ?? []) : undefined;
  const reason = reasons?.[index];
  if (reason !== undefined && isRefusedItem(reason)) return reason;
  const failure = storeFailure(error, { action: "TransactWriteItems", tableName });
  // The request has left, and nobody knows whether it was applied.
  if (failure === error) throw error;
  if (reasons === undefined ? failure.transient : isPassingCancellation(reasons)) throw failure;
  return undefined;
}

function isOn(tableName: string, key: Item, { Put, Update, Delete, ConditionCheck }: TransactWriteItem): boolean {
  const { TableName, Key } = Update ?? Delete ?? ConditionCheck ?? { TableName: Put?.TableName, Key: Put?.Item };
  return nameOf(TableName) === nameOf(tableName) && Object.entries(key).every(([name, { S }]) => Key?.[name]?.S === S);
}

/** A table may be given by its ARN. The tables of one transaction are all in one region. */
function nameOf(table: string | undefined): string | undefined {
  return table?.split(":table/")[1] ?? table;
}
