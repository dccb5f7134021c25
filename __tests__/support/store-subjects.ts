import { randomUUID } from "node:crypto";
import {
  type AttributeValue,
  DeleteItemCommand,
  DeleteTableCommand,
  type DynamoDBClient,
  GetItemCommand,
  PutItemCommand,
} from "@aws-sdk/client-dynamodb";
import { marshall, unmarshall } from "@aws-sdk/util-dynamodb";
import { afterAll, beforeAll } from "@jest/globals";
import { createTable } from "../../lib/dynamodb/admin/create-table.js";
import { DynamoDbStore } from "../../lib/dynamodb/store.js";
import { Transport } from "../../lib/dynamodb/transport.js";
import { type KeyOptions, type TableLayout, tableLayout } from "../../lib/options/table.js";
import { type Address, LOCK_SORT } from "../../lib/protocol/addresses.js";
import type { Attributes, Row } from "../../lib/protocol/row.js";
import type { Write } from "../../lib/protocol/writes.js";
import type { Store, WriteOutcome } from "../../lib/store.js";
import { TestTable } from "../../lib/testing/index.js";
import { systemClock } from "../../lib/time/clock.js";
import { IS_FULL } from "./full.js";
import { requestsOn } from "./requests-on.js";
import { itemOf, rowWith } from "./store-cases.js";
import { testClient } from "./table.js";

const client = testClient();
const forever = (): AbortSignal => new AbortController().signal;

/** A store, and a way past it to the items. */
export interface Subject {
  readonly store: Store;
  /** Leaves an item as some earlier host or somebody else would have; undefined removes it, as the table's TTL may. */
  plantItem(at: Address, item: Attributes | undefined): Promise<void>;
  /** What is there now. */
  item(at: Address): Promise<Attributes | undefined>;
  end(): Promise<void>;
}

/** A name for a store, and how to get one. */
type SubjectCase = readonly [string, () => Promise<Subject>];

const IN_AN_APPLICATIONS_TABLE: SubjectCase = [
  "in an application's table, under reserved words and a prefix",
  () => tableSubject({ keys: { partition: "key", sort: "order", ttl: "ttl" }, keyPrefix: "lock#" }),
];

const WITHOUT_A_SORT_KEY: SubjectCase = ["in a table without one", () => tableSubject({ keys: { sort: null } })];

/** The stores that have rows beside a lock's own. */
export const SORTED_SUBJECTS: readonly SubjectCase[] = [
  ["through dynamutex/testing", testTableSubject],
  ["in a table with a sort key", () => tableSubject({})],
  // The same requests under other names, which dynamodb/parity.test.ts compares with the table in memory in any case.
  ...(IS_FULL ? [IN_AN_APPLICATIONS_TABLE] : []),
];

/** Every kind of store. */
export const ALL_SUBJECTS: readonly SubjectCase[] = [
  ...SORTED_SUBJECTS,
  // The same requests, with one key less.
  ...(IS_FULL ? [WITHOUT_A_SORT_KEY] : []),
];

/** A store for all the tests of a block, and what each row that they plant has unless they say otherwise. */
export function useSubject(subjectOf: () => Promise<Subject>, defaults: Partial<Row> = {}) {
  let subject: Subject;
  beforeAll(async () => {
    subject = await subjectOf();
  });
  afterAll(() => subject.end());
  return {
    store: () => subject.store,
    plantItem: (at: Address, item: Attributes | undefined): Promise<void> => subject.plantItem(at, item),
    itemAt: (at: Address): Promise<Attributes | undefined> => subject.item(at),
    write: (write: Write): Promise<WriteOutcome> => subject.store.write(write, forever()),
    read: (at: Address): Promise<Row | undefined> => subject.store.read(at, { consistent: true }, forever()),
    /** Leaves a row as some earlier host would have. */
    plant: async (differences: Partial<Row> = {}): Promise<Row> => {
      const row = rowWith({ ...defaults, ...differences });
      await subject.plantItem(row, itemOf(row));
      return row;
    },
  };
}

/** The table in memory, as a host of a user's test has it: the library knows it by its store alone. */
function testTableSubject(): Promise<Subject> {
  const table = new TestTable();
  const { session } = table.host();
  return Promise.resolve({
    store: session.store,
    plantItem: async (at, item) => table.memory.plant(at, item),
    item: async (at) => table.memory.item(at),
    end: async () => {},
  });
}

/** A table of its own, made by the library's own `create()`. */
export async function tableSubject(options: {
  readonly keys?: KeyOptions;
  readonly keyPrefix?: string;
}): Promise<Subject> {
  const layout = tableLayout({ tableName: `test-${randomUUID()}`, ...options });
  const { tableName: TableName, ttl } = layout;
  const transport = new Transport(client, layout, systemClock());
  await createTable(transport, layout, {}, requestsOn(systemClock()));
  return {
    store: new DynamoDbStore(layout, transport),
    plantItem: async (at, item) => {
      const Key = rawKey(layout, at);
      if (item === undefined) return void (await client.send(new DeleteItemCommand({ TableName, Key })));
      const Item = { ...marshall(renamed(item, "purge", ttl), { removeUndefinedValues: true }), ...Key };
      await client.send(new PutItemCommand({ TableName, Item }));
    },
    item: async (at) => {
      const item = await rawItem(client, layout, at);
      for (const attribute of Object.keys(rawKey(layout, at))) delete item?.[attribute];
      return item && renamed(unmarshall(item, { wrapNumbers: exactly }), ttl, "purge");
    },
    end: async () => {
      await client.send(new DeleteTableCommand({ TableName }));
    },
  };
}

/** The item as it is in the table, with nothing of the library in between. */
export async function rawItem(
  client: DynamoDBClient,
  layout: TableLayout,
  at: Address,
): Promise<Record<string, AttributeValue> | undefined> {
  const { Item } = await client.send(
    new GetItemCommand({ TableName: layout.tableName, Key: rawKey(layout, at), ConsistentRead: true }),
  );
  return Item;
}

function rawKey(layout: TableLayout, { name, sort }: Address): Record<string, AttributeValue> {
  const partition = { [layout.partition]: { S: `${layout.keyPrefix}${name}` } };
  if (layout.sort !== undefined) return { ...partition, [layout.sort]: { S: sort } };
  if (sort !== LOCK_SORT) throw new Error(`a table without a sort key has no ${sort}`);
  return partition;
}

function renamed(item: Attributes, from: string, to: string): Attributes {
  return Object.fromEntries(Object.entries(item).map(([name, value]) => [name === from ? to : name, value]));
}

function exactly(digits: string): number | bigint {
  return Number.isSafeInteger(Number(digits)) ? Number(digits) : BigInt(digits);
}
