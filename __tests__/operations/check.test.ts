import {
  CreateTableCommand,
  type CreateTableCommandInput,
  ScanCommand,
  UpdateTimeToLiveCommand,
} from "@aws-sdk/client-dynamodb";
import { beforeEach, describe, expect, test } from "@jest/globals";
import { type KeyOptions, LockStoreError, type TableReport } from "../../lib/index.js";
import { watch } from "../support/eventually.js";
import {
  describedAsSeveralRegions,
  replicatedWriteConflict,
  unsupported,
} from "../support/fault-proxy/several-regions.js";
import { error, type Fault, hang, rewriteReply, withBody } from "../support/fault-proxy.js";
import { ManualTime } from "../support/manual-time.js";
import { useScene } from "../support/scene.js";
import { nameTestTable, testClient } from "../support/table.js";
import { tableInput, WITHOUT_SORT } from "../support/table-input.js";

const scene = useScene();
const client = testClient();
const FOREVER = { times: Number.POSITIVE_INFINITY };

/** A table as `create()` makes it. */
async function rightTable(keys: KeyOptions = {}): Promise<string> {
  const tableName = nameTestTable();
  await scene.host({ tableName, keys }).create();
  scene.proxy.reset();
  return tableName;
}

/** A table that somebody made by hand, with the TTL on some attribute, if on any. */
async function tableByHand(differences: Partial<CreateTableCommandInput>, ttl?: string): Promise<string> {
  const TableName = nameTestTable();
  await client.send(new CreateTableCommand(tableInput(TableName, differences)));
  if (ttl !== undefined) {
    const TimeToLiveSpecification = { AttributeName: ttl, Enabled: true };
    await client.send(new UpdateTimeToLiveCommand({ TableName, TimeToLiveSpecification }));
  }
  return TableName;
}

/** What a table's key is made of: by hand, and of other types. */
function keyedBy(...attributes: readonly (readonly [string, "S" | "N"])[]): Partial<CreateTableCommandInput> {
  return {
    AttributeDefinitions: attributes.map(([AttributeName, AttributeType]) => ({ AttributeName, AttributeType })),
    KeySchema: attributes.map(([AttributeName], index) => ({ AttributeName, KeyType: index === 0 ? "HASH" : "RANGE" })),
  };
}

/** An index whose key is one attribute. */
function indexOn(attribute: string, type: "S" | "N"): Partial<CreateTableCommandInput> {
  const { AttributeDefinitions = [] } = tableInput("");
  return {
    AttributeDefinitions: [...AttributeDefinitions, { AttributeName: attribute, AttributeType: type }],
    GlobalSecondaryIndexes: [
      {
        IndexName: `by-${attribute}`,
        KeySchema: [{ AttributeName: attribute, KeyType: "HASH" }],
        Projection: { ProjectionType: "KEYS_ONLY" },
      },
    ],
  };
}

function check(tableName: string): Promise<TableReport> {
  return scene.host({ tableName }).check();
}

/** A report that has one problem, of this severity and code. @returns what it says of that. */
function onlyProblem({ problems }: TableReport, expected: string): string {
  expect(problems.map(({ severity, code }) => `${severity} ${code}`)).toEqual([expected]);
  return problems[0]?.message ?? "";
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
    const report = await check("no-such-table");
    expect(onlyProblem(report, "error missing")).toContain("`await locks.create()`");
    expect(report).toMatchObject({ usable: false, table: undefined, ttl: undefined });
  });

  test.each<readonly [string, Partial<CreateTableCommandInput>, string]>([
    [
      "without a sort key",
      WITHOUT_SORT,
      "it has no sort key, and the option keys.sort says sort. To mend it, set keys: { sort: null } on every host",
    ],
    [
      "with other names",
      keyedBy(["pk", "S"], ["sk", "S"]),
      'To mend it, set keys: { partition: "pk", sort: "sk" } on every host, or use a table',
    ],
    [
      "with another name and no sort key",
      keyedBy(["id", "S"]),
      'set keys: { partition: "id", sort: null } on every host, with which only mutexes that are not fair work, or',
    ],
    [
      "with a key that is an attribute of a lock's row",
      keyedBy(["owner", "S"]),
      "To mend it, use a table that `await locks.create()` makes",
    ],
    [
      "with a number for its sort key",
      keyedBy(["name", "S"], ["sort", "N"]),
      "its sort key sort is of type N, and locks need S, a string. To mend it, use a table that",
    ],
  ])("%s", async (_case, differences, message) => {
    const report = await check(await tableByHand(differences, "purge"));
    expect(onlyProblem(report, "error keys")).toContain(message);
    expect(report.usable).toBe(false);
  });

  test.each([
    ["owner", "N", "error", "locks write a value of type S: DynamoDB refuses every lock."],
    ["purge", "S", "error", "locks write a value of type N: DynamoDB refuses every lock."],
    ["fence", "S", "warning", "a value of type N: DynamoDB refuses every row of a lock that has fence."],
    [
      "data",
      "S",
      "warning",
      "a map, which no index can have in its key: DynamoDB refuses every row of a lock that has data.",
    ],
  ] as const)("with an index on %s as %s: an %s that names the index", async (attribute, type, severity, because) => {
    const tableName = await tableByHand(indexOn(attribute, type), attribute === "purge" ? undefined : "purge");
    const report = await check(tableName);
    const problems = report.problems.filter(({ code }) => code !== "ttl");
    const message = onlyProblem({ ...report, problems }, `${severity} index`);
    expect(message).toContain(
      `does not fit: the key of its index by-${attribute} has ${attribute} (${type}), and locks write`,
    );
    expect(message).toContain(because);
    expect(report.usable).toBe(severity === "warning");
    const lock = scene.host({ tableName }).mutex(scene.name).lock({ waitMs: 10_000 });
    if (severity === "warning") await (await lock).unlock();
    else await expect(lock).rejects.toMatchObject({ code: "LOCK_STORE", message: expect.stringContaining(because) });
  });

  test("an index on an attribute of a lock that has its type is no problem", async () => {
    expect(await check(await tableByHand(indexOn("owner", "S"), "purge"))).toMatchObject({
      usable: true,
      problems: [],
    });
  });

  test.each([
    [
      "on the wrong attribute",
      "expires",
      "ENABLED",
      /is on the attribute expires, .* keys.ttl says purge.* TTL to purge/,
    ],
    [
      "off",
      undefined,
      "DISABLED",
      /enable-ttl`: DynamoDB then deletes each item .* whose attribute purge is a time in the past/,
    ],
  ])("with the TTL %s: a warning that says what to do", async (_case, attribute, status, message) => {
    const report = await check(await tableByHand({}, attribute));
    expect(onlyProblem(report, "warning ttl")).toMatch(message);
    expect(report).toMatchObject({ usable: true, ttl: { status, attribute } });
  });

  test.each([
    ["CREATING", "`await locks.create()` waits"],
    ["DELETING", "choose another"],
    ["INACCESSIBLE_ENCRYPTION_CREDENTIALS", "it is INACCESSIBLE_ENCRYPTION_CREDENTIALS"],
  ])("that is %s", async (TableStatus, message) => {
    const tableName = await rightTable();
    describedWith({ TableStatus });
    expect(onlyProblem(await check(tableName), "error status")).toContain(message);
  });
});

describe("trap 18: check() of a global table", () => {
  test("with eventual consistency says that there is no exclusion across regions", async () => {
    const tableName = await rightTable();
    describedWith({ Replicas: [{ RegionName: "eu-west-1" }, { RegionName: "us-east-1" }] });
    const report = await check(tableName);
    expect(onlyProblem(report, "warning replicas")).toMatch(/eu-west-1, us-east-1: .* no exclusion across regions/);
    expect(report.table).toMatchObject({ replicas: ["eu-west-1", "us-east-1"], consistency: "eventual" });
  });

  test("with strong consistency says that there are no transactions and no TTL, once", async () => {
    scene.proxy.on("DescribeTable", describedAsSeveralRegions(), FOREVER);
    scene.proxy.on("TransactWriteItems", unsupported("Transactions"));
    const report = await check(scene.tableName);
    expect(onlyProblem(report, "warning replicas")).toMatch(/no transactions.*no TTL/);
    expect(report).toMatchObject({ usable: true, permissions: { ConditionCheckItem: "unknown" } });
  });
});

describe("a table of several Regions with strong consistency", () => {
  beforeEach(() => void scene.proxy.on("TransactWriteItems", unsupported("Transactions"), FOREVER));
  const itemOf = (tableName: string) => ({
    Put: { TableName: tableName, Item: { name: { S: "data" }, sort: { S: "data" } } },
  });

  test("refuses lockAll() and transactWrite(), and says what to do", async () => {
    const locks = scene.host();
    await using lock = await locks.mutex(scene.name).lock();
    scene.proxy.on("DescribeTable", describedAsSeveralRegions(), FOREVER);
    const remedy = expect.stringMatching(/strong consistency, which has no transactions.*condition on the item itself/);
    const refused = { code: "LOCK_STORE", message: remedy };
    await expect(lock.transactWrite([itemOf(scene.tableName)])).rejects.toMatchObject(refused);
    await expect(locks.lockAll(["a", "b"])).rejects.toMatchObject(refused);
  });

  test("refuses neither where the transaction is wrong itself: DynamoDB's own error comes through", async () => {
    await using lock = await scene.host().mutex(scene.name).lock();
    const refused = lock.transactWrite([itemOf(scene.tableName)]);
    await expect(refused).rejects.toMatchObject({ name: "ValidationException" });
  });

  test("is left without a TTL by create()", async () => {
    scene.proxy.on("DescribeTable", describedAsSeveralRegions(), FOREVER);
    await scene.host().create();
    expect(scene.proxy.counts()).toEqual({ DescribeTable: 1 });
  });

  test("grants a lock whose take was applied and answered by a conflict with another Region, once", async () => {
    const mutex = scene.host().mutex(scene.name);
    scene.proxy.on("PutItem", replicatedWriteConflict({ applied: true }));
    await using lock = await mutex.lock();
    expect((await mutex.inspect())?.uuid).toBe(lock.uuid);
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
    const report = await check(tableName);
    expect(report).toMatchObject({ usable: true, problems: [], batches: { usable: false } });
    expect(report.batches?.advice).toContain("dynamodb:PartiQLUpdate");
    expect(report.batches?.advice).toContain(because);
  });
});

test("check() on an engine without a TTL and without transactions says what does not work, and that locks do", async () => {
  const tableName = await rightTable();
  for (const operation of ["DescribeTimeToLive", "TransactWriteItems"] as const) {
    scene.proxy.on(operation, error("UnknownOperationException", ""), FOREVER);
  }
  const { usable, problems } = await check(tableName);
  expect(usable).toBe(true);
  expect(problems.map(({ code, severity, message }) => `${severity} ${code}: ${message}`)).toEqual([
    expect.stringMatching(/^warning ttl: .* has no TTL, so nothing removes old rows: /),
    expect.stringMatching(
      /^warning request: .* does not have ConditionCheckItem: guard\(\) and transactWrite\(\) do not work$/,
    ),
  ]);
});

describe("check() with permissions that are missing", () => {
  test.each([
    ["GetItem", "error"],
    ["PutItem", "error"],
    ["UpdateItem", "error"],
    ["DeleteItem", "error"],
    ["Query", "warning"],
    ["Scan", "warning"],
    ["ConditionCheckItem", "warning"],
    ["DescribeTable", "warning"],
    ["DescribeTimeToLive", "warning"],
  ] as const)("%s: %s", async (action, severity) => {
    const tableName = await rightTable();
    scene.proxy.on(action === "ConditionCheckItem" ? "TransactWriteItems" : action, denied(), FOREVER);
    const report = await check(tableName);
    const message = onlyProblem(report, `${severity} permission`);
    expect(message).toContain(`lack the permission dynamodb:${action} on table ${tableName}`);
    expect(message).toMatch(/add it to their IAM policy.*user\/ada is not authorized/);
    expect(report.usable).toBe(severity === "warning");
    expect(report.permissions[action]).toBe("refused");
    expect(Object.values(report.permissions).filter((answer) => answer === "allowed")).toHaveLength(8);
  });

  test("a key of KMS that refuses is told as that", async () => {
    const tableName = await rightTable();
    scene.proxy.on("GetItem", error("AccessDeniedException", "not authorized to perform: kms:Decrypt"), FOREVER);
    const message = onlyProblem(await check(tableName), "error permission");
    expect(message).toMatch(
      /^The KMS key that encrypts table .* allow kms:Decrypt .*; until then, nobody can wait for a lock/,
    );
  });

  test("where the table may not be described, a missing table and a key that does not fit show all the same", async () => {
    scene.proxy.on("DescribeTable", denied(), FOREVER);
    scene.proxy.on("DescribeTimeToLive", denied(), FOREVER);
    onlyProblem(await check("no-such-table"), "error missing");
    const report = await check(await tableByHand(WITHOUT_SORT));
    const message = expect.stringContaining("keys.partition and keys.sort");
    expect(report.problems).toContainEqual(expect.objectContaining({ severity: "error", code: "request", message }));
    expect(report.usable).toBe(false);
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
