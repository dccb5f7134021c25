/**
 * A teller who pays out money: it reads the balance, decides, and writes the new one, under a lock.
 * `node teller.js NAME AMOUNT`
 */

import { setTimeout as sleep } from "node:timers/promises";
import { DynamoDBClient, GetItemCommand } from "@aws-sdk/client-dynamodb";
import { findLockLost, LockTable } from "dynamutex";

const DECIDING_MS = 1_000;

const { ACCOUNTS_TABLE: TableName = "accounts", TABLE_NAME = "locks" } = process.env;
const [name = "teller", amount = "10"] = process.argv.slice(2);
const Key = { account: { S: "jane" } };
const client = new DynamoDBClient();

try {
  await using locks = new LockTable({ tableName: TABLE_NAME, client, owner: name });
  await using lock = await locks.mutex("account#jane").lock({ waitMs: 30_000 });
  const { Item } = await client.send(new GetItemCommand({ TableName, Key, ConsistentRead: true }));
  const before = Number(Item?.balance?.N);
  console.log(`${name} reads ${before}, and is to pay out ${amount}`);
  await sleep(DECIDING_MS, undefined, { signal: lock.signal });
  const after = before - Number(amount);
  // However long this process was stopped, wherever: DynamoDB applies it only if the lock is still this section's.
  await lock.transactWrite([{ Put: { TableName, Item: { ...Key, balance: { N: String(after) } } } }]);
  console.log(`${name} writes ${after}`);
} catch (error) {
  const lost = findLockLost(error);
  if (lost === undefined) throw error;
  console.log(`${name} has lost the lock (${lost.reason}), and must not pay`);
} finally {
  client.destroy();
}
