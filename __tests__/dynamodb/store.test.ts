import { randomUUID } from "node:crypto";
import { type DynamoDBClient, PutItemCommand } from "@aws-sdk/client-dynamodb";
import { marshall } from "@aws-sdk/util-dynamodb";
import { beforeAll, describe, expect, test } from "@jest/globals";
import { defaultClient } from "../../lib/dynamodb/default-client.js";
import { DynamoDbStore } from "../../lib/dynamodb/store.js";
import { Transport } from "../../lib/dynamodb/transport.js";
import { type TableLayout, tableLayout } from "../../lib/options/table.js";
import { type Address, LOCK_SORT, lockAt, MUTEX_QUEUE, PERMITS, permitAt } from "../../lib/protocol/addresses.js";
import { wasApplied } from "../../lib/protocol/was-applied.js";
import type { Take, Vacate } from "../../lib/protocol/writes.js";
import type { Store } from "../../lib/store.js";
import { systemClock } from "../../lib/time/clock.js";
import { EARLIEST, rowOf, rowWith, takeWith } from "../support/store-cases.js";
import { rawItem } from "../support/store-subjects.js";
import { createTestTable, testClient } from "../support/table.js";
import { APPLIED, FREE, removalOf, renewalOf, transferOf, vacateOf } from "../support/write-cases.js";

const forever = new AbortController().signal;

function releaseOf({ at, uuid, remembers }: Take): Vacate {
  return vacateOf(at, uuid, FREE, { remembers });
}

let layout: TableLayout;
beforeAll(async () => {
  layout = tableLayout({ tableName: await createTestTable() });
});

function storeOn(client: DynamoDBClient): Store {
  return new DynamoDbStore(layout, new Transport(client, layout, systemClock()));
}

/** What a middleware of these tests may look at and change. */
interface Exchange {
  readonly target: string;
  readonly body: Record<string, unknown>;
  readonly send: () => Promise<void>;
}

/** A client whose every attempt goes through `around`, in the place of the network. */
function clientThrough(around: (exchange: Exchange) => Promise<unknown>, maxAttempts = 1): DynamoDBClient {
  const client = testClient({ maxAttempts });
  const network = client.config.requestHandler;
  const handle: typeof network.handle = async (request, options) => {
    let result: Awaited<ReturnType<typeof network.handle>> | undefined;
    await around({
      target: request.headers["x-amz-target"]?.split(".")[1] ?? "",
      body: JSON.parse(new TextDecoder().decode(request.body)),
      send: async () => {
        result = await network.handle(request, options);
      },
    });
    if (result === undefined) throw new Error("the test sent nothing");
    return result;
  };
  client.config.requestHandler = Object.assign(Object.create(network), { handle });
  return client;
}

/** A client that keeps a list of what it sent. */
function listedClient(): { client: DynamoDBClient; sent: string[] } {
  const sent: string[] = [];
  const client = clientThrough(async ({ target, send }) => {
    sent.push(target);
    await send();
  });
  return { client, sent };
}

describe("the item of a lock", () => {
  const client = testClient();
  const item = (at: Address) => rawItem(client, layout, at);

  test("has what DESIGN says and nothing else", async () => {
    const take = takeWith({});
    await storeOn(client).write(take, forever);
    expect(await item(take.at)).toEqual({
      name: { S: take.at.name },
      sort: { S: "lock" },
      format: { N: "1" },
      uuid: { S: take.uuid },
      expires: { N: `${take.expires}` },
      ttlMs: { N: "30000" },
      owner: { S: "host#2" },
      acquired: { N: `${EARLIEST}` },
      purge: expect.anything(),
    });
  });

  test("of a permit says how many there are, under a key that sorts by its number", async () => {
    const take = takeWith({ at: permitAt(randomUUID(), 7), permits: 12 });
    await storeOn(client).write(take, forever);
    expect(await item(take.at)).toMatchObject({ sort: { S: "semaphore#0007" }, permits: { N: "12" } });
  });

  test("holds whole numbers only: anything else is refused before it is sent", async () => {
    const take = takeWith({ expires: EARLIEST + 0.5 });
    await expect(storeOn(client).write(take, forever)).rejects.toThrow("whole numbers only");
    expect(await item(take.at)).toBeUndefined();
  });
});

describe("the requests of a store", () => {
  test("are one for each operation that meets no refusal", async () => {
    const { client, sent } = listedClient();
    const store = storeOn(client);
    const take = takeWith({});
    await store.write(take, forever);
    await store.write(renewalOf(take.at, take.uuid, take.expires + 1), forever);
    await store.read(take.at, { consistent: false }, forever);
    await store.write(releaseOf(take), forever);
    await store.write({ kind: "draw", at: { ...take.at, sort: MUTEX_QUEUE.counter }, seed: 1 }, forever);
    await store.query({ name: take.at.name, first: LOCK_SORT, last: "queue#9", limit: 2, consistent: true }, forever);
    await store.scan(take.at.name, undefined, forever);
    expect(sent).toEqual(["PutItem", "UpdateItem", "GetItem", "DeleteItem", "UpdateItem", "Query", "Scan"]);
  });

  test("are one for each page of a range, and name the row behind which it starts by its whole key", async () => {
    const asked: unknown[] = [];
    const client = clientThrough(async ({ body, send }) => {
      asked.push(body.ExclusiveStartKey);
      await send();
    });
    const range = { name: "any", ...PERMITS, limit: 2, consistent: true };
    await storeOn(client).query(range, forever);
    await storeOn(client).query({ ...range, after: "semaphore#0001" }, forever);
    expect(asked).toEqual([undefined, { name: { S: "any" }, sort: { S: "semaphore#0001" } }]);
  });

  test("are one for a refusal that shows its row", async () => {
    const { client, sent } = listedClient();
    const store = storeOn(client);
    const take = takeWith({});
    await store.write(take, forever);
    await store.write(take, forever);
    expect(sent).toEqual(["PutItem", "PutItem"]);
  });

  test("are two for the release of a row that remembers something which its holder does not know of", async () => {
    const { client, sent } = listedClient();
    const store = storeOn(client);
    const take = takeWith({ token: { least: 0, seed: 7, isBehind: false } });
    await store.write(take, forever);
    await store.write({ ...releaseOf(take), uuid: "another" }, forever);
    await store.write(releaseOf(take), forever);
    expect(sent).toEqual(["UpdateItem", "DeleteItem", "DeleteItem", "UpdateItem"]);
  });

  test("are consistent or not, as told", async () => {
    const read: unknown[] = [];
    const client = clientThrough(async ({ body, send }) => {
      read.push(body.ConsistentRead);
      await send();
    });
    await storeOn(client).read(lockAt("any"), { consistent: false }, forever);
    await storeOn(client).read(lockAt("any"), { consistent: true }, forever);
    expect(read).toEqual([false, true]);
  });
});

test("what a transfer replaced is told where it is a row, and never keeps the transfer from being told", async () => {
  const { sort: _, name, ...row } = rowWith({ uuid: "mine", expires: 99 });
  const client = testClient();
  const store = storeOn(client);
  // A write that names the uuid of a row compares no mark. A take does, and would be refused.
  const Item = { ...marshall(row, { removeUndefinedValues: true }), format: { N: "1" }, wanted: { S: "soon" } };
  await client.send(
    new PutItemCommand({ TableName: layout.tableName, Item: { name: { S: name }, sort: { S: "lock" }, ...Item } }),
  );
  const at = lockAt(name);
  await expect(store.write(takeWith({ at }), forever)).rejects.toThrow("its wanted must be a number");
  expect(await store.write(transferOf(at), forever)).toEqual(APPLIED);
  await expect(store.read(at, { consistent: true }, forever)).rejects.toThrow('"uuid":{"S":"fresh"}');
});

test("a client that sends commands of its own is not believed where a reply shows that DynamoDB did not send it", async () => {
  // What the SDK makes of an empty page with status 200.
  const client = Object.assign(testClient(), { send: async () => ({ $metadata: { httpStatusCode: 200 } }) });
  const store = storeOn(client);
  for (const take of [() => store.write(takeWith({}), forever), () => store.writeAll([takeWith({})], forever)]) {
    const told = {
      code: "LOCK_STORE",
      answered: false,
      transient: false,
      message: expect.stringContaining("has no request id"),
    };
    await expect(take()).rejects.toMatchObject(told);
  }
});

describe("an engine that shows no row with a refusal", () => {
  /** Turns the question off on its way, so that the engine answers as older ones do. */
  function silentStore(): { store: Store; sent: string[]; meanwhile: (what: () => Promise<unknown>) => void } {
    const { client, sent } = listedClient();
    let next: (() => Promise<unknown>) | undefined;
    client.middlewareStack.add(
      (send) => async (args) => {
        const input = { ...(args.input as object), ReturnValuesOnConditionCheckFailure: undefined };
        const first = next;
        next = undefined;
        await first?.();
        return send({ ...args, input });
      },
      { step: "initialize" },
    );
    return {
      store: storeOn(client),
      sent,
      meanwhile: (what) => {
        next = what;
      },
    };
  }

  test("is asked once for the row, and the refusal carries it", async () => {
    const { store, sent } = silentStore();
    const take = takeWith({});
    await store.write(take, forever);
    const row = { uuid: take.uuid, expires: take.expires };
    expect(await store.write(take, forever)).toMatchObject({ kind: "refused", row });
    expect(await store.write(renewalOf(take.at, take.uuid, take.expires), forever)).toMatchObject({
      kind: "refused",
      row,
    });
    expect(await store.write({ ...releaseOf(take), uuid: "another" }, forever)).toMatchObject({
      kind: "refused",
      row,
    });
    expect(sent).toEqual(["PutItem", "PutItem", "GetItem", "UpdateItem", "GetItem", "DeleteItem", "GetItem"]);
  });

  test("that then has no row any more: the take may be tried again", async () => {
    const take = takeWith({});
    const plain = storeOn(testClient());
    await plain.write(take, forever);
    const { store, meanwhile } = silentStore();
    // The put is refused; before the question for the row, its holder releases.
    meanwhile(async () => meanwhile(async () => plain.write(releaseOf(take), forever)));
    const refused = { code: "LOCK_STORE", transient: true, answered: true };
    await expect(store.write(take, forever)).rejects.toMatchObject(refused);
    expect(await store.write(take, forever)).toMatchObject({ kind: "applied" });
  });
});

describe("a client that sends again by itself", () => {
  /** The first copy of a kind of request is applied, and its reply is lost. */
  function losing(target: string): Store {
    let lost = false;
    const client = clientThrough(async (exchange) => {
      await exchange.send();
      if (exchange.target !== target || lost) return;
      lost = true;
      throw Object.assign(new Error("socket hang up"), { code: "ECONNRESET" });
    }, 3);
    return storeOn(client);
  }

  test("finds the row of its own put or transfer in its way", async () => {
    const take = takeWith({});
    const taken = { uuid: take.uuid, expires: take.expires };
    expect(await losing("PutItem").write(take, forever)).toMatchObject({ kind: "refused", row: taken });
    const transfer = transferOf(take.at, { from: take.uuid });
    const row = { ...rowOf(take), uuid: "fresh", expires: 100, ttlMs: 7_000, owner: "host#3" };
    expect(await losing("UpdateItem").write(transfer, forever)).toEqual({ kind: "refused", retried: true, row });
    expect(wasApplied(transfer, row)).toBe("yes");
  });

  test("says so of a renewal, which its first copy has applied", async () => {
    const store = losing("UpdateItem");
    const take = takeWith({});
    await store.write(take, forever);
    const renewal = renewalOf(take.at, take.uuid, take.expires + 1);
    const refusal = { kind: "refused", row: { uuid: take.uuid, expires: take.expires + 1 } };
    expect(await store.write(renewal, forever)).toMatchObject({ ...refusal, retried: true });
    expect(await store.write(renewal, forever)).toMatchObject({ ...refusal, retried: false });
  });

  test.each([
    ["removal", (take: Take) => removalOf(take.at, take.uuid, take.expires)],
    ["release", releaseOf],
  ])("says so of a %s, which its first copy has applied", async (_kind, writeOf) => {
    const store = losing("DeleteItem");
    const take = takeWith({});
    await store.write(take, forever);
    const outcome = await store.write(writeOf(take), forever);
    expect(outcome).toEqual({ kind: "refused", row: undefined, retried: true });
  });
});

test("a request under way ends when its signal does", async () => {
  const controller = new AbortController();
  const client = clientThrough(async ({ send }) => {
    const reply = send();
    controller.abort();
    await reply;
  });
  const ended = { code: "LOCK_STORE", transient: true, answered: false, cause: { name: "AbortError" } };
  const reading = storeOn(client).read(lockAt("any"), { consistent: true }, controller.signal);
  await expect(reading).rejects.toMatchObject(ended);
});

test("closing destroys the store's own client, and never a caller's", () => {
  const destroyed: string[] = [];
  for (const ownsClient of [true, false]) {
    const client = ownsClient ? defaultClient() : testClient();
    client.destroy = () => destroyed.push(ownsClient ? "its own" : "the caller's");
    new DynamoDbStore(layout, new Transport(client, layout, systemClock())).close();
  }
  expect(destroyed).toEqual(["its own"]);
});
