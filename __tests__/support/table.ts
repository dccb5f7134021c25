import { randomUUID } from "node:crypto";
import {
  CreateTableCommand,
  DeleteTableCommand,
  DynamoDBClient,
  type DynamoDBClientConfig,
  waitUntilTableExists,
} from "@aws-sdk/client-dynamodb";
import { afterAll } from "@jest/globals";
import { testClientConfig } from "./endpoint.js";
import { tableInput, WITHOUT_SORT } from "./table-input.js";

export { testEndpoint } from "./endpoint.js";

/** A client for the engine, closed when the test file ends. Call it outside of tests or in `beforeAll`. */
export function testClient(options: DynamoDBClientConfig = {}): DynamoDBClient {
  const client = new DynamoDBClient({ ...testClientConfig(), ...options });
  clients.push(client);
  return client;
}

/** A new, empty table with a name of its own, deleted when the test file ends. */
export async function createTestTable({
  sortKey = true,
  name,
}: {
  readonly sortKey?: boolean;
  readonly name?: string | undefined;
} = {}): Promise<string> {
  const TableName = nameTestTable(name);
  const client = new DynamoDBClient(testClientConfig());
  try {
    await client.send(new CreateTableCommand(tableInput(TableName, sortKey ? {} : WITHOUT_SORT)));
    await waitUntilTableExists({ client, maxWaitTime: 60, minDelay: 1 }, { TableName });
  } finally {
    client.destroy();
  }
  return TableName;
}

/** A name for a table that something else creates. The table is deleted when the test file ends, if it is there. */
export function nameTestTable(tableName: string = `test-${randomUUID()}`): string {
  tables.push(tableName);
  return tableName;
}

const clients: DynamoDBClient[] = [];
const tables: string[] = [];

afterAll(async () => {
  const janitor = new DynamoDBClient(testClientConfig());
  const deletions = tables.splice(0).map((TableName) => janitor.send(new DeleteTableCommand({ TableName })));
  const outcomes = await Promise.allSettled(deletions);
  janitor.destroy();
  for (const client of clients.splice(0)) client.destroy();
  for (const outcome of outcomes) {
    // A test may have deleted its table itself.
    if (outcome.status === "rejected" && outcome.reason?.name !== "ResourceNotFoundException") throw outcome.reason;
  }
});
