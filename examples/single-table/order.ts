/**
 * Places three orders of one customer, numbered without a gap, while other processes do the same. `node order.js NAME`
 */

import { DynamoDBClient, GetItemCommand } from "@aws-sdk/client-dynamodb";
import { locksOf, TableName } from "./app-table.js";

const name = process.argv[2] ?? "a";
const client = new DynamoDBClient();
const pk = { S: "customer#jane" };
const profile = { pk, sk: { S: "profile" } };

{
  await using locks = locksOf(client, name);
  for (let count = 1; count <= 3; count += 1) {
    await using lock = await locks.mutex("customer#jane").lock({ waitMs: 30_000 });
    const { Item } = await client.send(new GetItemCommand({ TableName, Key: profile, ConsistentRead: true }));
    const number = `${Number(Item?.orders?.N ?? 0) + 1}`;
    // Both items are written if this section still has the lock, and neither if it has not.
    await lock.transactWrite([
      { Put: { TableName, Item: { pk, sk: { S: `order#${number}` }, placedBy: { S: name } } } },
      { Put: { TableName, Item: { ...profile, orders: { N: number } } } },
    ]);
  }
}
client.destroy();
