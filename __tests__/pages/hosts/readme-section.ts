import { setTimeout as sleep } from "node:timers/promises";
import { DeleteItemCommand, DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { LockTable } from "dynamutex";
import { testClientConfig } from "../../support/endpoint.js";
import { hostConfig } from "../../support/host-process.js";

/** What the README's examples are run with. */
export interface ReadmeSectionConfig {
  readonly tableName: string;
  /** The compiled examples, in order. */
  readonly examples: readonly string[];
  readonly isLost: boolean;
  readonly throws: boolean;
}

const NAME = "customers";

/**
 * Runs examples of the README that need a mutex and some work: the work may lose the lock, and may throw.
 * Both ends of it, this and the example, import the package by its name, and so the same copy.
 */
const { tableName, examples, isLost, throws } = hostConfig<ReadmeSectionConfig>();
const client = new DynamoDBClient(testClientConfig());
// A renewal soon tells of a lost row; the lease itself outlasts any hiccup of the machine.
const locks = new LockTable({ tableName, client, ttlMs: 30_000, renewEveryMs: 300 });

async function charge(_customer: string, signal: AbortSignal): Promise<void> {
  if (isLost) {
    const Key = { name: { S: NAME }, sort: { S: "lock" } };
    await client.send(new DeleteItemCommand({ TableName: tableName, Key }));
    await sleep(25_000, undefined, { signal }).catch(() => undefined); // the next renewal finds no row
  }
  if (throws) throw new Error("the card was declined");
}

Object.assign(globalThis, { mutex: locks.mutex(NAME), customers: ["jane"], charge });
try {
  for (const example of examples) await import(example);
} catch (error) {
  console.log(`rejected: ${error}`);
}
await locks.close();
client.destroy();
