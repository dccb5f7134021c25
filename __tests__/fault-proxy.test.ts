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
  test("requests pass unchanged, in order of arrival, with what the table answered", async () => {
    const client = clientOf();
    await client.send(put("one"));
    expect((await client.send(get())).Item?.value).toEqual({ S: "one" });
    expect(proxy.requests.map(({ seq, operation, status }) => ({ seq, operation, status }))).toEqual([
      { seq: 1, operation: "PutItem", status: 200 },
      { seq: 2, operation: "GetItem", status: 200 },
    ]);
    expect(proxy.requests[0]?.body.Item?.value).toEqual({ S: "one" });
    expect(proxy.requests[1]?.response?.Item?.value).toEqual({ S: "one" });
    expect(proxy.counts()).toEqual({ PutItem: 1, GetItem: 1 });
    expect(proxy.count({ operation: (operation) => operation.startsWith("Put") })).toBe(1);
  });

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

  test("the retries of one call share its id and count up", async () => {
    const rule = proxy.on("PutItem", resetBefore());
    await clientOf({ maxAttempts: 2 }).send(put("one"));
    await rule.done;
    const [first, second] = proxy.select("PutItem");
    expect([first?.attempt, second?.attempt]).toEqual([1, 2]);
    expect(first?.invocation).toBe(second?.invocation);
    expect([first?.ending, second?.ending]).toEqual(["cut", "answered"]);
  });
});

describe("waiting for requests", () => {
  test("next resolves with the next such request, not with an earlier one", async () => {
    const client = clientOf();
    await client.send(put("one"));
    const next = proxy.next("PutItem");
    await client.send(get());
    await client.send(put("two"));
    expect((await next).body.Item?.value).toEqual({ S: "two" });
  });

  test("what nobody will ever send is not awaited beyond the end of the proxy", async () => {
    const next = proxy.next("DeleteItem");
    const rule = proxy.on("DeleteItem", hang());
    const hold = proxy.hold("DeleteItem");
    await proxy.close();
    await expect(next).rejects.toThrow("closed");
    await expect(rule.done).rejects.toThrow("after 0 of 1 uses");
    await expect(hold.arrived).rejects.toThrow("removed");
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

  test("a rule serves as many requests as it says, and the oldest that matches acts", async () => {
    const twice = proxy.on("PutItem", throttle(), { times: 2 });
    const later = proxy.on({ where: ({ body }) => body.Item?.value?.S === "three" }, resetBefore());
    const client = clientOf();
    await expect(client.send(put("one"))).rejects.toMatchObject({ name: "ThrottlingException" });
    await expect(client.send(put("three"))).rejects.toMatchObject({ name: "ThrottlingException" });
    await twice.done;
    await expect(client.send(put("three"))).rejects.toMatchObject({ code: "ECONNRESET" });
    await client.send(put("three"));
    expect([twice.used, later.used]).toEqual([2, 1]);
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

describe("time", () => {
  async function shownDate(): Promise<string | null> {
    const response = await fetch(proxy.endpoint, { method: "POST", body: "{}" });
    return response.headers.get("date");
  }

  test("replies show the table's own date unless told otherwise", async () => {
    const before = Math.floor(Date.now() / 1_000) * 1_000;
    const shown = Date.parse((await shownDate()) ?? "");
    expect(shown).toBeGreaterThanOrEqual(before);
    expect(shown).toBeLessThanOrEqual(Date.now());
  });

  test("the table's clock can be shifted for all replies, made-up errors too", async () => {
    proxy.shiftDate(-3_600_000);
    proxy.on("", throttle());
    for (const _ of ["made up", "the table's"]) {
      const before = Date.now() - 3_600_000;
      const shown = Date.parse((await shownDate()) ?? "");
      expect(shown).toBeGreaterThan(before - 1_000);
      expect(shown).toBeLessThanOrEqual(Date.now() - 3_600_000);
    }
    proxy.rewriteDate(() => undefined);
    expect(await shownDate()).toBeNull();
    proxy.rewriteDate(undefined);
    expect(await shownDate()).not.toBeNull();
  });
});

describe("several hosts", () => {
  test("a partition silences one host and leaves the others alone", async () => {
    const one = clientOf({ endpoint: proxy.endpointFor("one") });
    const two = clientOf({ endpoint: proxy.endpointFor("two") });
    proxy.partition("one");
    const arrived = proxy.next({ client: "one" });
    const silenced = one.send(put("one"));
    silenced.catch(() => undefined);
    expect((await arrived).fault).toBe("partition");
    await two.send(put("two"));
    expect(await stored()).toBe("two");
    proxy.heal("one");
    await expect(silenced).rejects.toMatchObject({ code: "ECONNRESET" });
    await one.send(put("one"));
    expect(await stored()).toBe("one");
  });

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

describe("chaos", () => {
  const rates = { delay: 0.1, resetBefore: 0.1, resetAfter: 0.1, status500: 0.1, throttle: 0.1, duplicate: 0.1 };

  async function faultsMet(seed: number): Promise<readonly (string | undefined)[]> {
    const client = clientOf();
    const chaos = proxy.chaos({ seed, rates, delayMs: [1, 2], redeliverMs: [1, 2] });
    proxy.reset();
    for (let count = 0; count < 60; count += 1) await client.send(put("any")).catch(() => undefined);
    chaos.stop();
    const met = proxy.requests.map(({ fault }) => fault);
    expect(chaos.total).toBe(met.filter((fault) => fault !== undefined).length);
    expect(chaos.injected.resetAfter).toBe(met.filter((fault) => fault === "resetAfter").length);
    return met;
  }

  test("the same seed does the same to the same requests, another one something else", async () => {
    const first = await faultsMet(7);
    expect(new Set(first).size).toBeGreaterThan(5);
    expect(await faultsMet(7)).toEqual(first);
    expect(await faultsMet(8)).not.toEqual(first);
  });
});

describe("an engine that fails", () => {
  test("one that is down is answered for with a 503", async () => {
    const dead = await startFaultProxy({ target: testEndpoint() });
    const deadEndpoint = dead.endpoint;
    await dead.close();
    // The port is free again: nobody listens there.
    const orphan = await startFaultProxy({ target: deadEndpoint });
    try {
      const client = testClient({ endpoint: orphan.endpoint, maxAttempts: 1 });
      await expect(client.send(put("one"))).rejects.toMatchObject({
        name: "ServiceUnavailable",
        $metadata: { httpStatusCode: 503 },
      });
      expect(orphan.requests[0]?.table).toBeUndefined();
    } finally {
      await orphan.close();
    }
  });
});
