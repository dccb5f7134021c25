import { randomUUID } from "node:crypto";
import type { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { beforeAll, describe, expect, test } from "@jest/globals";
import { defaultClient } from "../lib/dynamodb/client.js";
import { DynamoDbStore } from "../lib/dynamodb/store.js";
import { LockStoreError } from "../lib/errors.js";
import { type TableLayout, tableLayout } from "../lib/options/table.js";
import type { Claim, Store } from "../lib/store.js";
import { type Clock, systemClock } from "../lib/time/clock.js";
import { claimWith, EARLIEST } from "./support/store-cases.js";
import { rawItem } from "./support/store-subjects.js";
import { createTestTable, testClient } from "./support/table.js";

const A_WEEK_IN_SECONDS = 7 * 24 * 60 * 60;
const forever = new AbortController().signal;
const TERMS = { earliest: EARLIEST, kept: false };

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
  const item = (name: string) => rawItem(client, layout, name);

  test("has what DESIGN says and nothing else", async () => {
    const claim = claimWith({});
    await storeOn(client).take(claim, TERMS, forever);
    expect(await item(claim.name)).toEqual({
      name: { S: claim.name },
      sort: { S: "lock" },
      format: { N: "1" },
      uuid: { S: claim.uuid },
      expires: { N: `${claim.expires}` },
      ttlMs: { N: "30000" },
      owner: { S: "host#2" },
      acquired: { N: `${EARLIEST}` },
      purge: expect.anything(),
    });
  });

  test.each([false, true])(
    "purges a week after its lease, in epoch seconds, moved by each write: kept %s",
    async (kept) => {
      const store = storeOn(client);
      const claim = claimWith({ expires: 1_700_000_000_001 });
      const purge = async () => Number((await item(claim.name))?.purge?.N);
      await store.take(claim, { ...TERMS, kept }, forever);
      expect(await purge()).toBe(1_700_000_001 + A_WEEK_IN_SECONDS);
      await store.renew({ name: claim.name, uuid: claim.uuid, expires: 1_700_000_015_000 }, forever);
      expect(await purge()).toBe(1_700_000_015 + A_WEEK_IN_SECONDS);
      const from = { uuid: claim.uuid, expires: 1_700_000_015_000 };
      await store.restamp(claim.name, from, { uuid: "fresh", expires: 1_700_000_003_000 }, forever);
      expect(await purge()).toBe(1_700_000_003 + A_WEEK_IN_SECONDS);
    },
  );

  test("holds whole numbers only: anything else is refused before it is sent", async () => {
    const claim = claimWith({ expires: EARLIEST + 0.5 });
    await expect(storeOn(client).take(claim, TERMS, forever)).rejects.toThrow("whole numbers only");
    expect(await item(claim.name)).toBeUndefined();
  });

  test("may be as large as the largest data that is admitted, under the longest name and owner", async () => {
    const store = storeOn(client);
    const claim = claimWith({
      name: "n".repeat(2_048),
      owner: "\u20ac".repeat(1_024),
      data: { a: "x".repeat(392 * 1_024 - 5) },
    });
    expect(await store.take(claim, TERMS, forever)).toEqual({ kind: "granted" });
    expect(() => store.admit({ a: "x".repeat(392 * 1_024 - 4) })).toThrow("must be at most 401408 bytes");
  });
});

describe("the requests of a store", () => {
  test("are one for each operation that meets no refusal", async () => {
    const { client, sent } = listedClient();
    const store = storeOn(client);
    const { name, uuid, ...claim } = claimWith({});
    await store.take({ name, uuid, ...claim }, TERMS, forever);
    await store.renew({ name, uuid, expires: claim.expires + 1 }, forever);
    await store.read(name, { consistent: false }, forever);
    await store.release(name, uuid, { kept: false }, forever);
    expect(sent).toEqual(["PutItem", "UpdateItem", "GetItem", "DeleteItem"]);
  });

  test("are one for a refusal that shows its row", async () => {
    const { client, sent } = listedClient();
    const store = storeOn(client);
    const claim = claimWith({});
    await store.take(claim, TERMS, forever);
    await store.take(claim, TERMS, forever);
    expect(sent).toEqual(["PutItem", "PutItem"]);
  });

  test("are consistent or not, as told", async () => {
    const read: unknown[] = [];
    const client = clientThrough(async ({ body, send }) => {
      read.push(body.ConsistentRead);
      await send();
    });
    await storeOn(client).read("any", { consistent: false }, forever);
    await storeOn(client).read("any", { consistent: true }, forever);
    expect(read).toEqual([false, true]);
  });
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
    const claim = claimWith({});
    await store.take(claim, TERMS, forever);
    const row = { uuid: claim.uuid, expires: claim.expires };
    expect(await store.take(claim, TERMS, forever)).toMatchObject({ kind: "held", row });
    const renewal = { name: claim.name, uuid: claim.uuid, expires: claim.expires };
    expect(await store.renew(renewal, forever)).toMatchObject({ kind: "refused", row });
    expect(await store.release(claim.name, "another", { kept: false }, forever)).toMatchObject({
      kind: "refused",
      row,
    });
    expect(sent).toEqual(["PutItem", "PutItem", "GetItem", "UpdateItem", "GetItem", "DeleteItem", "GetItem"]);
  });

  test("that then has no row any more: the take may be tried again", async () => {
    const claim = claimWith({});
    const plain = storeOn(testClient());
    await plain.take(claim, TERMS, forever);
    const { store, meanwhile } = silentStore();
    // The put is refused; before the question for the row, its holder releases.
    meanwhile(async () => meanwhile(async () => plain.release(claim.name, claim.uuid, { kept: false }, forever)));
    const error = await store.take(claim, TERMS, forever).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(LockStoreError);
    expect(error).toMatchObject({ transient: true, answered: true });
    expect(await store.take(claim, TERMS, forever)).toEqual({ kind: "granted" });
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
    const claim = claimWith({});
    const outcome = await losing("PutItem").take(claim, TERMS, forever);
    expect(outcome).toMatchObject({ kind: "held", row: { uuid: claim.uuid, expires: claim.expires } });
  });

  test("says so of a renewal, which its first copy has applied", async () => {
    const store = losing("UpdateItem");
    const { name, uuid, ...claim } = claimWith({});
    await store.take({ name, uuid, ...claim }, TERMS, forever);
    const renewal = { name, uuid, expires: claim.expires + 1 };
    expect(await store.renew(renewal, forever)).toMatchObject({
      kind: "refused",
      retried: true,
      row: { uuid, expires: claim.expires + 1 },
    });
    expect(await store.renew(renewal, forever)).toMatchObject({ kind: "refused", retried: false });
  });

  test("says so of a release, which its first copy has applied", async () => {
    const store = losing("DeleteItem");
    const claim = claimWith({});
    await store.take(claim, TERMS, forever);
    const outcome = await store.release(claim.name, claim.uuid, { kept: false }, forever);
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
    const claim: Claim = claimWith({});
    await store.take(claim, TERMS, forever);
    await store.take(claim, TERMS, forever);
    await store.read(claim.name, { consistent: true }, forever);
    expect(log).toEqual(["sent", DATE, "sent", DATE, "sent", DATE]);
    const nowhere = tableLayout({ tableName: `absent-${randomUUID()}` });
    const astray = new DynamoDbStore({ client: testClient(), layout: nowhere, clock });
    await expect(astray.read("any", { consistent: true }, forever)).rejects.toThrow(LockStoreError);
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
    await storeOn(client, clock).read("any", { consistent: true }, forever);
    expect(log).toEqual(["sent", "sent", DATE]);
  });

  test("hears of no date where a proxy strips it", async () => {
    const { clock, log } = listener();
    const client = clientThrough(async ({ send }) => {
      delete (await send()).headers.date;
    });
    await storeOn(client, clock).read("any", { consistent: true }, forever);
    expect(log).toEqual(["sent", undefined]);
  });

  test("hears nothing from a server that is not the table", async () => {
    const { clock, log } = listener();
    const client = clientThrough(async ({ send }) => {
      const { headers } = await send();
      delete headers["x-amzn-requestid"];
      headers["content-type"] = "text/html";
    });
    await storeOn(client, clock).read("any", { consistent: true }, forever);
    expect(log).toEqual(["sent"]);
  });

  test("leaves a caller's client as it was", async () => {
    const client = testClient();
    const before = client.middlewareStack.identify();
    await storeOn(client, listener().clock).read("any", { consistent: true }, forever);
    expect(client.middlewareStack.identify()).toEqual(before);
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
    .read("any", { consistent: true }, controller.signal)
    .catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(LockStoreError);
  expect(error).toMatchObject({ transient: true, answered: false, cause: { name: "AbortError" } });
});

test("closing destroys the store's own client, and never a caller's", () => {
  const destroyed: string[] = [];
  const clients = { own: defaultClient(), callers: testClient() };
  for (const [whose, client] of Object.entries(clients)) {
    const destroy = client.destroy.bind(client);
    client.destroy = () => {
      destroyed.push(whose);
      destroy();
    };
    new DynamoDbStore({ client, layout, clock: systemClock() }).close();
  }
  expect(destroyed).toEqual(["own"]);
});
