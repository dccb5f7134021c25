import { randomUUID } from "node:crypto";
import {
  CreateTableCommand,
  type CreateTableCommandInput,
  DeleteTableCommand,
  DescribeTableCommand,
  DescribeTimeToLiveCommand,
  type DynamoDBClient,
  UpdateTimeToLiveCommand,
} from "@aws-sdk/client-dynamodb";
import { afterEach, describe, expect, jest, test } from "@jest/globals";
import { createTable } from "../../../lib/dynamodb/admin/create-table.js";
import { Transport } from "../../../lib/dynamodb/transport.js";
import { LockStoreError } from "../../../lib/errors.js";
import { type CreateOptions, type KeyOptions, type TableLayout, tableLayout } from "../../../lib/options/table.js";
import { type Clock, systemClock } from "../../../lib/time/clock.js";
import { requestsOn } from "../../support/requests-on.js";
import { testClient } from "../../support/table.js";
import { tableInput, WITHOUT_SORT } from "../../support/table-input.js";

const client = testClient();
const tables: string[] = [];

afterEach(async () => {
  for (const TableName of tables.splice(0)) {
    await client.send(new DeleteTableCommand({ TableName })).catch(() => undefined);
  }
});

function layoutOf(keys: KeyOptions = {}): TableLayout {
  const tableName = `test-${randomUUID()}`;
  tables.push(tableName);
  return tableLayout({ tableName, keys });
}

function createOn(on: DynamoDBClient, layout: TableLayout, options: CreateOptions, clock: Clock): Promise<void> {
  return createTable(new Transport(on, layout, clock), layout, options, requestsOn(clock));
}

function create(layout: TableLayout, options: CreateOptions = {}): Promise<void> {
  return createOn(client, layout, options, systemClock());
}

async function failureOf(promise: Promise<unknown>): Promise<LockStoreError> {
  const error = await promise.catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(LockStoreError);
  return error as LockStoreError;
}

async function describeTable({ tableName: TableName }: TableLayout) {
  const { Table } = await client.send(new DescribeTableCommand({ TableName }));
  const { TimeToLiveDescription: ttl } = await client.send(new DescribeTimeToLiveCommand({ TableName }));
  return {
    status: Table?.TableStatus,
    billing: Table?.BillingModeSummary?.BillingMode,
    key: Table?.KeySchema?.map(({ AttributeName, KeyType }) => `${KeyType} ${AttributeName}`),
    types: Table?.AttributeDefinitions?.map(({ AttributeType }) => AttributeType),
    ttl: ttl?.TimeToLiveStatus === "ENABLED" ? ttl.AttributeName : undefined,
  };
}

/** A table that somebody made by hand. */
async function existing(layout: TableLayout, differences: Partial<CreateTableCommandInput>): Promise<void> {
  await client.send(new CreateTableCommand(tableInput(layout.tableName, differences)));
}

describe("creating", () => {
  test.each<readonly [string, KeyOptions, readonly string[], string]>([
    ["by default", {}, ["HASH name", "RANGE sort"], "purge"],
    ["without a sort key", { sort: null }, ["HASH name"], "purge"],
    ["with names of its own", { partition: "pk", sort: "sk", ttl: "gone" }, ["HASH pk", "RANGE sk"], "gone"],
  ])("a table %s: on demand, keys of strings, TTL on, active", async (_case, keys, key, ttl) => {
    const layout = layoutOf(keys);
    await create(layout);
    expect(await describeTable(layout)).toMatchObject({
      status: "ACTIVE",
      billing: "PAY_PER_REQUEST",
      key,
      types: key.map(() => "S"),
      ttl,
    });
  });

  test("asks for the tags, and for none if there are none", async () => {
    // The local engine takes tags and cannot show them.
    const send = jest.spyOn(client, "send");
    await create(layoutOf(), { tags: { team: "billing" } });
    await create(layoutOf());
    const asked = send.mock.calls.flatMap(([{ input }]) => ("KeySchema" in input ? [input.Tags] : []));
    expect(asked).toEqual([[{ Key: "team", Value: "billing" }], undefined]);
    send.mockRestore();
  });

  test("by many processes at once is fine for all of them", async () => {
    const layout = layoutOf();
    await Promise.all(Array.from({ length: 8 }, () => create(layout)));
    expect(await describeTable(layout)).toMatchObject({ status: "ACTIVE", ttl: "purge" });
  });
});

describe("a table that is there", () => {
  test("and fits is left as it is", async () => {
    const layout = layoutOf();
    await create(layout);
    const before = await describeTable(layout);
    await create(layout);
    expect(await describeTable(layout)).toEqual(before);
  });

  test("with provisioned billing fits, and its TTL stays off until a caller asks for it", async () => {
    const layout = layoutOf();
    const ProvisionedThroughput = { ReadCapacityUnits: 5, WriteCapacityUnits: 5 };
    await existing(layout, { BillingMode: "PROVISIONED", ProvisionedThroughput });
    await create(layout);
    expect(await describeTable(layout)).toMatchObject({ billing: undefined, ttl: undefined });
    await create(layout, { enableTtl: true });
    expect(await describeTable(layout)).toMatchObject({ billing: undefined, ttl: "purge" });
  });

  test("of an application keeps its items, whose attribute has the name of ours", async () => {
    const layout = layoutOf({ partition: "name", sort: "sort", ttl: "expiresAt" });
    await existing(layout, {});
    await create(layout);
    expect(await describeTable(layout)).toMatchObject({ ttl: undefined });
  });

  test.each<readonly [string, KeyOptions, Partial<CreateTableCommandInput>, string]>([
    [
      "another partition key",
      { partition: "pk" },
      {},
      "its partition key is name (S), and the option keys.partition says pk.",
    ],
    ["another sort key", { sort: "sk" }, {}, "its sort key is sort (S), and the option keys.sort says sk."],
    [
      "both keys others",
      { partition: "pk", sort: "sk" },
      {},
      "its partition key is name (S), and the option keys.partition says pk; its sort key is sort (S), and the option keys.sort says sk.",
    ],
    [
      "a sort key too many",
      { sort: null },
      {},
      "its sort key is sort (S), and the option keys.sort says null, which is none.",
    ],
    ["no sort key", {}, WITHOUT_SORT, "it has no sort key, and the option keys.sort says sort."],
    [
      "a sort key of numbers",
      {},
      {
        AttributeDefinitions: [
          { AttributeName: "name", AttributeType: "S" },
          { AttributeName: "sort", AttributeType: "N" },
        ],
      },
      "its sort key sort is of type N, and locks need S, a string.",
    ],
    [
      "an index that refuses every row of a lock",
      {},
      {
        AttributeDefinitions: [
          ...(tableInput("").AttributeDefinitions ?? []),
          { AttributeName: "expires", AttributeType: "S" },
        ],
        GlobalSecondaryIndexes: [
          {
            IndexName: "by-end",
            KeySchema: [{ AttributeName: "expires", KeyType: "HASH" }],
            Projection: { ProjectionType: "ALL" },
          },
        ],
      },
      "the key of its index by-end has expires (S), and locks write a value of type N: DynamoDB refuses every lock.",
    ],
  ])("with %s is refused, and no TTL is switched on", async (_case, keys, differences, words) => {
    const layout = layoutOf(keys);
    await existing(layout, differences);
    const failure = await failureOf(create(layout));
    expect(failure).toMatchObject({ transient: false, answered: true });
    expect(failure.message).toContain(`table ${layout.tableName} does not fit: ${words}`);
    expect(await describeTable(layout)).toMatchObject({ ttl: undefined });
  });

  test("with its TTL on another attribute is left so, and refused if its TTL is to be enabled", async () => {
    const layout = layoutOf();
    await existing(layout, {});
    await client.send(
      new UpdateTimeToLiveCommand({
        TableName: layout.tableName,
        TimeToLiveSpecification: { AttributeName: "expiry", Enabled: true },
      }),
    );
    await create(layout);
    const failure = await failureOf(create(layout, { enableTtl: true }));
    expect(failure.message).toContain("its TTL attribute is expiry, and the option keys.ttl says purge");
    expect(await describeTable(layout)).toMatchObject({ ttl: "expiry" });
  });
});

/** A DynamoDB that answers by a script, for what the local one never does. */
function scripted(script: Record<string, readonly unknown[]>): { client: DynamoDBClient; sent: string[] } {
  const sent: string[] = [];
  const answers = new Map(Object.entries(script).map(([action, list]) => [action, [...list]]));
  const send = async (command: object): Promise<unknown> => {
    const action = command.constructor.name.replace("Command", "");
    sent.push(action);
    const list = answers.get(action) ?? [];
    const answer = list.length > 1 ? list.shift() : list[0];
    if (answer instanceof Error) throw answer;
    return answer ?? {};
  };
  return { client: Object.assign(testClient(), { send }), sent };
}

function refusal(name: string): Error {
  return Object.assign(new Error("no"), { name, $fault: "client", $metadata: { httpStatusCode: 400 } });
}

/** A time that passes only while somebody sleeps. */
function patientClock(): Clock {
  let now = 0;
  return {
    ...systemClock(),
    atMost: () => now,
    sleep: async (ms, signal) => {
      signal?.throwIfAborted();
      now += ms;
    },
  };
}

describe("waiting for a table", () => {
  const layout = layoutOf();
  const inState = (TableStatus: string) => ({ Table: { ...tableInput(layout.tableName), TableStatus } });
  const ttl = (TimeToLiveStatus: string, AttributeName?: string) => ({
    TimeToLiveDescription: { TimeToLiveStatus, AttributeName },
  });
  const NOT_FOUND = refusal("ResourceNotFoundException");

  const run = (script: Record<string, readonly unknown[]>, options: CreateOptions = {}) => {
    const { client: fake, sent } = scripted(script);
    return { done: createOn(fake, layout, options, patientClock()), sent };
  };

  test("goes from nothing through creation to its TTL", async () => {
    const { done, sent } = run({
      DescribeTable: [NOT_FOUND, inState("CREATING"), inState("CREATING"), inState("ACTIVE")],
      DescribeTimeToLive: [ttl("DISABLED")],
    });
    await done;
    expect(sent).toEqual([
      "DescribeTable",
      "CreateTable",
      "DescribeTable",
      "DescribeTable",
      "DescribeTable",
      "DescribeTimeToLive",
      "UpdateTimeToLive",
    ]);
  });

  test.each([
    ["became active while it looked", [NOT_FOUND, inState("ACTIVE")], true],
    ["was active before", [inState("ACTIVE")], false],
  ])(
    "a request for a table that %s may still be told that there is none: that passes, for ten seconds",
    async (_, seen, passes) => {
      const { client: fake } = scripted({
        DescribeTable: seen,
        DescribeTimeToLive: [ttl("ENABLED", "purge")],
        GetItem: [NOT_FOUND, NOT_FOUND],
      });
      let elapsed = 0;
      const clock = { ...patientClock(), atLeast: () => elapsed };
      const transport = new Transport(fake, layout, clock);
      await createTable(transport, layout, {}, requestsOn(clock));
      const { signal } = new AbortController();
      const failure = () =>
        transport
          .ask(["GetItem", { TableName: layout.tableName, Key: {} }], signal, { kind: "read" })
          .catch((error: unknown) => error);
      elapsed = 9_999;
      expect(await failure()).toMatchObject({ code: "LOCK_STORE", transient: passes });
      elapsed = 10_000;
      expect(await failure()).toMatchObject({ transient: false, message: expect.stringContaining("locks.create()") });
    },
  );

  test.each([
    ["describe", "DescribeTimeToLive"],
    ["switch", "UpdateTimeToLive"],
  ])("on an engine that cannot %s a TTL is made, and a warning says that old rows stay", async (_, operation) => {
    const warned = jest.spyOn(process, "emitWarning").mockImplementation(() => undefined);
    const { done, sent } = run({
      DescribeTable: [NOT_FOUND, inState("ACTIVE")],
      DescribeTimeToLive: [ttl("DISABLED")],
      [operation]: [refusal("UnknownOperationException")],
    });
    await done;
    const warnings = warned.mock.calls;
    warned.mockRestore();
    expect(sent).toContain("CreateTable");
    expect(sent.filter((action) => action === operation)).toHaveLength(1);
    expect(warnings).toEqual([[expect.stringMatching(/has no TTL, so nothing removes old rows/), "DynamutexWarning"]]);
  });

  test.each(["ACTIVE", "CREATING", "UPDATING"])(
    "that is %s when it is first described is not described further, and not changed",
    async (state) => {
      const { done, sent } = run({ DescribeTable: [inState(state), inState("ACTIVE")] });
      await done;
      expect(new Set(sent)).toEqual(new Set(["DescribeTable"]));
    },
  );

  test("that was absent counts as made by the call, also where the reply to CreateTable is lost", async () => {
    const { done, sent } = run({
      DescribeTable: [NOT_FOUND, inState("ACTIVE")],
      CreateTable: [
        Object.assign(new Error("socket hang up"), { code: "ECONNRESET" }),
        refusal("ResourceInUseException"),
      ],
      DescribeTimeToLive: [ttl("DISABLED")],
    });
    await done;
    expect(sent).toEqual([
      ...["DescribeTable", "CreateTable", "CreateTable", "DescribeTable", "DescribeTimeToLive", "UpdateTimeToLive"],
    ]);
  });

  test("whose TTL DynamoDB refuses to switch says why, and does not go on for ever", async () => {
    const script = {
      DescribeTable: [inState("ACTIVE")],
      DescribeTimeToLive: [ttl("DISABLED")],
      UpdateTimeToLive: [refusal("ValidationException")],
    };
    const { done, sent } = run(script, { enableTtl: true });
    expect(await failureOf(done)).toMatchObject({ cause: { name: "ValidationException" } });
    expect(sent.filter((action) => action === "UpdateTimeToLive")).toHaveLength(1);
  });

  test("that never becomes active ends when its time does", async () => {
    const { done } = run({ DescribeTable: [inState("CREATING")] }, { timeoutMs: 30_000 });
    const failure = await failureOf(done);
    expect(failure).toMatchObject({ transient: true });
    expect(failure.message).toBe(`Table ${layout.tableName} is not ready after 30000 ms: it is CREATING`);
  });

  test("that nobody can use any more says so at once", async () => {
    const { done } = run({ DescribeTable: [inState("INACCESSIBLE_ENCRYPTION_CREDENTIALS")] });
    expect((await failureOf(done)).message).toContain("cannot be used: it is INACCESSIBLE_ENCRYPTION_CREDENTIALS");
  });

  test("goes on after throttling, and after a table's first answer after outages too", async () => {
    const outage = Object.assign(new Error("socket hang up"), { code: "ECONNRESET" });
    const { done } = run({
      DescribeTable: [refusal("ThrottlingException"), ...Array.from({ length: 40 }, () => outage), inState("ACTIVE")],
      DescribeTimeToLive: [ttl("ENABLED", "purge")],
    });
    await done;
  });

  test("that never answered gives up long before the time for creating one is over", async () => {
    const refused = Object.assign(new Error("connect"), { code: "ECONNREFUSED" });
    const { done, sent } = run({ DescribeTable: [refused] }, { timeoutMs: 10_000_000 });
    const failure = await failureOf(done);
    expect(failure).toMatchObject({ transient: true, answered: false, cause: refused });
    expect(sent.length).toBeLessThan(50);
  });

  test("names the permission that is missing", async () => {
    const { done } = run({ DescribeTable: [NOT_FOUND], CreateTable: [refusal("AccessDeniedException")] });
    expect((await failureOf(done)).message).toContain(`dynamodb:CreateTable on table ${layout.tableName}`);
  });
});

describe("a caller who has had enough", () => {
  const reason = new Error("enough");

  test("beforehand: nothing is sent", async () => {
    const { client: fake, sent } = scripted({});
    const done = createOn(fake, layoutOf(), { signal: AbortSignal.abort(reason) }, systemClock());
    await expect(done).rejects.toBe(reason);
    expect(sent).toEqual([]);
  });

  test("during a request: it ends, and the reason comes back", async () => {
    const controller = new AbortController();
    const send = (_command: unknown, { abortSignal }: { abortSignal: AbortSignal }) =>
      new Promise((_, reject) => {
        abortSignal.addEventListener("abort", () => reject(new Error("aborted")));
        controller.abort(reason);
      });
    const fake = Object.assign(testClient(), { send });
    const done = createOn(fake, layoutOf(), { signal: controller.signal }, systemClock());
    await expect(done).rejects.toBe(reason);
  });

  test("while the table is being created: the reason comes back", async () => {
    const controller = new AbortController();
    const { client: fake } = scripted({ DescribeTable: [{ Table: { TableStatus: "CREATING" } }] });
    const sleep = async (_ms: number, signal?: AbortSignal) => {
      controller.abort(reason);
      signal?.throwIfAborted();
    };
    const clock = { ...systemClock(), sleep };
    await expect(createOn(fake, layoutOf(), { signal: controller.signal }, clock)).rejects.toBe(reason);
  });
});
