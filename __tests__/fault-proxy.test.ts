import { createServer } from "node:net";
import { crc32 } from "node:zlib";
import {
  DeleteItemCommand,
  type DynamoDBClientConfig,
  GetItemCommand,
  PutItemCommand,
  QueryCommand,
  TransactWriteItemsCommand,
  UpdateItemCommand,
} from "@aws-sdk/client-dynamodb";
import { afterEach, beforeAll, beforeEach, describe, expect, test } from "@jest/globals";
import {
  createGate,
  dateHeader,
  delay,
  duplicate,
  error,
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

  test("a query that finds nothing costs what DynamoDB bills for it", async () => {
    const query = {
      TableName,
      KeyConditionExpression: "#name = :name",
      ExpressionAttributeNames: { "#name": "name" },
      ExpressionAttributeValues: { ":name": key().name },
    };
    const client = clientOf();
    await client.send(new QueryCommand(query));
    await client.send(new QueryCommand({ ...query, ConsistentRead: true }));
    expect(proxy.requests.map(({ units }) => units.read)).toEqual([0.5, 1]);
  });

  test("a client that asks for the units gets them", async () => {
    await direct.send(put("one"));
    const query = new QueryCommand({
      TableName,
      KeyConditionExpression: "#name = :name",
      ExpressionAttributeNames: { "#name": "name" },
      ExpressionAttributeValues: { ":name": key().name },
      ReturnConsumedCapacity: "TOTAL",
    });
    expect((await clientOf().send(query)).ConsumedCapacity?.CapacityUnits).toBe(0.5);
    expect(proxy.units("Query")).toEqual({ write: 0, read: 0.5 });
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

  test("reset forgets the requests and keeps the numbering", async () => {
    const client = clientOf();
    await client.send(put("one"));
    proxy.reset();
    expect(proxy.requests).toEqual([]);
    await client.send(put("two"));
    expect(proxy.requests.map(({ seq }) => seq)).toEqual([2]);
  });

  test("a rewritten body carries its own checksum", async () => {
    await clientOf().send(put("one"));
    const response = await fetch(proxy.endpoint, {
      method: "POST",
      headers: {
        "content-type": "application/x-amz-json-1.0",
        "x-amz-target": "DynamoDB_20120810.GetItem",
        authorization:
          "AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/dynamodb/aws4_request, SignedHeaders=host, Signature=none",
      },
      body: JSON.stringify({ TableName, Key: key() }),
    });
    const body = await response.text();
    expect(JSON.parse(body)).toEqual({ Item: { ...key(), value: { S: "one" } } });
    expect(response.headers.get("x-amz-crc32")).toBe(String(crc32(body)));
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

  test("until resolves as soon as the log fulfils the condition", async () => {
    const client = clientOf();
    const twoAnswered = proxy.until((requests) => requests.filter((it) => it.ending === "answered").length === 2);
    await Promise.all([client.send(put("one")), client.send(get())]);
    await twoAnswered;
    await proxy.until(() => proxy.count() === 2);
  });

  test("a condition that throws fails the one who waits for it, and nobody else", async () => {
    const wrong = proxy.until((requests) => {
      if (requests.length > 0) throw new Error("the condition is wrong");
      return false;
    });
    await clientOf().send(put("one"));
    await expect(wrong).rejects.toThrow("the condition is wrong");
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
  test("resetBefore: the socket is cut and the table unchanged", async () => {
    proxy.on("PutItem", resetBefore());
    await expect(clientOf().send(put("one"))).rejects.toMatchObject({ code: "ECONNRESET" });
    expect(await stored()).toBeUndefined();
    expect(proxy.requests[0]).toMatchObject({ fault: "resetBefore", forwarded: false, ending: "cut" });
  });

  test("resetAfter: applied, and the reply lost", async () => {
    proxy.on("PutItem", resetAfter());
    await expect(clientOf().send(put("one"))).rejects.toMatchObject({ code: "ECONNRESET" });
    expect(await stored()).toBe("one");
    expect(proxy.requests[0]).toMatchObject({ forwarded: true, status: undefined, table: { status: 200 } });
  });

  test("a conditional put whose reply is lost meets its own row when the SDK sends it again", async () => {
    proxy.on("PutItem", resetAfter());
    await expect(clientOf({ maxAttempts: 3 }).send(putNew("mine"))).rejects.toMatchObject({
      name: "ConditionalCheckFailedException",
      Item: { value: { S: "mine" } },
    });
    expect(proxy.count("PutItem")).toBe(2);
  });

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

  test("hangAfter: applied and not answered", async () => {
    const rule = proxy.on("PutItem", hangAfter());
    const outcome = clientOf().send(put("one"));
    await rule.done;
    expect(await stored()).toBe("one");
    expect(proxy.requests[0]?.ending).toBeUndefined();
    await proxy.close();
    await expect(outcome).rejects.toThrow();
  });

  test("errors look to the SDK as DynamoDB's own", async () => {
    const cases = [
      { fault: status500(), name: "InternalServerError", status: 500 },
      { fault: throttle(), name: "ThrottlingException", status: 400 },
      {
        fault: throttle("ProvisionedThroughputExceededException"),
        name: "ProvisionedThroughputExceededException",
        status: 400,
      },
      { fault: transactionConflict(), name: "TransactionConflictException", status: 400 },
      { fault: error("RequestTimeTooSkewed", "skewed", 403), name: "RequestTimeTooSkewed", status: 403 },
    ];
    for (const { fault, name, status } of cases) {
      proxy.on("PutItem", fault);
      await expect(clientOf().send(put("one"))).rejects.toMatchObject({ name, $metadata: { httpStatusCode: status } });
    }
    expect(await stored()).toBeUndefined();
  });

  test("an error may come although the write was applied", async () => {
    proxy.on("PutItem", status500({ applied: true }));
    await expect(clientOf().send(put("one"))).rejects.toMatchObject({ name: "InternalServerError" });
    expect(await stored()).toBe("one");
  });

  test("transactionConflict: a transaction names the action it concerns", async () => {
    proxy.on("TransactWriteItems", transactionConflict({ item: 1 }));
    const actions = ["one", "two"].map((sort) => ({
      Put: { TableName, Item: { ...key(), sort: { S: sort } } },
    }));
    await expect(clientOf().send(new TransactWriteItemsCommand({ TransactItems: actions }))).rejects.toMatchObject({
      name: "TransactionCanceledException",
      CancellationReasons: [{ Code: "None" }, { Code: "TransactionConflict" }],
    });
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

  test("a rule that is removed takes no more requests", async () => {
    const rule = proxy.on("PutItem", throttle(), { times: Number.POSITIVE_INFINITY });
    const client = clientOf();
    await expect(client.send(put("one"))).rejects.toMatchObject({ name: "ThrottlingException" });
    rule.remove();
    await client.send(put("two"));
    expect(rule.used).toBe(1);
  });

  test("a mistake in a test's own predicate comes to light when the proxy closes", async () => {
    proxy.on(() => {
      throw new Error("the predicate is wrong");
    }, hang());
    await expect(clientOf().send(put("one"))).rejects.toThrow();
    await expect(proxy.close()).rejects.toThrow("the predicate is wrong");
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

  test("several requests can be held together", async () => {
    const hold = proxy.hold("PutItem", { times: 2 });
    const client = clientOf();
    const outcomes = [client.send(put("one")), client.send(put("two"))];
    await proxy.until(() => hold.held.length === 2);
    expect(await stored()).toBeUndefined();
    hold.release();
    await Promise.all(outcomes);
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

  test("a delay can end in another fault", async () => {
    const gate = createGate();
    proxy.on("PutItem", delay(gate, resetAfter()));
    const arrived = proxy.next("PutItem");
    const outcome = clientOf().send(put("one"));
    outcome.catch(() => undefined);
    expect((await arrived).forwarded).toBe(false);
    gate.release();
    await expect(outcome).rejects.toMatchObject({ code: "ECONNRESET" });
    expect(await stored()).toBe("one");
  });
});

describe("duplicates", () => {
  test("a copy that arrives late undoes what came after it", async () => {
    const copy = duplicate();
    proxy.on("PutItem", copy);
    const client = clientOf();
    await client.send(put("first"));
    expect((await copy.taken).status).toBe(200);
    await client.send(put("second"));
    expect((await copy.deliver()).status).toBe(200);
    expect(await stored()).toBe("first");
    expect(proxy.count("PutItem")).toBe(2);
    expect(proxy.copies).toHaveLength(1);
    await expect(copy.deliver()).rejects.toThrow("has been delivered");
  });

  test("a copy tells how the table refused it", async () => {
    const copy = duplicate();
    proxy.on("PutItem", copy);
    await clientOf().send(putNew("one"));
    expect((await copy.deliver()).body.Item?.value).toEqual({ S: "one" });
  });

  test("nothing arrives once the proxy is closed", async () => {
    const copy = duplicate();
    proxy.on("PutItem", copy);
    const client = clientOf();
    await client.send(put("first"));
    await direct.send(put("second"));
    await proxy.close();
    await expect(copy.deliver()).rejects.toThrow("closed");
    expect(await stored()).toBe("second");
  });

  test("a copy arrives by itself when its time has come", async () => {
    const gate = createGate();
    proxy.on("PutItem", duplicate({ until: gate }));
    const client = clientOf();
    await client.send(put("one"));
    await client.send(new DeleteItemCommand({ TableName, Key: key() }));
    gate.release();
    await proxy.until(() => proxy.copies.length === 1);
    expect(await stored()).toBe("one");
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

  test("one reply's date can be rewritten, or removed", async () => {
    proxy.on(
      () => true,
      dateHeader(() => "Thu, 01 Jan 2026 00:00:00 GMT"),
    );
    expect(await shownDate()).toBe("Thu, 01 Jan 2026 00:00:00 GMT");
    proxy.on(
      () => true,
      dateHeader(() => undefined),
    );
    expect(await shownDate()).toBeNull();
    expect(await shownDate()).not.toBeNull();
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

  test("latency keeps requests and replies on their way for so long", async () => {
    const asked: string[] = [];
    proxy.latency({
      requestMs: () => asked.push("request"),
      replyMs: () => asked.push("reply"),
    });
    await clientOf().send(put("one"));
    expect(asked).toEqual(["request", "reply"]);
  });
});

describe("several hosts", () => {
  test("requests bear the tag of their endpoint", async () => {
    await clientOf({ endpoint: proxy.endpointFor("host 1") }).send(put("one"));
    await clientOf().send(put("two"));
    expect(proxy.requests.map(({ client }) => client)).toEqual(["host 1", ""]);
    expect(proxy.count({ client: "host 1" })).toBe(1);
  });

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

  test("without a name, everybody is cut off", async () => {
    proxy.partition(undefined, "reset");
    await expect(clientOf().send(put("one"))).rejects.toMatchObject({ code: "ECONNRESET" });
    await expect(clientOf({ endpoint: proxy.endpointFor("one") }).send(put("one"))).rejects.toThrow();
    proxy.heal();
    await clientOf().send(put("two"));
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

  test("copies arrive after their time, and rules come first", async () => {
    const met: string[] = [];
    const options = { seed: 1, rates: { duplicate: 1 }, redeliverMs: [1, 2] as const };
    const chaos = proxy.chaos({ ...options, onFault: (kind) => met.push(kind) });
    proxy.on("GetItem", throttle());
    const client = clientOf();
    await expect(client.send(get())).rejects.toMatchObject({ name: "ThrottlingException" });
    await client.send(put("one"));
    await proxy.until(() => proxy.copies.length === 1);
    expect(met).toEqual(["duplicate"]);
    expect(chaos.injected.duplicate).toBe(1);
  });

  test("reads never meet a transaction conflict", async () => {
    const chaos = proxy.chaos({ seed: 1, rates: { transactionConflict: 1 } });
    await clientOf().send(get());
    const update = new UpdateItemCommand({ TableName, Key: key() });
    await expect(clientOf().send(update)).rejects.toMatchObject({ name: "TransactionConflictException" });
    expect(chaos.total).toBe(1);
  });

  test("rates that cannot be are refused", () => {
    expect(() => proxy.chaos({ seed: 1, rates: { delay: 0.6, hang: 0.6 } })).toThrow(RangeError);
  });
});

describe("an engine that fails", () => {
  test("one that is down is answered for with a 503", async () => {
    const closed = createServer();
    const target = await new Promise<string>((resolve) => {
      closed.listen(0, "127.0.0.1", () => {
        const address = closed.address();
        const port = typeof address === "object" ? address?.port : undefined;
        closed.close(() => resolve(`http://127.0.0.1:${port}`));
      });
    });
    const orphan = await startFaultProxy({ target });
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

  test("one that breaks off leaves its client in doubt", async () => {
    const breaking = createServer((socket) => socket.once("data", () => socket.resetAndDestroy()));
    await new Promise<void>((resolve) => breaking.listen(0, "127.0.0.1", resolve));
    const address = breaking.address();
    const port = typeof address === "object" ? address?.port : undefined;
    const orphan = await startFaultProxy({ target: `http://127.0.0.1:${port}` });
    try {
      const client = testClient({ endpoint: orphan.endpoint, maxAttempts: 1 });
      await expect(client.send(put("one"))).rejects.toMatchObject({ code: "ECONNRESET" });
    } finally {
      await orphan.close();
      await new Promise((resolve) => breaking.close(resolve));
    }
  });
});
