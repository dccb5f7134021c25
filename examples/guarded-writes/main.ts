/**
 * Two tellers at one account. One of them is frozen in the middle, and its lock is ended by force, because it seems to be dead.
 * When it wakes, it cannot write what it computed. `node main.js` shows that, and checks the balance.
 */

import { CreateTableCommand, DynamoDBClient, GetItemCommand, PutItemCommand } from "@aws-sdk/client-dynamodb";
import { LockTable } from "dynamutex";
import { Program } from "../support/program.js";
import { runExample } from "../support/run-example.js";

const TableName = process.env.ACCOUNTS_TABLE ?? "accounts";
const Key = { account: { S: "jane" } };
const teller = (name: string, amount: number) =>
  new Program(new URL("./teller.js", import.meta.url), [name, String(amount)]);

await runExample(async () => {
  const client = new DynamoDBClient();
  await using locks = new LockTable({ tableName: process.env.TABLE_NAME ?? "locks", client });
  await locks.create();
  await openAccount(client);

  await using a = teller("a", 10);
  await a.next(/a reads/);
  a.kill("SIGSTOP");
  console.log("a is frozen");
  const mutex = locks.mutex("account#jane");
  const holder = await mutex.inspect();
  await mutex.forceUnlock(holder?.uuid ?? "", { now: true });
  console.log(`the lock of ${holder?.owner} is ended by force`);

  await using b = teller("b", 30);
  await b.exited;
  a.kill("SIGCONT");
  console.log("a wakes");
  await a.exited;

  const { Item } = await client.send(new GetItemCommand({ TableName, Key, ConsistentRead: true }));
  client.destroy();
  console.log(`\nOf 100, b has paid out 30, and a nothing: the balance is ${Item?.balance?.N}`);
  return Item?.balance?.N === "70";
});

/** A table of the application's own: it knows nothing of locks. */
async function openAccount(client: DynamoDBClient): Promise<void> {
  const created = client.send(
    new CreateTableCommand({
      TableName,
      BillingMode: "PAY_PER_REQUEST",
      AttributeDefinitions: [{ AttributeName: "account", AttributeType: "S" }],
      KeySchema: [{ AttributeName: "account", KeyType: "HASH" }],
    }),
  );
  await created.catch((error) => {
    if (error.name !== "ResourceInUseException") throw error;
  });
  await client.send(new PutItemCommand({ TableName, Item: { ...Key, balance: { N: "100" } } }));
}
