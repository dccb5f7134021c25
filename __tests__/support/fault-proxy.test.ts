import {
  type DynamoDBClientConfig,
  GetItemCommand,
  PutItemCommand,
  TransactWriteItemsCommand,
} from "@aws-sdk/client-dynamodb";
import { afterEach, beforeAll, beforeEach, expect, test } from "@jest/globals";
import {
  duplicate,
  error,
  type Fault,
  type FaultProxy,
  hang,
  hangAfter,
  resetAfter,
  resetBefore,
  startFaultProxy,
  status500,
  throttle,
  transactionConflict,
} from "./fault-proxy.js";
import { createTestTable, testClient, testEndpoint } from "./table.js";

let TableName: string;
let proxy: FaultProxy;
let rows = 0;

beforeAll(async () => {
  TableName = await createTestTable();
});

beforeEach(async () => {
  proxy = await startFaultProxy({ target: testEndpoint() });
  rows += 1;
});

afterEach(() => proxy.close());

const direct = testClient();

function clientOf(options: DynamoDBClientConfig = {}) {
  return testClient({ endpoint: proxy.endpoint, maxAttempts: 1, ...options });
}

/** A row of this test's own. */
function key() {
  return { name: { S: `row-${rows}` }, sort: { S: "lock" } };
}

function put(value: string) {
  return new PutItemCommand({ TableName, Item: { ...key(), value: { S: value } } });
}

function putNew(value: string) {
  return new PutItemCommand({
    TableName,
    Item: { ...key(), value: { S: value } },
    ConditionExpression: "attribute_not_exists(#name)",
    ExpressionAttributeNames: { "#name": "name" },
    ReturnValuesOnConditionCheckFailure: "ALL_OLD",
  });
}

function get() {
  return new GetItemCommand({ TableName, Key: key(), ConsistentRead: true });
}

/** What the table holds, past the proxy. */
async function stored(): Promise<string | undefined> {
  return (await direct.send(get())).Item?.value?.S;
}

test("a refused condition costs what DynamoDB bills for it", async () => {
  const client = clientOf();
  await client.send(putNew("one"));
  await expect(client.send(putNew("two"))).rejects.toMatchObject({ name: "ConditionalCheckFailedException" });
  const transaction = new TransactWriteItemsCommand({ TransactItems: [{ Put: putNew("three").input }] });
  await expect(client.send(transaction)).rejects.toMatchObject({ name: "TransactionCanceledException" });
  expect(proxy.requests.map(({ units }) => units.write)).toEqual([1, 1, 2]);
});

const outOfCapacity = "ProvisionedThroughputExceededException";
test.each<[Fault, object, string | undefined]>([
  [resetBefore(), { code: "ECONNRESET" }, undefined],
  [resetAfter(), { code: "ECONNRESET" }, "one"],
  [status500(), { name: "InternalServerError", $metadata: { httpStatusCode: 500 } }, undefined],
  [status500({ applied: true }), { name: "InternalServerError" }, "one"],
  [throttle(), { name: "ThrottlingException", $metadata: { httpStatusCode: 400 } }, undefined],
  [throttle(outOfCapacity), { name: outOfCapacity }, undefined],
  [transactionConflict(), { name: "TransactionConflictException" }, undefined],
  [error("RequestTimeTooSkewed", "skewed", 403), { $metadata: { httpStatusCode: 403 } }, undefined],
])("case %#: the client sees the fault, and the table has applied what it says", async (fault, seen, applied) => {
  proxy.on("PutItem", fault);
  await expect(clientOf().send(put("one"))).rejects.toMatchObject(seen);
  expect(await stored()).toBe(applied);
});

test.each<[Fault, string | undefined]>([
  [hang(), undefined],
  [hangAfter(), "one"],
])("case %#: nothing is answered until the client gives up", async (fault, applied) => {
  const rule = proxy.on("PutItem", fault);
  const abort = new AbortController();
  const outcome = clientOf().send(put("one"), { abortSignal: abort.signal });
  await rule.done;
  expect(await stored()).toBe(applied);
  expect(proxy.requests[0]?.ending).toBeUndefined();
  abort.abort();
  await expect(outcome).rejects.toMatchObject({ name: "AbortError" });
});

test("a request that is held when its client gives up arrives all the same", async () => {
  const hold = proxy.hold("PutItem");
  const abort = new AbortController();
  const outcome = clientOf().send(put("late"), { abortSignal: abort.signal });
  const request = await hold.arrived;
  abort.abort();
  await expect(outcome).rejects.toMatchObject({ name: "AbortError" });
  await request.settled;
  expect(request.ending).toBe("left");
  expect(await stored()).toBeUndefined();
  hold.release();
  await proxy.until(() => request.table !== undefined);
  expect(await stored()).toBe("late");
});

test("a copy that arrives late undoes what came after it, and nothing arrives once the proxy is closed", async () => {
  const [copy, late] = [duplicate(), duplicate()];
  proxy.on("PutItem", copy);
  proxy.on("PutItem", late);
  const client = clientOf();
  await client.send(put("first"));
  await client.send(put("second"));
  expect((await copy.deliver()).status).toBe(200);
  expect(await stored()).toBe("first");
  expect(proxy.count("PutItem")).toBe(2);
  await proxy.close();
  await expect(late.deliver()).rejects.toThrow("closed");
  expect(await stored()).toBe("first");
});

test("a partition swallows the reply to what the table is already doing", async () => {
  const hold = proxy.hold("PutItem", { at: "reply" });
  const outcome = clientOf({ endpoint: proxy.endpointFor("one") }).send(put("one"));
  outcome.catch(() => undefined);
  const request = await hold.arrived;
  expect(await stored()).toBe("one");
  proxy.partition("one", "reset");
  hold.release();
  await expect(outcome).rejects.toMatchObject({ code: "ECONNRESET" });
  expect(request).toMatchObject({ table: { status: 200 }, status: undefined, ending: "cut" });
});
