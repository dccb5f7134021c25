import type { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { describe, expect, test } from "@jest/globals";
import type { Lock, LockTable } from "../../../lib/index.js";
import { hear } from "../../support/diagnostics.js";
import { withBody } from "../../support/fault-proxy/reply.js";
import { cutReply, rewriteReply, type Strange, stranger } from "../../support/fault-proxy.js";
import { IS_FULL } from "../../support/full.js";
import { leakOn } from "../../support/listeners.js";
import { ManualTime } from "../../support/manual-time.js";
import { QueueRows } from "../../support/queue.js";
import { rowOf, useScene } from "../../support/scene.js";

const scene = useScene();

const TTL_MS = 30_000;
/** A claim without an answer of the table's is looked for until its lease would be over. */
const SHORT = { ttlMs: 1_000, releaseWithinMs: 100 };
const FOREVER = { times: Number.POSITIVE_INFINITY };
const HTML = { "content-type": "text/html" };

/** What stands in front of tables, and says something of its own. */
const STRANGERS: readonly [string, Strange][] = [
  ["200 without a body", {}],
  ["200 with {}", { text: "{}", headers: { "content-type": "application/json" } }],
  [
    "200 with a request id of another service",
    { text: "{}", headers: { "x-amz-request-id": "1", "x-amzn-requestid": "1" } },
  ],
  ["a maintenance page with 200", { text: "<html>back soon</html>", headers: HTML }],
  ["a redirect", { status: 302, headers: { location: "http://login.invalid/" } }],
  ["a page with 400", { status: 400, text: "<html>bad</html>", headers: HTML }],
  ["a page with 403", { status: 403, text: "<html>no</html>", headers: HTML }],
  ["a page with 404", { status: 404, text: "<html>what</html>", headers: HTML }],
];

/** A host that has had an answer of the table. */
async function proven(options: Parameters<typeof scene.host>[0] = {}): Promise<LockTable> {
  const locks = scene.host(options);
  await using _ = await locks.mutex("known").lock();
  return locks;
}

/** With `npm test`, one of each kind: nothing at all, a weak sign, an error. */
const TRIED = IS_FULL ? STRANGERS : STRANGERS.filter((_, index) => index === 0 || index === 2 || index === 6);

describe.each(TRIED)("trap 48: %s", (_, strange) => {
  test("grants nothing that another host holds, and is asked again", async () => {
    const locks = await proven();
    await scene.put(rowOf());
    const put = scene.proxy.on("PutItem", stranger(strange));
    const asked = await locks.mutex(scene.name, SHORT).tryLock();
    await put.done;
    expect(asked).toBeNull();
  });

  test("in the place of a reply to what was applied: the lock is had, and nothing is left behind", async () => {
    const locks = await proven();
    const put = scene.proxy.on("PutItem", stranger(strange, { applied: true }));
    const lock = await locks.mutex(scene.name).lock();
    await put.done;
    expect(await scene.row()).toMatchObject({ uuid: lock.uuid });
    await lock.unlock();
    expect(await scene.row()).toBeUndefined();
  });

  test("extends no lease, and releases nothing", async () => {
    const locks = await proven();
    const lock = await locks.mutex(scene.name, { ttlMs: TTL_MS }).lock();
    const before = lock.expires.getTime();
    const renewal = scene.proxy.on("UpdateItem", stranger(strange));
    await lock.extend();
    await renewal.done;
    expect(await scene.row()).toMatchObject({ uuid: lock.uuid, expires: lock.expires.getTime() });
    expect(lock.expires.getTime()).toBeGreaterThan(before);
    const release = scene.proxy.on("DeleteItem", stranger(strange));
    await lock.unlock();
    await release.done;
    expect(await scene.row()).toBeUndefined();
  });

  test("is no transaction, and the caller's items are written once", async () => {
    const locks = await proven();
    await using lock = await locks.mutex(scene.name).lock();
    const writing = scene.proxy.on("TransactWriteItems", stranger(strange));
    const item = { name: { S: `${scene.name}-paid` }, sort: { S: "balance" } };
    await lock.transactWrite([
      {
        Update: {
          TableName: scene.tableName,
          Key: item,
          UpdateExpression: "ADD n :one",
          ExpressionAttributeValues: { ":one": { N: "1" } },
        },
      },
    ]);
    await writing.done;
    expect(scene.proxy.count("TransactWriteItems")).toBe(2);
  });

  test("ends no batches, and none of ten locks", async () => {
    const told = hear("dynamutex:one-by-one");
    const losses = hear("dynamutex:lost");
    const time = new ManualTime();
    const locks = await proven({ clock: time.clock() });
    const held: Lock[] = [];
    for (let index = 0; index < 10; index += 1) {
      held.push(await locks.mutex(`${scene.name}-${index}`, { ttlMs: TTL_MS }).lock());
    }
    const batch = scene.proxy.on("BatchExecuteStatement", stranger(strange));
    let [isMet, before] = [false, [] as number[]];
    const met = batch.done.then(() => {
      before = held.map(({ expires }) => expires.getTime());
      isMet = true;
    });
    // The first renewals leave one by one, and then meet.
    const areRenewed = () => held.every((lock, index) => lock.expires.getTime() > (before[index] ?? 0));
    await scene.play(time, () => isMet && areRenewed(), 500);
    await met;
    expect([told, losses]).toEqual([[], []]);
    await Promise.all(held.map((lock) => lock.unlock()));
  });

  test("shows no row and no absence of one", async () => {
    const locks = await proven();
    await scene.put(rowOf());
    const read = scene.proxy.on("GetItem", stranger(strange));
    const seen = await locks.mutex(scene.name).inspect();
    await read.done;
    expect(seen).toMatchObject({ uuid: "somebody-else" });
  });

  test("does not say that a table can be used", async () => {
    const locks = await proven();
    const ttl = scene.proxy.on("DescribeTimeToLive", stranger(strange));
    const probed = scene.proxy.on("DeleteItem", stranger(strange));
    const report = await locks.check();
    await Promise.all([ttl.done, probed.done]);
    expect(report.permissions).toMatchObject({ DescribeTimeToLive: "allowed", DeleteItem: "allowed" });
    expect([scene.proxy.count("DescribeTimeToLive"), scene.proxy.count("PutItem") > 0]).toEqual([2, true]);
  });

  test("who answers a new process first, grants nothing to it, and is asked again", async () => {
    await scene.put(rowOf());
    const rule = scene.proxy.on(() => true, stranger(strange), { times: 3 });
    const asked = scene.host().mutex(scene.name, SHORT).tryLock();
    await rule.done;
    expect(await asked).toBeNull();
    expect(await scene.row()).toMatchObject({ uuid: "somebody-else" });
  });
});

describe("a reply that is cut off", () => {
  test("trap 36: what was applied is found again, and the name is not blocked", async () => {
    const locks = await proven();
    const put = scene.proxy.on("PutItem", cutReply());
    const lock = await locks.mutex(scene.name).lock();
    await put.done;
    expect(await scene.row()).toMatchObject({ uuid: lock.uuid });
    expect(scene.proxy.count("PutItem")).toBe(3);
    await lock.unlock();
    expect(await scene.row()).toBeUndefined();
  });

  test("a call that gives up meanwhile leaves no row behind", async () => {
    const locks = await proven();
    const put = scene.proxy.on("PutItem", cutReply(), FOREVER);
    const controller = new AbortController();
    const calling = locks.mutex(scene.name).lock({ signal: controller.signal });
    await scene.proxy.until((requests) => requests.some(({ fault }) => fault === "cutReply"));
    controller.abort(new Error("enough"));
    await expect(calling).rejects.toThrow("enough");
    put.remove();
    await scene.proxy.next("DeleteItem");
    await scene.quiet();
    expect(await scene.row()).toBeUndefined();
  });

  test("a guarded transaction is asked for again with its token, and its items are written once", async () => {
    const locks = await proven();
    await using lock = await locks.mutex(scene.name).lock();
    await lock.extend();
    const cut = scene.proxy.on("TransactWriteItems", cutReply());
    const Key = { name: { S: `${scene.name}-paid` }, sort: { S: "balance" } };
    const ExpressionAttributeValues = { ":one": { N: "1" } };
    const UpdateExpression = "ADD n :one";
    await lock.transactWrite([
      { Update: { TableName: scene.tableName, Key, UpdateExpression, ExpressionAttributeValues } },
    ]);
    await cut.done;
    const tokens = scene.proxy.select("TransactWriteItems").map(({ body }) => body.ClientRequestToken);
    expect([tokens.length, new Set(tokens).size]).toEqual([2, 1]);
  });
});

test("an engine that does not show what refused twelve takes is asked for each row, and Node warns of no leak", async () => {
  const names = Array.from({ length: 12 }, (_, index) => `${scene.name}-${index}`);
  await Promise.all(names.map((name) => scene.put(rowOf({ name }))));
  const hidden = rewriteReply((reply) => {
    const reasons = reply.body.CancellationReasons as readonly { readonly Item?: unknown }[];
    const CancellationReasons = reasons.map(({ Item: _, ...reason }) => reason);
    return withBody(reply, { ...reply.body, CancellationReasons });
  });
  const { client, leaks } = watchedClient();
  const locks = await proven({ client });
  const refused = scene.proxy.on("TransactWriteItems", hidden, FOREVER);
  await expect(locks.lockAll(names, { waitMs: 0 })).rejects.toMatchObject({ code: "LOCK_TIMEOUT" });
  refused.remove();
  expect(scene.proxy.count("GetItem")).toBeGreaterThanOrEqual(12);
  expect(leaks).toEqual([]);
});

/** A client, and how many of its requests listened to one signal where Node warns of so many. */
function watchedClient() {
  const client = scene.client();
  const { requestHandler } = client.config;
  const leaks: number[] = [];
  const handle = requestHandler.handle.bind(requestHandler);
  requestHandler.handle = async (request, options) => {
    const handled = handle(request, options);
    const { abortSignal } = options as { readonly abortSignal?: AbortSignal };
    setImmediate(() => leaks.push(...leakOn(abortSignal)));
    return await handled;
  };
  return { client, leaks };
}

describe("a client that is wrapped", () => {
  const wrappings: readonly [string, (output: object) => object][] = [
    ["hands replies on as they are", (output) => output],
    ["leaves $metadata out", ({ $metadata: _, ...output }: { $metadata?: unknown }) => output],
    ["empties $metadata", (output) => ({ ...output, $metadata: {} })],
  ];

  test.each(wrappings)("and %s, believes no stranger", async (_, change) => {
    const inner = scene.client();
    const send = async (...args: Parameters<DynamoDBClient["send"]>) =>
      change((await inner.send(...args)) as unknown as object);
    const client = { send, config: inner.config, destroy: () => undefined } as unknown as DynamoDBClient;
    const locks = await proven({ client });
    await scene.put(rowOf());
    const put = scene.proxy.on("PutItem", stranger());
    expect(await locks.mutex(scene.name, SHORT).tryLock()).toBeNull();
    await put.done;
  });
});

test("a mock that answers {} is believed, as a test of somebody else's wants it", async () => {
  const mock = Object.assign(scene.client(), { send: async () => ({}) });
  await using locks = scene.host({ client: mock });
  await using lock = await locks.mutex(scene.name).lock();
  expect(lock.held).toBe(true);
});

test("the library's own client believes no stranger either", async () => {
  const before = process.env.AWS_ENDPOINT_URL_DYNAMODB;
  process.env.AWS_ENDPOINT_URL_DYNAMODB = scene.proxy.endpointFor("own");
  const keys = { AWS_REGION: "us-east-1", AWS_ACCESS_KEY_ID: "test", AWS_SECRET_ACCESS_KEY: "test" };
  const { AWS_REGION, AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY } = process.env;
  Object.assign(process.env, keys);
  try {
    const { LockTable } = await import("../../../lib/index.js");
    const locks = new LockTable({ tableName: scene.tableName });
    await (await locks.mutex("known").lock()).unlock();
    await scene.put(rowOf());
    const put = scene.proxy.on("PutItem", stranger());
    expect(await locks.mutex(scene.name, SHORT).tryLock()).toBeNull();
    await put.done;
    // The claim that a stranger answered may still arrive: a table that closes would look for it.
    await locks.close({ drainMs: 0 });
  } finally {
    const was = { AWS_REGION, AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_ENDPOINT_URL_DYNAMODB: before };
    for (const [name, value] of Object.entries(was)) {
      if (value === undefined) delete process.env[name];
      else process.env[name] = value;
    }
  }
});

test("trap 48: a look that somebody else has answered first does not make an old result young", async () => {
  await scene
    .host()
    .mutex(scene.name)
    .singleFlight(() => "old");
  const mutex = scene.host().mutex(scene.name);
  const look = scene.proxy.on("Query", stranger({ text: "{}" }));
  expect(await mutex.singleFlight(() => "new", { freshMs: 0 })).toBe("new");
  await look.done;
});

test("trap 48: a look that somebody else has answered first does not let a call overtake those who wait", async () => {
  await new QueueRows(scene).plant(1);
  const mutex = scene.host().mutex(scene.name, { fair: true });
  const look = scene.proxy.on("Query", stranger({ text: "{}" }));
  expect(await mutex.tryLock()).toBeNull();
  await look.done;
  expect(await scene.row()).toBeUndefined();
});
