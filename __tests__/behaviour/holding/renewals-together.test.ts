import { describe, expect, test } from "@jest/globals";
import type { Clock, Lock, LockTable } from "../../../lib/index.js";
import { hear } from "../../support/diagnostics.js";
import { eventually } from "../../support/eventually.js";
import { withBody } from "../../support/fault-proxy/reply.js";
import type { WireRequest } from "../../support/fault-proxy/wire.js";
import {
  error,
  type Fault,
  hang,
  type RecordedRequest,
  resetAfter,
  rewriteReply,
  throttle,
} from "../../support/fault-proxy.js";
import { ManualTime } from "../../support/manual-time.js";
import { rowOf, useScene } from "../../support/scene.js";

const scene = useScene();

const TTL_MS = 30_000;
const PERIOD_MS = TTL_MS / 2;
const COUNT = 10;
const BATCH = "BatchExecuteStatement";
const FOREVER = { times: Number.POSITIVE_INFINITY };

const nameOf = (index: number): string => `${scene.name}-${index}`;
const expiresOf = (locks: readonly Lock[]): number[] => locks.map(({ expires }) => expires.getTime());

/** Ten locks of one process, in a time that is on the grid of their renewals. */
async function holdTen(
  options: { readonly periods?: number; readonly clockOf?: (time: ManualTime) => Clock } = {},
): Promise<{
  readonly time: ManualTime;
  readonly table: LockTable;
  readonly locks: readonly Lock[];
}> {
  const time = new ManualTime();
  const clock = options.clockOf?.(time) ?? time.clock();
  const table = scene.host({ clock, ttlMs: TTL_MS });
  const locks = await Promise.all(Array.from({ length: COUNT }, (_, index) => table.mutex(nameOf(index)).lock()));
  // Those that were taken before there were eight are due a little later the first time.
  for (let count = 0; count < (options.periods ?? 6); count += 1) await renewAll(time, locks);
  scene.proxy.reset();
  return { time, table, locks };
}

/** Lets a period pass, and each of these be renewed. */
async function renewAll(time: ManualTime, locks: readonly Lock[]): Promise<void> {
  const renewed = watchRenewals(locks);
  await time.advance(PERIOD_MS);
  await eventually(renewed);
  await scene.quiet();
}

/** Lets a period pass, and then as much time as it takes until each of these is renewed, however often it fails. */
async function renewAtLast(time: ManualTime, locks: readonly Lock[]): Promise<void> {
  const renewed = watchRenewals(locks);
  await time.advance(PERIOD_MS);
  await scene.play(time, renewed);
}

/** Whether each of these has been renewed since. */
function watchRenewals(locks: readonly Lock[]): () => boolean {
  const before = expiresOf(locks);
  return () => expiresOf(locks).every((expires, index) => expires > (before[index] as number));
}

async function unlockAll(locks: readonly Lock[]): Promise<void> {
  await Promise.all(locks.map((lock) => lock.unlock()));
}

/** Changes what the table answers to one statement. */
const answersTo = (index: number, response: object | undefined): Fault =>
  rewriteReply((reply) => {
    const responses = [...(reply.body.Responses as object[])];
    responses.splice(
      index,
      responses.length,
      ...(response === undefined ? [] : [response, ...responses.slice(index + 1)]),
    );
    return withBody(reply, { ...reply.body, Responses: responses });
  });

/** The rows of the last batch, in its order. */
function namesIn(body: WireRequest | undefined): string[] {
  if (body?.Statements === undefined) return [body?.Key?.name?.S ?? ""];
  const statements = body.Statements as { readonly Parameters: readonly { readonly S?: string }[] }[];
  return statements.map(({ Parameters }) => Parameters.find(({ S }) => S?.startsWith("lock-"))?.S ?? "");
}

/** The stamps that renewals set, whichever way they went. */
function stampsIn(...requests: readonly RecordedRequest[]): (string | undefined)[] {
  const stamps = requests.flatMap(({ body }) => {
    if (body.Statements === undefined) return [body.ExpressionAttributeValues?.[":expires"]?.N];
    const statements = body.Statements as { readonly Parameters: readonly { readonly N?: string }[] }[];
    return statements.map(({ Parameters: [expires] }) => expires?.N);
  });
  return stamps.sort();
}

describe("the renewals of ten locks", () => {
  test("go in one request, at the price of as many updates, and each row gets its own stamp and date to be purged", async () => {
    const { time, locks } = await holdTen();
    await renewAll(time, locks);
    expect(scene.proxy.counts()).toEqual({ [BATCH]: 1 });
    expect(scene.proxy.units(BATCH)).toEqual({ read: 0, write: COUNT });
    for (const [index, lock] of locks.entries()) {
      const expires = lock.expires.getTime();
      const purge = Math.ceil(expires / 1_000) + 7 * 24 * 60 * 60;
      expect(await scene.row(nameOf(index))).toMatchObject({ uuid: lock.uuid, expires, purge });
    }
    await unlockAll(locks);
    expect(time.timers).toBe(0);
  });

  test("one with new data goes alone, and the data stays when it goes with others again", async () => {
    const { time, locks } = await holdTen();
    await locks[3]?.replaceData({ step: 2 });
    expect(scene.proxy.counts()).toEqual({ UpdateItem: 1 });
    await renewAll(time, locks);
    expect(await scene.row(nameOf(3))).toMatchObject({ data: { step: 2 } });
    await unlockAll(locks);
  });

  test("trap 41: of ten locks of which one was stolen and one deleted, these two are lost, and the others are kept", async () => {
    const losses = hear("dynamutex:lost");
    const { time, locks } = await holdTen();
    await scene.put(rowOf(), nameOf(2));
    await scene.remove(nameOf(7));
    await renewAll(
      time,
      locks.filter((_, index) => index !== 2 && index !== 7),
    );
    expect(scene.proxy.counts()).toEqual({ [BATCH]: 1, GetItem: 1 });
    expect(losses.map(({ name, reason }) => [name, reason]).sort()).toEqual([
      [nameOf(2), "stolen"],
      [nameOf(7), "deleted"],
    ]);
    expect(locks.map(({ held }) => held)).toEqual(locks.map((_, index) => index !== 2 && index !== 7));
    await Promise.allSettled(locks.map((lock) => lock.unlock()));
    expect(await scene.row(nameOf(2))).toMatchObject({ uuid: "somebody-else" });
  });

  test("nobody waits for the look at a row that is gone, which one of the ten needs", async () => {
    const { time, locks } = await holdTen();
    const others = locks.filter((_, index) => index !== 7);
    await scene.remove(nameOf(7));
    scene.proxy.on("GetItem", hang());
    const renewed = watchRenewals(others);
    await time.advance(PERIOD_MS);
    await eventually(renewed);
    expect(scene.proxy.counts()[BATCH]).toBe(1);
    await eventually(() => scene.proxy.counts().GetItem === 1);
    await unlockAll(others);
  });

  test("an item that is no lock any more ends the renewals of one, and the others go on together", async () => {
    const told = hear("dynamutex:one-by-one");
    const { time, locks } = await holdTen();
    const others = locks.filter((_, index) => index !== 7);
    await scene.put({ ...rowOf(), expires: "damaged" }, nameOf(7));
    await renewAll(time, others);
    scene.proxy.reset();
    await renewAll(time, others);
    expect(scene.proxy.counts()[BATCH]).toBe(1);
    expect(told).toEqual([]);
    await scene.remove(nameOf(7));
    await Promise.allSettled(locks.map((lock) => lock.unlock()));
  });

  test("a batch whose reply is lost is sent again together, with the same stamps, and each recognises its own", async () => {
    const { time, locks } = await holdTen();
    scene.proxy.on(BATCH, resetAfter());
    const renewed = watchRenewals(locks);
    await time.advance(PERIOD_MS);
    await time.sleepUntil(() => true);
    await scene.play(time, renewed);
    const [first, ...more] = scene.proxy.select(({ operation }) => operation === BATCH || operation === "UpdateItem");
    expect(namesIn(first?.body)).toHaveLength(COUNT);
    expect(more.flatMap(({ body }) => namesIn(body)).sort()).toEqual(namesIn(first?.body).sort());
    expect(more.length).toBeLessThan(COUNT);
    expect(stampsIn(...more)).toEqual(stampsIn(first as RecordedRequest));
    for (const [index, lock] of locks.entries()) {
      expect(await scene.row(nameOf(index))).toMatchObject({ uuid: lock.uuid, expires: lock.expires.getTime() });
    }
    expect(locks.every(({ held }) => held)).toBe(true);
    await unlockAll(locks);
  });

  test("leases are counted from the first copy of a batch without an answer, because a watcher may count from there", async () => {
    let latestBy = 0;
    const clockOf = (time: ManualTime): Clock => {
      const clock = time.clock();
      return { ...clock, wall: () => ({ earliest: time.now, latest: time.now + latestBy }) };
    };
    const { time, locks } = await holdTen({ clockOf });
    const endOf = ({ remainingMs }: Lock): number => time.elapsed + remainingMs;
    const ends = locks.map(endOf);
    const renewed = watchRenewals(locks);
    // The stamps of the first copy last longer than the leases: the time is known better when the second copy leaves.
    latestBy = 5_000;
    scene.proxy.on(BATCH, resetAfter());
    await time.advance(PERIOD_MS);
    await time.sleepUntil(() => true);
    latestBy = 0;
    await scene.play(time, renewed);
    expect(locks.map(endOf)).toEqual(ends.map((end) => end + PERIOD_MS));
    await unlockAll(locks);
  });

  test("a batch that hangs ends no lease before its deadline, and every lease at it", async () => {
    const losses = hear("dynamutex:lost");
    const { time, locks } = await holdTen();
    scene.proxy.on(BATCH, hang(), FOREVER);
    scene.proxy.on("UpdateItem", hang(), FOREVER);
    const ends = locks.map(({ remainingMs }) => time.elapsed + remainingMs);
    await time.passUntil(() => losses.length === COUNT);
    expect(time.elapsed).toBe(Math.max(...ends));
    expect(losses.map(({ reason }) => reason)).toEqual(Array(COUNT).fill("expired"));
  });

  test("a batch that hangs for one of its rows costs that lock, and no other", async () => {
    const losses = hear("dynamutex:lost");
    const { time, locks } = await holdTen();
    const stuck = ({ operation, body }: RecordedRequest) =>
      (operation === BATCH || operation === "UpdateItem") && namesIn(body).includes(nameOf(4));
    scene.proxy.on(stuck, hang(), FOREVER);
    await scene.play(time, () => losses.length > 0, 100);
    expect(losses.map(({ name }) => name)).toEqual([nameOf(4)]);
    expect(locks.filter(({ held }) => !held).map(({ name }) => name)).toEqual([nameOf(4)]);
    await Promise.allSettled(locks.map((lock) => lock.unlock()));
  });

  test.each<readonly [string, object | undefined]>([
    ["is throttled", { Error: { Code: "ThrottlingError", Message: "Rate exceeded" } }],
    ["failed inside of DynamoDB", { Error: { Code: "InternalServerError", Message: "unknown" } }],
    ["met a transaction", { Error: { Code: "TransactionConflict", Message: "Transaction is ongoing for the item" } }],
    ["has an unknown code", { Error: { Code: "SomethingNew", Message: "what is this" } }],
    ["and all after it are left out of the reply", undefined],
  ])("one that %s is tried again, and no lock is lost", async (_, response) => {
    const failures = hear("dynamutex:renewal-failed");
    const told = hear("dynamutex:one-by-one");
    const { time, locks } = await holdTen();
    scene.proxy.on(BATCH, answersTo(4, response));
    const renewed = watchRenewals(locks);
    await time.advance(PERIOD_MS);
    await eventually(() => failures.length > 0);
    await scene.play(time, renewed);
    const failed = namesIn(scene.proxy.select(BATCH)[0]?.body).slice(4, response === undefined ? COUNT : 5);
    expect(new Set(failures.map(({ uuid }) => locks.find((lock) => lock.uuid === uuid)?.name))).toEqual(
      new Set(failed),
    );
    expect([locks.every(({ held }) => held), told]).toEqual([true, []]);
    await unlockAll(locks);
  });

  test("a batch that is throttled whole is sent again", async () => {
    const { time, locks } = await holdTen();
    const trouble = scene.proxy.on(BATCH, throttle(), { times: 2 });
    await renewAtLast(time, locks);
    await trouble.done;
    expect(locks.every(({ held }) => held)).toBe(true);
    await unlockAll(locks);
  });
});

describe("where batches cannot be used", () => {
  test.each<readonly [string, () => Fault]>([
    [
      "the permission is missing",
      () => error("AccessDeniedException", "not authorized to perform: dynamodb:PartiQLUpdate"),
    ],
    ["the engine has none", () => error("UnknownOperationException", "unsupported operation")],
    [
      "the engine does not understand the statement",
      () => error("ValidationException", "Statement wasn't well formed"),
    ],
    [
      "the permission is missing for one statement",
      () => answersTo(4, { Error: { Code: "AccessDenied", Message: "not authorized" } }),
    ],
    ["a gateway answers something else", () => rewriteReply((reply) => withBody(reply, {}))],
  ])("because %s, renewals go one by one from then on, which is told once, and no lock is lost", async (_, fault) => {
    const told = hear("dynamutex:one-by-one");
    const failures = hear("dynamutex:renewal-failed");
    const { time, locks } = await holdTen();
    scene.proxy.on(BATCH, fault(), FOREVER);
    await renewAll(time, locks);
    expect(scene.proxy.count(BATCH)).toBe(1);
    scene.proxy.reset();
    for (let count = 0; count < 3; count += 1) await renewAll(time, locks);
    expect(scene.proxy.counts()).toEqual({ UpdateItem: 3 * COUNT });
    expect(told).toHaveLength(1);
    expect([locks.every(({ held }) => held), failures]).toEqual([true, []]);
    await unlockAll(locks);
  });

  test("expired credentials are no such reason: they go together again when it is over", async () => {
    const told = hear("dynamutex:one-by-one");
    const { time, locks } = await holdTen();
    scene.proxy.on(BATCH, error("ExpiredTokenException", "no"));
    await renewAtLast(time, locks);
    for (let count = 0; count < 6; count += 1) await renewAll(time, locks);
    scene.proxy.reset();
    await renewAll(time, locks);
    expect(scene.proxy.counts()[BATCH]).toBeGreaterThanOrEqual(1);
    expect([told, locks.every(({ held }) => held)]).toEqual([[], true]);
    await unlockAll(locks);
  });
});

test("a batch is told as one request, with what it cost", async () => {
  const { time, locks } = await holdTen();
  const requests = hear("dynamutex:request");
  // As DynamoDB does, and DynamoDB Local does not.
  const ConsumedCapacity = [{ TableName: scene.tableName, CapacityUnits: COUNT }];
  scene.proxy.on(
    BATCH,
    rewriteReply((reply) => withBody(reply, { ...reply.body, ConsumedCapacity })),
  );
  await renewAll(time, locks);
  expect(scene.proxy.select(BATCH)[0]?.body).toMatchObject({ ReturnConsumedCapacity: "TOTAL" });
  expect(requests).toEqual([
    expect.objectContaining({ operation: "renew-all", outcome: "ok", attempts: 1, writeUnits: COUNT, readUnits: 0 }),
  ]);
  await unlockAll(locks);
});
