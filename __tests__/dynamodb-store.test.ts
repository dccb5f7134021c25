import { randomUUID } from "node:crypto";
import { type DynamoDBClient, PutItemCommand } from "@aws-sdk/client-dynamodb";
import { marshall } from "@aws-sdk/util-dynamodb";
import { beforeAll, describe, expect, test } from "@jest/globals";
import { DynamoDbStore } from "../lib/dynamodb/store.js";
import { defaultClient } from "../lib/dynamodb/transport.js";
import { LockStoreError } from "../lib/errors.js";
import { type TableLayout, tableLayout } from "../lib/options/table.js";
import { type Address, LOCK_SORT, lockAt, MUTEX_QUEUE, PERMITS, permitAt } from "../lib/protocol/addresses.js";
import type { Memory } from "../lib/protocol/row.js";
import { wasApplied } from "../lib/protocol/was-applied.js";
import type { Renew, Take, Vacate } from "../lib/protocol/writes.js";
import type { Store } from "../lib/store.js";
import { type Clock, systemClock } from "../lib/time/clock.js";
import { EARLIEST, rowOf, rowWith, takeWith } from "./support/store-cases.js";
import { rawItem } from "./support/store-subjects.js";
import { createTestTable, testClient } from "./support/table.js";
import { removalOf, transferOf } from "./support/write-cases.js";

const A_WEEK_IN_SECONDS = 7 * 24 * 60 * 60;
const forever = new AbortController().signal;

function renewalOf({ at, uuid, remembers }: Take, expires: number): Renew {
  return { kind: "renew", at, uuid, expires, remembers };
}

function releaseOf({ at, uuid, remembers }: Take): Vacate {
  return { kind: "vacate", at, uuid, leaves: { kind: "free" }, remembers };
}

let layout: TableLayout;
beforeAll(async () => {
  layout = tableLayout({ tableName: await createTestTable() });
});

function storeOn(client: DynamoDBClient, clock: Clock = systemClock()): Store {
  return new DynamoDbStore({ client, layout, clock });
}

/** What a middleware of these tests may look at and change. */
interface Exchange {
  readonly target: string;
  readonly body: Record<string, unknown>;
  readonly send: () => Promise<{ headers: Record<string, string> }>;
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
        return result.response;
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

  test.each<Memory>(["nothing", "fence"])(
    "purges a week after its lease, in epoch seconds, moved by each write: it remembers %s",
    async (remembers) => {
      const store = storeOn(client);
      const take = takeWith({ expires: 4_000_000_000_001, remembers });
      const { at, uuid } = take;
      const purge = async () => Number((await item(at))?.purge?.N);
      await store.write(take, forever);
      expect(await purge()).toBe(4_000_000_001 + A_WEEK_IN_SECONDS);
      await store.write(renewalOf(take, 4_000_000_015_000), forever);
      expect(await purge()).toBe(4_000_000_015 + A_WEEK_IN_SECONDS);
      const reissue = { kind: "reissue", at, from: uuid, uuid: "fresh", fenced: false, remembers } as const;
      await store.write({ ...reissue, expires: 4_000_000_020_000 }, forever);
      expect(await purge()).toBe(4_000_000_020 + A_WEEK_IN_SECONDS);
      await store.write(
        transferOf(at, { from: "fresh", uuid: "next", expires: 4_000_000_007_000, remembers }),
        forever,
      );
      expect(await purge()).toBe(4_000_000_007 + A_WEEK_IN_SECONDS);
      const leaves = { kind: "held", expires: 4_000_000_003_000, ttlMs: 5 } as const;
      await store.write({ kind: "vacate", at, uuid: "next", leaves, remembers }, forever);
      expect(await purge()).toBe(4_000_000_003 + A_WEEK_IN_SECONDS);
    },
  );

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
    await store.write(renewalOf(take, take.expires + 1), forever);
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
    const take = takeWith({ fenceSeed: 7 });
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
  const client = clientThrough(async ({ send }) => void (await send()));
  const store = storeOn(client);
  // A write that names the uuid of a row compares no mark. A take does, and would be refused.
  const Item = { ...marshall(row, { removeUndefinedValues: true }), format: { N: "1" }, wanted: { S: "soon" } };
  await client.send(
    new PutItemCommand({ TableName: layout.tableName, Item: { name: { S: name }, sort: { S: "lock" }, ...Item } }),
  );
  const at = lockAt(name);
  await expect(store.write(takeWith({ at }), forever)).rejects.toThrow("its wanted must be a number");
  expect(await store.write(transferOf(at), forever)).toEqual({
    kind: "applied",
    replaced: undefined,
    drawn: undefined,
  });
  await expect(store.read(at, { consistent: true }, forever)).rejects.toThrow('"uuid":{"S":"fresh"}');
});

test("the first take detects an endpoint that accepts every write", async () => {
  // What the SDK makes of an empty page with status 200.
  const client = Object.assign(testClient(), { send: async () => ({ $metadata: { httpStatusCode: 200 } }) });
  const store = storeOn(client);
  for (const take of [() => store.write(takeWith({}), forever), () => store.writeAll([takeWith({})], forever)]) {
    const error = await take().catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(LockStoreError);
    expect(error).toMatchObject({ answered: false, message: expect.stringContaining("check that it is DynamoDB") });
  }
});

describe("an engine that shows no row with a refusal", () => {
  /** Turns the question off on its way, so that the engine answers as older ones do. */
  function silentStore(): { store: Store; sent: string[]; meanwhile: (what: () => Promise<unknown>) => void } {
    const sent: string[] = [];
    let next: (() => Promise<unknown>) | undefined;
    const client = testClient({ maxAttempts: 1 });
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
    client.middlewareStack.add(
      (send, context) => async (args) => {
        sent.push(String(context.commandName).replace("Command", ""));
        return send(args);
      },
      { step: "finalizeRequest" },
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
    expect(await store.write(renewalOf(take, take.expires), forever)).toMatchObject({ kind: "refused", row });
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
    const error = await store.write(take, forever).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(LockStoreError);
    expect(error).toMatchObject({ transient: true, answered: true });
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

  test("finds its own put in its way", async () => {
    const take = takeWith({});
    const outcome = await losing("PutItem").write(take, forever);
    expect(outcome).toMatchObject({ kind: "refused", row: { uuid: take.uuid, expires: take.expires } });
  });

  test("says so of a renewal, which its first copy has applied", async () => {
    const store = losing("UpdateItem");
    const take = takeWith({});
    await store.write(take, forever);
    const renewal = renewalOf(take, take.expires + 1);
    expect(await store.write(renewal, forever)).toMatchObject({
      kind: "refused",
      retried: true,
      row: { uuid: take.uuid, expires: take.expires + 1 },
    });
    expect(await store.write(renewal, forever)).toMatchObject({ kind: "refused", retried: false });
  });

  test("finds the row that its own transfer has handed on", async () => {
    const store = losing("UpdateItem");
    const take = takeWith({});
    await store.write(take, forever);
    const transfer = transferOf(take.at, { from: take.uuid });
    const row = { ...rowOf(take), uuid: "fresh", expires: 100, ttlMs: 7_000, owner: "host#3" };
    expect(await store.write(transfer, forever)).toEqual({ kind: "refused", retried: true, row });
    expect(wasApplied(transfer, row)).toBe("yes");
  });

  test("says so of a removal, which its first copy has applied", async () => {
    const store = losing("DeleteItem");
    const take = takeWith({});
    await store.write(take, forever);
    const outcome = await store.write(removalOf(take.at, take.uuid, take.expires), forever);
    expect(outcome).toEqual({ kind: "refused", row: undefined, retried: true });
  });

  test("says so of a release, which its first copy has applied", async () => {
    const store = losing("DeleteItem");
    const take = takeWith({});
    await store.write(take, forever);
    const outcome = await store.write(releaseOf(take), forever);
    expect(outcome).toEqual({ kind: "refused", row: undefined, retried: true });
  });
});

describe("the clock of a store", () => {
  function listener(): { clock: Clock; log: (string | undefined)[] } {
    const log: (string | undefined)[] = [];
    const listen = () => {
      log.push("sent");
      return (date: string | undefined) => log.push(date);
    };
    return { clock: { ...systemClock(), listen }, log };
  }
  const DATE = expect.stringMatching(/^\w{3}, \d{2} \w{3} \d{4} \d{2}:\d{2}:\d{2} GMT$/);

  test("hears every reply of the table, refusals and errors too", async () => {
    const { clock, log } = listener();
    const store = storeOn(testClient(), clock);
    const take = takeWith({});
    await store.write(take, forever);
    await store.write(take, forever);
    await store.read(take.at, { consistent: true }, forever);
    expect(log).toEqual(["sent", DATE, "sent", DATE, "sent", DATE]);
    const nowhere = tableLayout({ tableName: `absent-${randomUUID()}` });
    const astray = new DynamoDbStore({ client: testClient(), layout: nowhere, clock });
    await expect(astray.read(lockAt("any"), { consistent: true }, forever)).rejects.toThrow(LockStoreError);
    expect(log.slice(6)).toEqual(["sent", DATE]);
  });

  test("hears of each attempt by itself, so that a reply is not measured from an older request", async () => {
    const { clock, log } = listener();
    let lost = false;
    const client = clientThrough(async ({ send }) => {
      if (lost) return void (await send());
      lost = true;
      throw Object.assign(new Error("socket hang up"), { code: "ECONNRESET" });
    }, 2);
    await storeOn(client, clock).read(lockAt("any"), { consistent: true }, forever);
    expect(log).toEqual(["sent", "sent", DATE]);
  });

  test("hears nothing from a server that is not the table", async () => {
    const { clock, log } = listener();
    const client = clientThrough(async ({ send }) => {
      const { headers } = await send();
      delete headers["x-amzn-requestid"];
      headers["content-type"] = "text/html";
    });
    await storeOn(client, clock).read(lockAt("any"), { consistent: true }, forever);
    expect(log).toEqual(["sent"]);
  });
});

test("a request under way ends when its signal does", async () => {
  const controller = new AbortController();
  const client = clientThrough(async ({ send }) => {
    const reply = send();
    controller.abort();
    await reply;
  });
  const error = await storeOn(client)
    .read(lockAt("any"), { consistent: true }, controller.signal)
    .catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(LockStoreError);
  expect(error).toMatchObject({ transient: true, answered: false, cause: { name: "AbortError" } });
});

test("closing destroys the store's own client, and never a caller's", () => {
  const destroyed: string[] = [];
  for (const ownsClient of [true, false]) {
    const client = ownsClient ? defaultClient() : testClient();
    client.destroy = () => destroyed.push(ownsClient ? "its own" : "the caller's");
    new DynamoDbStore({ client, layout, clock: systemClock() }).close();
  }
  expect(destroyed).toEqual(["its own"]);
});
