import {
  type DynamoDBClientConfig,
  GetItemCommand,
  PutItemCommand,
  TransactWriteItemsCommand,
} from "@aws-sdk/client-dynamodb";
import { afterEach, beforeAll, beforeEach, describe, expect, test } from "@jest/globals";
import {
  delay,
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
  stripAllOld,
  throttle,
  transactionConflict,
} from "./support/fault-proxy.js";
import { createTestTable, testClient, testEndpoint } from "./support/table.js";

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

describe("what it records", () => {
  test("units are counted without the client seeing that they were asked for", async () => {
    const client = clientOf();
    expect((await client.send(putNew("one"))).ConsumedCapacity).toBeUndefined();
    expect((await client.send(get())).ConsumedCapacity).toBeUndefined();
    await client.send(new GetItemCommand({ TableName, Key: key() }));
    expect(proxy.requests[0]?.body.ReturnConsumedCapacity).toBeUndefined();
    expect(proxy.units()).toEqual({ write: 1, read: 1.5 });
  });

  test("a refused condition costs what DynamoDB bills for it", async () => {
    const client = clientOf();
    await client.send(putNew("one"));
    await expect(client.send(putNew("two"))).rejects.toMatchObject({ name: "ConditionalCheckFailedException" });
    const transaction = new TransactWriteItemsCommand({ TransactItems: [{ Put: putNew("three").input }] });
    await expect(client.send(transaction)).rejects.toMatchObject({ name: "TransactionCanceledException" });
    expect(proxy.requests.map(({ units }) => units.write)).toEqual([1, 1, 2]);
  });
});

describe("faults", () => {
  test("hang: neither applied nor answered until the client gives up", async () => {
    const rule = proxy.on("PutItem", hang());
    const abort = new AbortController();
    const outcome = clientOf().send(put("one"), { abortSignal: abort.signal });
    await rule.done;
    abort.abort();
    await expect(outcome).rejects.toMatchObject({ name: "AbortError" });
    await proxy.requests[0]?.settled;
    expect(proxy.requests[0]).toMatchObject({ forwarded: false, ending: "left" });
    expect(await stored()).toBeUndefined();
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
    [delay(Promise.resolve(), resetAfter()), { code: "ECONNRESET" }, "one"],
  ])("case %#: the client sees the fault, and the table has applied what it says", async (fault, seen, applied) => {
    proxy.on("PutItem", fault);
    await expect(clientOf().send(put("one"))).rejects.toMatchObject(seen);
    expect(await stored()).toBe(applied);
    expect(proxy.requests[0]?.forwarded).toBe(applied !== undefined);
  });

  test("hangAfter: applied and not answered", async () => {
    const rule = proxy.on("PutItem", hangAfter());
    const outcome = clientOf().send(put("one"));
    await rule.done;
    expect(await stored()).toBe("one");
    expect(proxy.requests[0]?.ending).toBeUndefined();
    await proxy.close();
    await expect(outcome).rejects.toThrow();
  });

  test("stripAllOld: the refusal comes without its row, also in a transaction", async () => {
    proxy.on(() => true, stripAllOld(), { times: Number.POSITIVE_INFINITY });
    const client = clientOf();
    await client.send(putNew("one"));
    const refusal = await client.send(putNew("two")).catch((reason: unknown) => reason);
    expect(refusal).toMatchObject({ name: "ConditionalCheckFailedException" });
    expect(refusal).not.toHaveProperty("Item.value");
    const transaction = new TransactWriteItemsCommand({ TransactItems: [{ Put: putNew("two").input }] });
    await expect(client.send(transaction)).rejects.toMatchObject({ name: "TransactionCanceledException" });
    expect(proxy.requests.at(-1)?.response?.CancellationReasons).toEqual([
      { Code: "ConditionalCheckFailed", Message: "The conditional request failed" },
    ]);
    expect((await client.send(get())).Item?.value).toEqual({ S: "one" });
  });
});

describe("holding", () => {
  test("a request is held on arrival and applied once released", async () => {
    const hold = proxy.hold("PutItem");
    const outcome = clientOf().send(put("one"));
    expect((await hold.arrived).forwarded).toBe(false);
    expect(await stored()).toBeUndefined();
    hold.release();
    await outcome;
    expect(await stored()).toBe("one");
  });

  test("a reply is held after the table has applied the request", async () => {
    const hold = proxy.hold({ operation: "PutItem" }, { at: "reply" });
    const outcome = clientOf().send(put("one"));
    const request = await hold.arrived;
    expect(await stored()).toBe("one");
    expect(request.ending).toBeUndefined();
    hold.release();
    await outcome;
  });

  test("a request whose client has given up arrives all the same", async () => {
    const hold = proxy.hold("PutItem");
    const abort = new AbortController();
    const outcome = clientOf().send(put("late"), { abortSignal: abort.signal });
    const request = await hold.arrived;
    abort.abort();
    await expect(outcome).rejects.toMatchObject({ name: "AbortError" });
    await request.settled;
    expect(request.ending).toBe("left");
    hold.release();
    await proxy.until(() => request.table !== undefined);
    expect(await stored()).toBe("late");
  });
});

describe("duplicates", () => {
  test("a copy that arrives late undoes what came after it, and nothing arrives once the proxy is closed", async () => {
    const [copy, late] = [duplicate(), duplicate()];
    proxy.on("PutItem", copy);
    proxy.on("PutItem", late);
    const client = clientOf();
    await client.send(put("first"));
    await client.send(put("second"));
    expect((await copy.deliver()).status).toBe(200);
    expect(await stored()).toBe("first");
    expect([proxy.count("PutItem"), proxy.copies.length]).toEqual([2, 1]);
    await proxy.close();
    await expect(late.deliver()).rejects.toThrow("closed");
    expect(await stored()).toBe("first");
  });
});

describe("several hosts", () => {
  test("a partition swallows the reply to what the table is already doing", async () => {
    const hold = proxy.hold("PutItem", { at: "reply" });
    const outcome = clientOf({ endpoint: proxy.endpointFor("one") }).send(put("one"));
    outcome.catch(() => undefined);
    const request = await hold.arrived;
    proxy.partition("one", "reset");
    hold.release();
    await expect(outcome).rejects.toMatchObject({ code: "ECONNRESET" });
    expect(request).toMatchObject({ table: { status: 200 }, status: undefined, ending: "cut" });
  });
});
