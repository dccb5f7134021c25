import { randomUUID } from "node:crypto";
import {
  CreateTableCommand,
  type CreateTableCommandInput,
  DeleteTableCommand,
  ScanCommand,
  UpdateTimeToLiveCommand,
} from "@aws-sdk/client-dynamodb";
import { afterEach, describe, expect, test } from "@jest/globals";
import { type KeyOptions, LockStoreError, type TableReport } from "../../lib/index.js";
import { watch } from "../support/eventually.js";
import { errorReply } from "../support/fault-proxy/reply.js";
import { error, type Fault, hang, rewriteReply, withBody } from "../support/fault-proxy.js";
import { ManualTime } from "../support/manual-time.js";
import { useScene } from "../support/scene.js";
import { testClient } from "../support/table.js";
import { tableInput, WITHOUT_SORT } from "../support/table-input.js";

const scene = useScene();
const client = testClient();
const tables: string[] = [];
const FOREVER = { times: Number.POSITIVE_INFINITY };

afterEach(async () => {
  for (const TableName of tables.splice(0)) {
    await client.send(new DeleteTableCommand({ TableName })).catch(() => undefined);
  }
});

function tableNamed(): string {
  const name = `test-${randomUUID()}`;
  tables.push(name);
  return name;
}

/** A table as `create()` makes it. */
async function rightTable(keys: KeyOptions = {}): Promise<string> {
  const tableName = tableNamed();
  await scene.host({ tableName, keys }).create();
  scene.proxy.reset();
  return tableName;
}

/** A table that somebody made by hand, with the TTL on some attribute, if on any. */
async function tableByHand(differences: Partial<CreateTableCommandInput>, ttl?: string): Promise<string> {
  const TableName = tableNamed();
  await client.send(new CreateTableCommand(tableInput(TableName, differences)));
  if (ttl !== undefined) {
    const TimeToLiveSpecification = { AttributeName: ttl, Enabled: true };
    await client.send(new UpdateTimeToLiveCommand({ TableName, TimeToLiveSpecification }));
  }
  return TableName;
}

function said({ problems }: TableReport): string[] {
  return problems.map(({ severity, code }) => `${severity} ${code}`);
}

/** The table's description, as DynamoDB would give it in a case that the local engine does not know. */
function describedWith(differences: Record<string, unknown>): void {
  const rewrite = rewriteReply((reply) => {
    const { Table, ...rest } = reply.body as Record<string, unknown>;
    return withBody(reply, { ...rest, Table: { ...(Table as object), ...differences } } as never);
  });
  scene.proxy.on("DescribeTable", rewrite, FOREVER);
}

const denied = () => error("AccessDeniedException", "User: arn:aws:iam::1:user/ada is not authorized");

describe("check() of a right table", () => {
  test("has nothing to say, and tells what it found", async () => {
    const tableName = await rightTable();
    expect(await scene.host({ tableName }).check()).toEqual({
      tableName,
      usable: true,
      problems: [],
      table: {
        status: "ACTIVE",
        partition: "name",
        sort: "sort",
        billing: "on-demand",
        replicas: [],
        consistency: undefined,
      },
      ttl: { status: "ENABLED", attribute: "purge" },
      batches: { usable: true, advice: undefined },
      permissions: {
        DescribeTable: "allowed",
        DescribeTimeToLive: "allowed",
        GetItem: "allowed",
        PutItem: "allowed",
        UpdateItem: "allowed",
        DeleteItem: "allowed",
        Query: "allowed",
        Scan: "allowed",
        ConditionCheckItem: "allowed",
      },
    });
  });

  test("writes nothing, and touches no lock", async () => {
    const tableName = await rightTable();
    const locks = scene.host({ tableName });
    await using lock = await locks.mutex("dynamutex#check").lock();
    const before = (await client.send(new ScanCommand({ TableName: tableName }))).Items;
    expect((await locks.check()).problems).toEqual([]);
    expect((await client.send(new ScanCommand({ TableName: tableName }))).Items).toEqual(before);
    expect(lock.held).toBe(true);
    await lock.unlock();
    await locks.check();
    expect((await client.send(new ScanCommand({ TableName: tableName }))).Count).toBe(0);
  });

  test.each<readonly [string, KeyOptions]>([
    ["without a sort key, if the options say so", { sort: null }],
    ["with names of its own", { partition: "key", sort: "order", ttl: "ttl" }],
  ])("%s", async (_case, keys) => {
    const tableName = await rightTable(keys);
    const report = await scene.host({ tableName, keys, keyPrefix: "lock#" }).check();
    expect(report).toMatchObject({ usable: true, problems: [], table: { sort: keys.sort ?? undefined } });
    expect("Query" in report.permissions).toBe(keys.sort !== null);
  });
});

describe("check() of a table that does not fit", () => {
  test("that is not there: says how to make it, and throws nothing", async () => {
    const report = await scene.host({ tableName: "no-such-table" }).check();
    expect(said(report)).toEqual(["error missing"]);
    expect(report).toMatchObject({ usable: false, table: undefined, ttl: undefined });
    expect(report.problems[0]?.message).toContain("`await locks.create()`");
  });

  test("without a sort key: says which option does without", async () => {
    const report = await scene.host({ tableName: await tableByHand(WITHOUT_SORT, "purge") }).check();
    expect(said(report)).toEqual(["error keys"]);
    expect(report.usable).toBe(false);
    expect(report.problems[0]?.message).toContain("it has no sort key, and the option keys.sort says sort");
    expect(report.problems[0]?.message).toContain("keys: { sort: null }");
  });

  test.each<readonly [string, Partial<CreateTableCommandInput>, string]>([
    [
      "with other names",
      {
        AttributeDefinitions: [
          { AttributeName: "pk", AttributeType: "S" },
          { AttributeName: "sk", AttributeType: "S" },
        ],
        KeySchema: [
          { AttributeName: "pk", KeyType: "HASH" },
          { AttributeName: "sk", KeyType: "RANGE" },
        ],
      },
      'To mend it, set keys: { partition: "pk", sort: "sk" } on every host, or use a table',
    ],
    [
      "with another name and no sort key",
      {
        AttributeDefinitions: [{ AttributeName: "id", AttributeType: "S" }],
        KeySchema: [{ AttributeName: "id", KeyType: "HASH" }],
      },
      'set keys: { partition: "id", sort: null } on every host, with which only mutexes that are not fair work, or',
    ],
    [
      "with a key that is an attribute of a lock's row",
      {
        AttributeDefinitions: [{ AttributeName: "owner", AttributeType: "S" }],
        KeySchema: [{ AttributeName: "owner", KeyType: "HASH" }],
      },
      "To mend it, use a table that `await locks.create()` makes",
    ],
    [
      "with a number for its sort key",
      {
        AttributeDefinitions: [
          { AttributeName: "name", AttributeType: "S" },
          { AttributeName: "sort", AttributeType: "N" },
        ],
      },
      "its sort key sort is of type N, and locks need S, a string. To mend it, use a table that",
    ],
  ])("%s", async (_case, differences, message) => {
    const report = await scene.host({ tableName: await tableByHand(differences, "purge") }).check();
    expect(said(report)).toEqual(["error keys"]);
    expect(report.problems[0]?.message).toContain(message);
  });

  test("with the TTL on the wrong attribute: a warning that names both", async () => {
    const report = await scene.host({ tableName: await tableByHand({}, "expires") }).check();
    expect(said(report)).toEqual(["warning ttl"]);
    expect(report).toMatchObject({ usable: true, ttl: { status: "ENABLED", attribute: "expires" } });
    expect(report.problems[0]?.message).toContain("is on the attribute expires, and the option keys.ttl says purge");
    expect(report.problems[0]?.message).toContain("switch the TTL to purge");
  });

  test("with the TTL off: a warning that says what stays", async () => {
    const report = await scene.host({ tableName: await tableByHand({}) }).check();
    expect(said(report)).toEqual(["warning ttl"]);
    expect(report).toMatchObject({ usable: true, ttl: { status: "DISABLED" } });
    expect(report.problems[0]?.message).toContain("switch it on for the attribute purge");
  });

  test.each([
    ["CREATING", "`await locks.create()` waits"],
    ["DELETING", "choose another"],
    ["INACCESSIBLE_ENCRYPTION_CREDENTIALS", "it is INACCESSIBLE_ENCRYPTION_CREDENTIALS"],
  ])("that is %s", async (TableStatus, message) => {
    const tableName = await rightTable();
    describedWith({ TableStatus });
    const report = await scene.host({ tableName }).check();
    expect(said(report)).toEqual(["error status"]);
    expect(report.problems[0]?.message).toContain(message);
  });
});

describe("trap 18: check() of a global table", () => {
  test("with eventual consistency says that there is no exclusion across regions", async () => {
    const tableName = await rightTable();
    describedWith({ Replicas: [{ RegionName: "eu-west-1" }, { RegionName: "us-east-1" }] });
    const report = await scene.host({ tableName }).check();
    expect(said(report)).toEqual(["warning replicas"]);
    expect(report.table).toMatchObject({ replicas: ["eu-west-1", "us-east-1"], consistency: "eventual" });
    expect(report.problems[0]?.message).toContain("no exclusion across regions");
    expect(report.problems[0]?.message).toContain("eu-west-1, us-east-1");
  });

  test("with strong consistency says that there are no transactions and no TTL, once", async () => {
    const tableName = await tableByHand({});
    describedWith({ Replicas: [{ RegionName: "eu-west-1" }], MultiRegionConsistency: "STRONG" });
    scene.proxy.on("TransactWriteItems", error("ValidationException", "Transactions are not supported"));
    const report = await scene.host({ tableName }).check();
    expect(said(report)).toEqual(["warning replicas"]);
    expect(report).toMatchObject({ usable: true, permissions: { ConditionCheckItem: "unknown" } });
    expect(report.problems[0]?.message).toMatch(/no transactions.*no TTL/);
  });
});

/** The table applies the write, and answers that another Region has written the same row. */
const conflicted = () =>
  rewriteReply(() => errorReply(400, "ReplicatedWriteConflictException", "modified by a request in another Region"));

describe("a table of several Regions with strong consistency", () => {
  const noTransactions = () =>
    scene.proxy.on("TransactWriteItems", error("ValidationException", "not supported"), FOREVER);

  test("refuses lockAll() and transactWrite(), and says what to do", async () => {
    const tableName = await tableByHand({});
    const locks = scene.host({ tableName });
    await using lock = await locks.mutex("x").lock();
    describedWith({ MultiRegionConsistency: "STRONG" });
    noTransactions();
    const remedy = expect.stringMatching(/strong consistency, which has no transactions.*condition on the item itself/);
    const item = { Put: { TableName: tableName, Item: { name: { S: "data" }, sort: { S: "data" } } } };
    await expect(lock.transactWrite([item])).rejects.toMatchObject({ code: "LOCK_STORE", message: remedy });
    await expect(locks.lockAll(["a", "b"])).rejects.toMatchObject({ code: "LOCK_STORE", message: remedy });
  });

  test("refuses neither where the transaction is wrong itself: DynamoDB's own error comes through", async () => {
    const tableName = await tableByHand({});
    await using lock = await scene.host({ tableName }).mutex("x").lock();
    noTransactions();
    const item = { Put: { TableName: tableName, Item: { name: { S: "data" }, sort: { S: "data" } } } };
    await expect(lock.transactWrite([item])).rejects.toMatchObject({ name: "ValidationException" });
  });

  test("is left without a TTL by create()", async () => {
    const tableName = await tableByHand({});
    describedWith({ MultiRegionConsistency: "STRONG" });
    await scene.host({ tableName }).create();
    expect(scene.proxy.counts()).toEqual({ DescribeTable: 1 });
  });

  test("grants a lock whose take was applied and answered by a conflict with another Region, once", async () => {
    const tableName = await tableByHand({});
    const locks = scene.host({ tableName });
    scene.proxy.on("PutItem", conflicted());
    await using lock = await locks.mutex("x").lock();
    expect((await locks.mutex("x").inspect())?.uuid).toBe(lock.uuid);
  });
});

describe("check() where batches cannot be used", () => {
  test.each<readonly [string, () => Fault, string]>([
    ["for want of a permission", denied, "lack the permission dynamodb:PartiQLUpdate"],
    ["because the engine has none", () => error("UnknownOperationException", "unsupported"), "unsupported"],
    [
      "for want of a permission on some rows",
      () =>
        rewriteReply((reply) => {
          const failed = { Error: { Code: "AccessDenied", Message: "not on this row" } };
          return withBody(reply, { ...reply.body, Responses: [failed] });
        }),
      "not on this row",
    ],
  ])("%s: advises, and has no problem", async (_case, fault, because) => {
    const tableName = await rightTable();
    scene.proxy.on("BatchExecuteStatement", fault(), FOREVER);
    const report = await scene.host({ tableName }).check();
    expect(report).toMatchObject({ usable: true, problems: [], batches: { usable: false } });
    expect(report.batches?.advice).toContain("dynamodb:PartiQLUpdate");
    expect(report.batches?.advice).toContain(because);
  });
});

describe("check() with permissions that are missing", () => {
  test.each([
    ["GetItem", "GetItem", "error"],
    ["PutItem", "PutItem", "error"],
    ["UpdateItem", "UpdateItem", "error"],
    ["DeleteItem", "DeleteItem", "error"],
    ["Query", "Query", "warning"],
    ["Scan", "Scan", "warning"],
    ["TransactWriteItems", "ConditionCheckItem", "warning"],
    ["DescribeTable", "DescribeTable", "warning"],
    ["DescribeTimeToLive", "DescribeTimeToLive", "warning"],
  ] as const)("%s", async (operation, action, severity) => {
    const tableName = await rightTable();
    scene.proxy.on(operation, denied(), FOREVER);
    const report = await scene.host({ tableName }).check();
    expect(said(report)).toEqual([`${severity} permission`]);
    expect(report.usable).toBe(severity === "warning");
    expect(report.permissions[action]).toBe("refused");
    expect(Object.values(report.permissions).filter((answer) => answer === "allowed")).toHaveLength(8);
    const [problem] = report.problems;
    expect(problem?.message).toContain(`lack the permission dynamodb:${action} on table ${tableName}`);
    expect(problem?.message).toContain("add it to their IAM policy");
    expect(problem?.message).toContain("user/ada is not authorized");
  });

  test("where the table may not be described, a missing table and a key that does not fit show all the same", async () => {
    scene.proxy.on("DescribeTable", denied(), FOREVER);
    scene.proxy.on("DescribeTimeToLive", denied(), FOREVER);
    const missing = await scene.host({ tableName: "no-such-table" }).check();
    expect(said(missing)).toEqual(["error missing"]);
    const report = await scene.host({ tableName: await tableByHand(WITHOUT_SORT) }).check();
    expect(said(report)).toContain("error request");
    expect(report.usable).toBe(false);
    expect(report.problems.find(({ code }) => code === "request")?.message).toContain("keys.partition and keys.sort");
  });
});

describe("check() of a table that cannot be reached", () => {
  test("tries again, for as long as it may, and then throws", async () => {
    const time = new ManualTime();
    scene.proxy.on(() => true, hang(), FOREVER);
    const checking = scene.host({ clock: time.clock() }).check();
    const watched = watch(checking);
    await scene.play(time, () => watched.settled, 250);
    await expect(checking).rejects.toBeInstanceOf(LockStoreError);
    // Nobody has ever answered.
    expect(time.elapsed).toBeGreaterThanOrEqual(10_000);
    expect(time.elapsed).toBeLessThan(11_000);
  });

  test("credentials that nobody knows are an error, not a problem of the table", async () => {
    scene.proxy.on(() => true, error("UnrecognizedClientException", "The security token is invalid"), FOREVER);
    await expect(scene.host().check()).rejects.toThrow(/check the access key/);
  });

  test("options that cannot work are refused, and so is a closed table", async () => {
    const locks = scene.host();
    await expect(locks.check({ timeoutMs: 0 })).rejects.toMatchObject({ code: "LOCK_CONFIG", option: "timeoutMs" });
    await locks.close();
    await expect(locks.check()).rejects.toMatchObject({ code: "LOCK_CLOSED" });
    expect(scene.proxy.count()).toBe(0);
  });
});
