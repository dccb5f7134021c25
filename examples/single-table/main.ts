/**
 * Locks among the items of an application, in its one table. Two processes place orders of one customer. `node main.js` shows the table,
 * with a lock in it, and checks the orders.
 */

import { DynamoDBClient, QueryCommand, ScanCommand } from "@aws-sdk/client-dynamodb";
import { Program } from "../support/program.js";
import { runExample } from "../support/run-example.js";
import { locksOf, TableName } from "./app-table.js";

await runExample(async () => {
  const client = new DynamoDBClient();
  await using locks = locksOf(client, "main");
  await locks.create(); // yours exists already; this makes one with the same keys
  const { usable, problems } = await locks.check();
  console.log(`The table can hold locks: ${usable ? "yes" : "no"}; problems: ${problems.length}`);

  {
    await using a = new Program(new URL("./order.js", import.meta.url), ["a"]);
    await using b = new Program(new URL("./order.js", import.meta.url), ["b"]);
    await Promise.all([a.exited, b.exited]);
  }
  {
    await using _lock = await locks.mutex("customer#jane").lock();
    console.log("\nAll items, while main has the lock:");
    const { Items: all = [] } = await client.send(new ScanCommand({ TableName, ConsistentRead: true }));
    const lines = all.map(({ pk, sk }) => `  ${pk?.S?.padEnd(20)}${sk?.S}`);
    console.log(lines.sort().join("\n"));
    for await (const lock of locks.list({ prefix: "customer#" })) console.log(`\n${lock.owner} has ${lock.name}`);
  }

  const { Items = [] } = await client.send(
    new QueryCommand({
      TableName,
      ConsistentRead: true,
      KeyConditionExpression: "pk = :pk AND begins_with(sk, :order)",
      ExpressionAttributeValues: { ":pk": { S: "customer#jane" }, ":order": { S: "order#" } },
    }),
  );
  client.destroy();
  const orders = Items.map(({ sk }) => sk?.S?.slice("order#".length)).join(", ");
  console.log(`\nOrders, placed by two processes: ${orders}`);
  return usable && orders === "1, 2, 3, 4, 5, 6";
});
