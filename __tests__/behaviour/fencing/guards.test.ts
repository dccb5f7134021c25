import type { TransactWriteItem } from "@aws-sdk/client-dynamodb";
import { CreateTableCommand, GetItemCommand, TransactWriteItemsCommand } from "@aws-sdk/client-dynamodb";
import { unmarshall } from "@aws-sdk/util-dynamodb";
import { beforeEach, describe, expect, test } from "@jest/globals";
import { type Lock, LockStoreError, type Mutex } from "../../../lib/index.js";
import { hear } from "../../support/diagnostics.js";
import { eventually, turn, watch } from "../../support/eventually.js";
import {
  duplicate,
  error,
  hangAfter,
  resetAfter,
  resetBefore,
  status500,
  throttle,
  transactionConflict,
} from "../../support/fault-proxy.js";
import { ManualTime } from "../../support/manual-time.js";
import { MemoryHost } from "../../support/memory-host.js";
import { type Attributes, rowOf, useScene } from "../../support/scene.js";
import { afterSleeps } from "../../support/settled.js";
import { testClient } from "../../support/table.js";

const scene = useScene();
const client = testClient();

const TTL_MS = 30_000;
const TRANSACT = "TransactWriteItems";

/** The caller's own item, beside the locks. */
const account = (name = "a") => ({ name: { S: `${scene.name}/${name}` }, sort: { S: "account" } });

async function balance(name = "a"): Promise<unknown> {
  const command = new GetItemCommand({ TableName: scene.tableName, Key: account(name), ConsistentRead: true });
  const { Item } = await client.send(command);
  return Item && unmarshall(Item).balance;
}

/** Adds 1 to the caller's own item: applied twice, it shows. */
const addOne = (name = "a"): TransactWriteItem => ({
  Update: {
    TableName: scene.tableName,
    Key: account(name),
    UpdateExpression: "ADD balance :one",
    ExpressionAttributeValues: { ":one": { N: "1" } },
  },
});

/** Cannot be, as nothing is there. */
const impossible = (): TransactWriteItem => ({
  ConditionCheck: {
    TableName: scene.tableName,
    Key: account("nowhere"),
    ConditionExpression: "attribute_exists(balance)",
  },
});

function mutex(time?: ManualTime, { fencing = false, tag = "" } = {}): Mutex {
  const clock = time === undefined ? {} : { clock: time.clock() };
  return scene.host({ tag, ...clock }).mutex(scene.name, { ttlMs: TTL_MS, fencing });
}

/** The row as `forceUnlock` leaves it: its last holder's, without the uuid. */
function withoutUuid({ owner, acquired }: Lock, expires: number): Attributes {
  const { uuid: _, ...rest } = rowOf({ owner, acquired: acquired.getTime(), expires });
  return rest;
}

async function failure(promise: Promise<unknown>): Promise<unknown> {
  return await promise.then(
    () => "nothing failed",
    (thrown: unknown) => thrown,
  );
}

describe.each([false, true])("a guard, with fencing: %s", (fencing) => {
  test("lets a transaction of the caller's own pass while the lock is held", async () => {
    await using lock = await mutex(undefined, { fencing }).lock();
    const guard = await lock.guard();
    await client.send(new TransactWriteItemsCommand({ TransactItems: [addOne(), guard] }));
    expect(await balance()).toBe(1);
    await lock.extend();
    await client.send(new TransactWriteItemsCommand({ TransactItems: [addOne(), guard] }));
    expect(await balance()).toBe(2);
  });

  test("asks for the uuid, our format and a stamp later than the first, with every name apart from the words", async () => {
    const time = new ManualTime();
    await using lock = await mutex(time, { fencing }).lock();
    const firstStamp = lock.expires.getTime();
    const { ConditionCheck } = await lock.guard();
    expect(ConditionCheck).toEqual({
      TableName: scene.tableName,
      Key: { name: { S: scene.name }, sort: { S: "lock" } },
      ConditionExpression: `#uuid = :if_uuid AND #format = :format AND #expires > :if_after${fencing ? " AND #fence = :if_fence" : ""}`,
      ExpressionAttributeNames: {
        "#uuid": "uuid",
        "#format": "format",
        "#expires": "expires",
        ...(fencing ? { "#fence": "fence" } : {}),
      },
      ExpressionAttributeValues: {
        ":if_uuid": { S: lock.uuid },
        ":format": { N: "1" },
        ":if_after": { N: `${firstStamp}` },
        ...(fencing ? { ":if_fence": { N: expect.stringMatching(/^\d+$/) } } : {}),
      },
      ReturnValuesOnConditionCheckFailure: "ALL_OLD",
    });
  });

  test("has a form for a DocumentClient, with plain values", async () => {
    await using lock = await mutex(undefined, { fencing }).lock();
    const { ConditionCheck: plain } = await lock.guard({ document: true });
    const { ConditionCheck: typed } = await lock.guard({ document: false });
    expect(plain).toEqual({
      ...typed,
      Key: { name: scene.name, sort: "lock" },
      ExpressionAttributeValues: unmarshall(typed?.ExpressionAttributeValues ?? {}),
    });
  });

  test("costs a renewal, if there was none before, and nothing from then on", async () => {
    const lock = await mutex(new ManualTime(), { fencing }).lock();
    const before = lock.expires.getTime();
    await Promise.all([lock.guard(), lock.guard()]);
    expect(lock.expires.getTime()).toBeGreaterThan(before);
    await lock.guard();
    await lock.unlock();
    expect(scene.proxy.requests.map(({ operation }) => operation)).toEqual(
      fencing ? ["UpdateItem", "UpdateItem", "UpdateItem"] : ["PutItem", "UpdateItem", "DeleteItem"],
    );
  });

  test("refuses after the release, and cannot be made any more", async () => {
    const lock = await mutex(undefined, { fencing }).lock();
    const guard = await lock.guard();
    await lock.unlock();
    const refused = await failure(client.send(new TransactWriteItemsCommand({ TransactItems: [addOne(), guard] })));
    expect(refused).toMatchObject({ name: "TransactionCanceledException" });
    expect(await balance()).toBeUndefined();
    expect(await failure(lock.guard())).toMatchObject({ code: "LOCK_RELEASED" });
    expect(await failure(lock.transactWrite([addOne()]))).toMatchObject({ code: "LOCK_RELEASED" });
  });

  test("refuses under the next holder", async () => {
    const lock = await mutex(undefined, { fencing }).lock();
    const guard = await lock.guard();
    await lock.unlock();
    await using _next = await mutex(undefined, { fencing, tag: "next" }).lock();
    const refused = await failure(client.send(new TransactWriteItemsCommand({ TransactItems: [addOne(), guard] })));
    expect(refused).toMatchObject({ name: "TransactionCanceledException" });
  });

  test("a late copy of the first write, delivered after the release, revives no late transaction", async () => {
    const copy = duplicate();
    const it = mutex(new ManualTime(), { fencing });
    // The next token is then counted up: a late copy of a take from the time would be refused.
    await (await it.lock()).unlock();
    scene.proxy.on(fencing ? "UpdateItem" : "PutItem", copy);
    const lock = await it.lock();
    const guard = await lock.guard();
    await lock.unlock();
    expect((await copy.deliver()).status).toBe(200);
    expect(await scene.row()).toMatchObject({ uuid: lock.uuid });
    const refused = await failure(client.send(new TransactWriteItemsCommand({ TransactItems: [addOne(), guard] })));
    expect(refused).toMatchObject({ name: "TransactionCanceledException" });
    expect(await balance()).toBeUndefined();
  });

  test("of a section whose lease is passed on refuses under the next section, for one write", async () => {
    const time = new ManualTime();
    const shared = mutex(time, { fencing });
    const first = await shared.lock();
    const waiting = shared.lock();
    await turn();
    const guard = await first.guard();
    scene.proxy.reset();
    await first.unlock();
    const second = await waiting;
    expect(scene.proxy.counts()).toEqual({ UpdateItem: 1 });
    expect(second.uuid).not.toBe(first.uuid);
    const refused = await failure(client.send(new TransactWriteItemsCommand({ TransactItems: [addOne(), guard] })));
    expect(refused).toMatchObject({ name: "TransactionCanceledException" });
    await second.transactWrite([addOne()]);
    expect(await balance()).toBe(1);
    await second.unlock();
  });
});

describe("a section that made no guard", () => {
  test("is followed by the next one without a request, also where one before it made one", async () => {
    const shared = mutex(new ManualTime());
    const first = await shared.lock();
    const others = [shared.lock(), shared.lock()];
    await turn();
    await first.guard();
    await first.unlock();
    scene.proxy.reset();
    await (await others[0])?.unlock();
    const third = await others[1];
    expect([third?.held, scene.proxy.counts()]).toEqual([true, {}]);
    await third?.unlock();
  });
});

describe("the renewal before a first guard", () => {
  test("that finds another holder is a loss", async () => {
    const lock = await mutex(new ManualTime()).lock();
    await scene.put(rowOf());
    expect(await failure(lock.guard())).toMatchObject({ name: "LockLostError", reason: "stolen" });
    expect(await failure(lock.unlock())).toBe(lock.signal.reason);
  });

  test("guard() rejects if the section ends during its renewal", async () => {
    const shared = mutex();
    const first = await shared.lock();
    const waiting = shared.lock();
    await turn();
    const hold = scene.proxy.hold("UpdateItem", { at: "reply" });
    const guarding = failure(first.guard());
    await hold.arrived;
    const unlocking = first.unlock();
    hold.release();
    await unlocking;
    expect(await guarding).toMatchObject({ code: "LOCK_RELEASED" });
    const second = await waiting;
    expect(second.uuid).not.toBe(first.uuid);
    await second.unlock();
  });
});

describe("transactWrite", () => {
  let time: ManualTime;
  let shared: Mutex;
  let lock: Lock;

  beforeEach(async () => {
    time = new ManualTime();
    shared = mutex(time);
    lock = await shared.lock();
    await lock.extend();
    scene.proxy.reset();
  });

  test("applies the caller's writes in one transaction", async () => {
    await lock.transactWrite([addOne(), addOne("b")]);
    expect([await balance(), await balance("b")]).toEqual([1, 1]);
    expect(scene.proxy.counts()).toEqual({ [TRANSACT]: 1 });
    expect(scene.proxy.requests[0]?.body.ClientRequestToken).toMatch(/^[\w-]{1,36}$/);
    await lock.unlock();
  });

  test("sends the items as they were when it was called, again too, whatever becomes of them meanwhile", async () => {
    scene.proxy.on(TRANSACT, resetAfter());
    const items = [addOne()];
    const writing = lock.transactWrite(items);
    items.push(addOne("b"));
    const sent = scene.proxy.next(TRANSACT);
    await Promise.all([sent, time.nextSleep()]);
    (items[0]?.Update?.ExpressionAttributeValues ?? {})[":one"] = { N: "100" };
    await afterSleeps(time, writing);
    expect([await balance(), await balance("b")]).toEqual([1, undefined]);
    const [first, second] = scene.proxy.select(TRANSACT).map(({ body }) => body);
    expect(second).toEqual(first);
  });

  test.each([
    ["a reset before it arrived", resetBefore],
    ["a reset after it was applied", resetAfter],
    ["a 500", status500],
    ["a 500 after it was applied", () => status500({ applied: true })],
    ["throttling", throttle],
    ["another transaction on the lock's row (trap 20)", () => transactionConflict({ item: 1 })],
    ["another transaction on the caller's item", () => transactionConflict({ item: 0 })],
    ["itself, which is under way still", () => error("TransactionInProgressException", "in progress")],
  ])("meets %s by trying again, and the writes are applied once", async (_what, fault) => {
    const losses = hear("dynamutex:lost");
    scene.proxy.on(TRANSACT, fault());
    await afterSleeps(time, lock.transactWrite([addOne()]));
    expect(await balance()).toBe(1);
    expect(scene.proxy.count(TRANSACT)).toBe(2);
    const [first, second] = scene.proxy.select(TRANSACT);
    expect(second?.body).toEqual(first?.body);
    expect([lock.held, losses]).toEqual([true, []]);
    await lock.unlock();
  });

  test("with no answer at all, it tries for so long as it is told and fails with the store's error; the lock is held", async () => {
    scene.proxy.on(TRANSACT, throttle(), { times: 1_000 });
    const failed = await afterSleeps(time, failure(lock.transactWrite([addOne()], { timeoutMs: 4_000 })));
    expect(failed).toMatchObject({ name: "LockStoreError", transient: true });
    expect(time.elapsed).toBe(4_000);
    expect([lock.held, scene.proxy.count(TRANSACT) > 2]).toEqual([true, true]);
    await lock.unlock();
  });

  test("a request that hangs is given up, and the answer of its first copy is found by its token", async () => {
    scene.proxy.on(TRANSACT, hangAfter());
    const writing = lock.transactWrite([addOne()]);
    await eventually(() => scene.proxy.requests[0]?.table !== undefined);
    await time.advance(3_000);
    await afterSleeps(time, writing);
    expect(await balance()).toBe(1);
    expect(scene.proxy.count(TRANSACT)).toBe(2);
    await lock.unlock();
  });

  test.each<readonly [string, () => Promise<void>]>([
    ["stolen", () => scene.put(rowOf())],
    ["deleted", () => scene.remove()],
    ["forced", () => scene.put(withoutUuid(lock, lock.expires.getTime()))],
    ["forced", () => scene.put(withoutUuid(lock, 0))],
  ])("refused by its guard is a loss that the signal tells at once: %s", async (reason, meddle) => {
    const losses = hear("dynamutex:lost");
    const { signal } = lock;
    await meddle();
    const refused = await failure(lock.transactWrite([addOne()]));
    expect(refused).toMatchObject({ name: "LockLostError", reason, uuid: lock.uuid });
    expect([signal.aborted, signal.reason === refused, lock.held]).toEqual([true, true, false]);
    expect(losses.map((loss) => loss.reason)).toEqual([reason]);
    expect(await balance()).toBeUndefined();
    expect(await failure(lock.unlock())).toBe(refused);
  });

  test("another condition that fails is the caller's own error, unchanged, with the reasons in the caller's order", async () => {
    const refused = await failure(lock.transactWrite([addOne(), impossible(), addOne("b")]));
    expect(refused).toMatchObject({
      name: "TransactionCanceledException",
      CancellationReasons: [{ Code: "None" }, { Code: "ConditionalCheckFailed" }, { Code: "None" }, { Code: "None" }],
    });
    expect([lock.held, await balance(), scene.proxy.count(TRANSACT)]).toEqual([true, undefined, 1]);
    await lock.unlock();
  });

  test("transactWrite rejects with LOCK_RELEASED if the section ends first", async () => {
    const waiting = shared.lock();
    await turn();
    const hold = scene.proxy.hold(TRANSACT);
    const writing = failure(lock.transactWrite([addOne()]));
    await hold.arrived;
    await lock.unlock();
    const next = await waiting;
    hold.release();
    expect(await writing).toMatchObject({ code: "LOCK_RELEASED" });
    expect([next.held, await balance()]).toEqual([true, undefined]);
    await next.unlock();
  });
});

test("a transaction without an answer when its section ends rejects with LOCK_RELEASED, and not for the table", async () => {
  const time = new ManualTime();
  const host = new MemoryHost(time);
  const lock = await host.mutex("account").lock();
  await lock.guard();
  host.fate = ({ kind }) => (kind === "transact" ? "lost" : "answered");
  const writing = failure(lock.transactWrite([addOne()]));
  await turn();
  await lock.unlock();
  await time.settle(writing);
  expect(await writing).toMatchObject({ code: "LOCK_RELEASED" });
});

describe("trap 20: a transaction and a write of the lock's own at once", () => {
  test("a conflict is no loss, on put, renewal, guard and release", async () => {
    const time = new ManualTime();
    const losses = hear("dynamutex:lost");
    const conflicts = (operation: string, item = 0) =>
      scene.proxy.on(operation, transactionConflict({ item }), { times: 2 });
    conflicts("PutItem");
    const lock = await afterSleeps(time, mutex(time).lock());
    conflicts("UpdateItem");
    await afterSleeps(time, lock.extend());
    conflicts(TRANSACT, 1);
    conflicts("UpdateItem");
    await afterSleeps(time, Promise.all([lock.transactWrite([addOne()]), lock.extend()]));
    conflicts("DeleteItem");
    await afterSleeps(time, lock.unlock());
    expect(scene.proxy.counts()).toEqual({ PutItem: 3, UpdateItem: 6, [TRANSACT]: 3, DeleteItem: 3 });
    expect([losses, await balance(), await scene.row()]).toEqual([[], 1, undefined]);
  });
});

describe("what cannot be sent is refused beforehand", () => {
  const table = () => scene.tableName;
  const ownKey = () => ({ name: { S: scene.name }, sort: { S: "lock" } });
  const arn = () => `arn:aws:dynamodb:us-east-1:000000000000:table/${scene.tableName}`;

  const containingItself = (): unknown => {
    const item: { Put: Record<string, unknown> } = { Put: { TableName: table() } };
    item.Put.Item = { list: { L: [item] } };
    return item;
  };

  const REFUSED: readonly (readonly [string, () => unknown, string])[] = [
    ["no array", () => ({ ...addOne() }), "items"],
    ["an item that contains itself", () => [addOne(), containingItself()], "items.1"],
    ["an item that is none", () => [addOne(), undefined], "items.1"],
    ["100 items", () => Array.from({ length: 100 }, (_, index) => addOne(`${index}`)), "items"],
    ["an update of the lock's own row", () => [{ Update: { TableName: table(), Key: ownKey() } }], "items.0"],
    [
      "a put of it",
      () => [addOne(), { Put: { TableName: table(), Item: { ...ownKey(), uuid: { S: "x" } } } }],
      "items.1",
    ],
    ["a delete of it", () => [{ Delete: { TableName: table(), Key: ownKey() } }], "items.0"],
    ["a guard of the same lock", () => [{ ConditionCheck: { TableName: table(), Key: ownKey() } }], "items.0"],
    ["its table's ARN", () => [{ Delete: { TableName: arn(), Key: ownKey() } }], "items.0"],
  ];

  test.each(REFUSED)("%s", async (_what, items, option) => {
    const lock = await mutex().lock();
    scene.proxy.reset();
    const refused = await failure(lock.transactWrite(items() as TransactWriteItem[]));
    expect(refused).toMatchObject({ name: "LockConfigError", option });
    expect(scene.proxy.counts()).toEqual({});
    await lock.unlock();
  });

  test.each([
    ["document", () => (lock: Lock) => lock.guard({ document: 1 } as never)],
    ["documents", () => (lock: Lock) => lock.guard({ documents: true } as never)],
    ["timeoutMs", () => (lock: Lock) => lock.transactWrite([], { timeoutMs: 600_000 })],
    ["timeoutMs", () => (lock: Lock) => lock.transactWrite([], { timeoutMs: 0 })],
  ])("an option that cannot work: %s", async (option, act) => {
    const lock = await mutex().lock();
    expect(await failure(act()(lock))).toMatchObject({ name: "LockConfigError", option });
    await lock.unlock();
  });
});

test("in an application's table, under its key names and prefix, without a sort key", async () => {
  const tableName = `${scene.tableName}-app`;
  await client.send(
    new CreateTableCommand({
      TableName: tableName,
      BillingMode: "PAY_PER_REQUEST",
      AttributeDefinitions: [{ AttributeName: "key", AttributeType: "S" }],
      KeySchema: [{ AttributeName: "key", KeyType: "HASH" }],
    }),
  );
  const locks = scene.host({ tableName, keys: { partition: "key", sort: null, ttl: "ttl" }, keyPrefix: "lock#" });
  const lock = await locks.mutex("job").lock();
  const Update = { ...addOne().Update, TableName: tableName, Key: { key: { S: "job" } } };
  await lock.transactWrite([{ Update } as TransactWriteItem]);
  const own = { Delete: { TableName: tableName, Key: { key: { S: "lock#job" } } } };
  expect(await failure(lock.transactWrite([own]))).toMatchObject({ option: "items.0" });
  await lock.unlock();
});

test("a guard whose renewal is refused by IAM says so when timeoutMs is over", async () => {
  const time = new ManualTime();
  const host = new MemoryHost(time);
  const lock = await host.mutex("job", { ttlMs: 3_600_000 }).lock();
  const denied = new LockStoreError("dynamodb:UpdateItem is refused", { answered: true });
  host.fate = () => Promise.reject(denied);
  const outcome = failure(lock.transactWrite([addOne()], { timeoutMs: 1_000 }));
  await time.advance(1_000);
  expect(await outcome).toMatchObject({ message: denied.message, transient: false });
});

test("timeoutMs bounds the renewal that a guard needs as well", async () => {
  const time = new ManualTime();
  const host = new MemoryHost(time);
  const lock = await host.mutex("job", { ttlMs: 3_600_000 }).lock();
  host.fate = () => "lost";
  const writing = watch(lock.transactWrite([addOne()], { timeoutMs: 1_000 }));
  await time.advance(999);
  expect(writing.settled).toBe(false);
  await time.advance(1);
  expect([writing.settled, lock.held]).toEqual([true, true]);
  expect(host.sent.map(({ kind }) => kind)).not.toContain("transact");
});
