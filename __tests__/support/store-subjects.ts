import { randomUUID } from "node:crypto";
import {
  type AttributeValue,
  DeleteItemCommand,
  DeleteTableCommand,
  type DynamoDBClient,
  GetItemCommand,
  PutItemCommand,
} from "@aws-sdk/client-dynamodb";
import { marshall } from "@aws-sdk/util-dynamodb";
import { createTable } from "../../lib/dynamodb/admin/create-table.js";
import { DynamoDbStore } from "../../lib/dynamodb/store.js";
import { type KeyOptions, type TableLayout, tableLayout } from "../../lib/options/table.js";
import type { Row } from "../../lib/store.js";
import type { TableStore, Waiter } from "../../lib/ticket-store.js";
import { systemClock } from "../../lib/time/clock.js";
import { MemoryStore, MemoryTable } from "../simulation/memory-store.js";

/** An item under a lock's key, less the key. */
export type Attributes = Readonly<Record<string, AttributeValue>>;

/** A store, and a way past it to the rows. */
export interface Subject {
  readonly store: TableStore;
  /** Leaves a row as some earlier host would have. */
  plant(row: Row): Promise<void>;
  /** Leaves a waiter's row as some other host would have. */
  plantWaiter(waiter: Waiter): Promise<void>;
  /** Sets the counter of a lock's tickets: undefined removes it, as the table's TTL may. */
  plantCounter(name: string, last: bigint | undefined): Promise<void>;
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
    plantWaiter: async (waiter) => table.tickets.plant(waiter),
    plantCounter: async (name, last) => table.tickets.plantCounter(name, last),
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
    store: new DynamoDbStore({ client, layout, clock: systemClock() }),
    plant: ({ name, ...row }) => put(name, { ...marshall(row, { removeUndefinedValues: true }), format: { N: "1" } }),
    plantWaiter: ({ name, ticket, ...waiter }) =>
      put(name, {
        ...marshall(waiter),
        format: { N: "1" },
        ...sortOf(layout, `queue#${`${ticket}`.padStart(38, "0")}`),
      }),
    plantCounter: async (name, last) => {
      const sort = sortOf(layout, "tickets");
      if (last !== undefined) return await put(name, { n: { N: `${last}` }, format: { N: "1" }, ...sort });
      const Key = { ...rawKey(layout, name), ...sort };
      await client.send(new DeleteItemCommand({ TableName: layout.tableName, Key }));
    },
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

function sortOf(layout: TableLayout, sort: string): Record<string, AttributeValue> {
  return layout.sort === undefined ? {} : { [layout.sort]: { S: sort } };
}

function rawKey(layout: TableLayout, name: string): Record<string, AttributeValue> {
  const partition = { [layout.partition]: { S: `${layout.keyPrefix}${name}` } };
  return layout.sort === undefined ? partition : { ...partition, [layout.sort]: { S: "lock" } };
}
