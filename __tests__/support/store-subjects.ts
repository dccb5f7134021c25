import { randomUUID } from "node:crypto";
import {
  type AttributeValue,
  DeleteTableCommand,
  type DynamoDBClient,
  GetItemCommand,
  PutItemCommand,
} from "@aws-sdk/client-dynamodb";
import { marshall } from "@aws-sdk/util-dynamodb";
import { systemClock } from "../../lib/clock.js";
import { createTable } from "../../lib/dynamodb/create-table.js";
import { DynamoDbStore } from "../../lib/dynamodb/dynamodb-store.js";
import { type KeyOptions, type TableLayout, tableLayout } from "../../lib/options.js";
import type { Row, Store } from "../../lib/store.js";
import { MemoryStore, MemoryTable } from "../simulation/memory-store.js";

/** An item under a lock's key, less the key. */
export type Attributes = Readonly<Record<string, AttributeValue>>;

/** A store, and a way past it to the rows. */
export interface Subject {
  readonly store: Store;
  /** Leaves a row as some earlier host would have. */
  plant(row: Row): Promise<void>;
  /** Leaves an item of somebody else's under a lock's key. */
  plantForeign(name: string, attributes: Attributes): Promise<void>;
  /** What somebody else left there, as it is now. */
  foreign(name: string): Promise<unknown>;
  end(): Promise<void>;
}

export function memorySubject(): Promise<Subject> {
  const table = new MemoryTable();
  return Promise.resolve({
    store: new MemoryStore(table),
    plant: async (row) => table.plant(row),
    plantForeign: async (name, attributes) => table.plantForeign(name, attributes),
    foreign: async (name) => table.foreign.get(name),
    end: async () => {},
  });
}

/** A table of its own, made by the library's own `create()`. */
export async function tableSubject(
  client: DynamoDBClient,
  options: { readonly keys?: KeyOptions; readonly keyPrefix?: string },
): Promise<Subject> {
  const layout = tableLayout({ tableName: `test-${randomUUID()}`, ...options });
  await createTable(client, layout, {}, systemClock());
  const put = async (name: string, attributes: Attributes): Promise<void> => {
    await client.send(
      new PutItemCommand({ TableName: layout.tableName, Item: { ...rawKey(layout, name), ...attributes } }),
    );
  };
  return {
    store: new DynamoDbStore({ client, ownsClient: false, layout, clock: systemClock() }),
    plant: ({ name, ...row }) => put(name, { ...marshall(row, { removeUndefinedValues: true }), format: { N: "1" } }),
    plantForeign: put,
    foreign: async (name) => {
      const item = await rawItem(client, layout, name);
      for (const attribute of Object.keys(rawKey(layout, name))) delete item?.[attribute];
      return item;
    },
    end: async () => {
      await client.send(new DeleteTableCommand({ TableName: layout.tableName }));
    },
  };
}

/** The item as it is in the table, with nothing of the library in between. */
export async function rawItem(
  client: DynamoDBClient,
  layout: TableLayout,
  name: string,
): Promise<Record<string, AttributeValue> | undefined> {
  const { Item } = await client.send(
    new GetItemCommand({ TableName: layout.tableName, Key: rawKey(layout, name), ConsistentRead: true }),
  );
  return Item;
}

function rawKey(layout: TableLayout, name: string): Record<string, AttributeValue> {
  const partition = { [layout.partition]: { S: `${layout.keyPrefix}${name}` } };
  return layout.sort === undefined ? partition : { ...partition, [layout.sort]: { S: "lock" } };
}
