import type { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { LockTable } from "../../../../lib/index.js";

/** Makes tables, and prints how many bytes each has left behind. `node --expose-gc tables.js close` closes them. */
const TABLES = 10_000;
const closes = process.argv[2] === "close";
const client = { send: async () => ({}), destroy: () => undefined } as unknown as DynamoDBClient;

async function makeTables(): Promise<void> {
  for (let made = 0; made < TABLES; made++) {
    const locks = new LockTable({ tableName: "locks", client });
    if (closes) await locks.close();
  }
}

async function heapUsed(): Promise<number> {
  for (let collected = 0; collected < 4; collected++) {
    globalThis.gc?.();
    await new Promise((resolve) => setImmediate(resolve));
  }
  return process.memoryUsage().heapUsed;
}

await makeTables();
await makeTables();
const before = await heapUsed();
await makeTables();
await makeTables();
console.log((await heapUsed()) - before);
