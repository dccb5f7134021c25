import type { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { LockTable } from "dynamutex";

/** The one table of the application, with customers, their orders, and the locks. */
export const TableName = process.env.TABLE_NAME ?? "app";

/** The locks in it: `customer#jane` is the item with pk `lock#customer#jane` and sk `lock`. */
export function locksOf(client: DynamoDBClient, owner: string): LockTable {
  return new LockTable({
    tableName: TableName,
    client,
    owner,
    keys: { partition: "pk", sort: "sk", ttl: "expiresAt" },
    keyPrefix: "lock#",
  });
}
