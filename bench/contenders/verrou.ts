import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { clientConfig, type Locker, type LockerOptions } from "./locker.js";
import { BENCH_FOLDER, requirePeer } from "./peers.js";

interface Lock {
  acquire(): Promise<boolean>;
  release(): Promise<void>;
}

/** `@verrou/core` on DynamoDB. It is ESM alone, and has a table of its own form, which it makes itself. */
export async function openVerrou({ endpoint, tableName, leaseMs }: LockerOptions): Promise<Locker> {
  const { DynamoDBClient } = requirePeer("@aws-sdk/client-dynamodb");
  const { Verrou } = await importPart("index.js");
  const { dynamodbStore } = await importPart(join("src", "drivers", "dynamodb.js"));
  const connection = new DynamoDBClient(clientConfig(endpoint));
  const driver = dynamodbStore({ connection, table: { name: `${tableName}-verrou` } });
  const verrou = new Verrou({ default: "dynamodb", stores: { dynamodb: { driver } } });
  return {
    async lock(name) {
      const lock: Lock = verrou.createLock(name, leaseMs);
      if (!(await lock.acquire())) throw new Error(`${name} is held`);
      return () => lock.release();
    },
    async close() {
      connection.destroy();
    },
  };
}

// biome-ignore lint/suspicious/noExplicitAny: as of the other peers, which have no types here
function importPart(file: string): Promise<any> {
  return import(pathToFileURL(join(BENCH_FOLDER, "node_modules", "@verrou", "core", "build", file)).href);
}
