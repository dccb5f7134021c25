import type { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { describe, expect, test } from "@jest/globals";
import type { Lock, LockTable } from "../../../lib/index.js";
import { hear } from "../../support/diagnostics.js";
import { eventually, turn, watch } from "../../support/eventually.js";
import { createGate, duplicate, type Fault, hang, resetAfter, status500 } from "../../support/fault-proxy.js";
import { ManualTime } from "../../support/manual-time.js";
import { useScene } from "../../support/scene.js";
import { afterSleeps } from "../../support/settled.js";

const scene = useScene();

const TTL_MS = 30_000;

/** The client of a caller who has never heard of abort signals. */
function deaf(client: DynamoDBClient): DynamoDBClient {
  const send = (command: Parameters<DynamoDBClient["send"]>[0]) => client.send(command);
  return { send, destroy: () => client.destroy(), config: client.config } as unknown as DynamoDBClient;
}

/** Renews once: half a lease later, until the holder knows. */
async function renewOnce(time: ManualTime, lock: Lock): Promise<void> {
  const before = lock.expires.getTime();
  await time.advance(TTL_MS / 2);
  await eventually(() => lock.expires.getTime() > before);
}

const KINDS_OF_CLIENT: readonly [string, () => LockTable][] = [
  ["one that sends everything once", () => scene.host()],
  ["a caller's own, which retries by itself", () => scene.host({ sdk: { maxAttempts: 3 } })],
  ["a caller's own, which ignores abort signals", () => scene.host({ client: deaf(scene.client()) })],
];

describe.each(KINDS_OF_CLIENT)("a reply that is lost, with a client: %s", (_, host) => {
  const LOST: readonly [string, () => Fault][] = [
    ["a connection that is cut", resetAfter],
    ["a 500 for what was applied", () => status500({ applied: true })],
  ];

  test.each(LOST)(
    "trap 1: a put whose reply is lost (%s) is recognised in the row that refuses its retry",
    async (_how, fault) => {
      const lost = scene.proxy.on("PutItem", fault());
      const lock = await host().mutex(scene.name).lock();
      await lost.done;
      expect(await scene.row()).toMatchObject({ uuid: lock.uuid, expires: lock.expires.getTime() });
      expect(scene.proxy.counts()).toEqual({ GetItem: 1, PutItem: 2 });
      await lock.unlock();
      expect(await scene.row()).toBeUndefined();
    },
  );

  test.each(LOST)("trap 2: a renewal whose reply is lost (%s) is a renewal", async (_how, fault) => {
    const losses = hear("dynamutex:lost");
    await using lock = await host().mutex(scene.name).lock();
    const before = lock.expires.getTime();
    const lost = scene.proxy.on("UpdateItem", fault());
    await lock.extend();
    await lost.done;
    expect(lock.expires.getTime()).toBeGreaterThan(before);
    expect(await scene.row()).toMatchObject({ uuid: lock.uuid, expires: lock.expires.getTime() });
    expect([lock.held, losses]).toEqual([true, []]);
    expect(scene.proxy.count("UpdateItem")).toBe(2);
  });

  test.each(LOST)("trap 2: a release whose reply is lost (%s) is a release", async (_how, fault) => {
    const released = hear("dynamutex:released");
    const lock = await host().mutex(scene.name).lock();
    const lost = scene.proxy.on("DeleteItem", fault());
    await lock.unlock();
    await lost.done;
    expect(await scene.row()).toBeUndefined();
    expect(scene.proxy.count("DeleteItem")).toBe(2);
    expect(released.map(({ uuid }) => uuid)).toEqual([lock.uuid]);
  });

  test("trap 2: a retried release that finds somebody else's row is a success, and leaves that row alone", async () => {
    const lock = await host().mutex(scene.name).lock();
    const gate = createGate();
    const lost = scene.proxy.on("DeleteItem", resetAfter(gate.released));
    const unlocking = lock.unlock();
    await scene.proxy.until((requests) =>
      requests.some((it) => it.operation === "DeleteItem" && it.table !== undefined),
    );
    await using other = await scene.host({ tag: "other" }).mutex(scene.name).lock({ waitMs: 0 });
    gate.release();
    await lost.done;
    await unlocking;
    expect(scene.proxy.count("DeleteItem")).toBe(2);
    expect(await scene.row()).toMatchObject({ uuid: other.uuid });
    expect([lock.signal.aborted, other.held]).toEqual([false, true]);
  });
});

describe("a request that hangs in a client which ignores abort signals", () => {
  test("is left behind, and its late arrival changes nothing", async () => {
    const time = new ManualTime();
    const locks = scene.host({ clock: time.clock(), client: deaf(scene.client()) });
    const hold = scene.proxy.hold("PutItem");
    const locking = locks.mutex(scene.name, { ttlMs: TTL_MS }).lock();
    await hold.arrived;
    // The first attempt is given up, and after a pause there is another.
    await time.advance(3_000);
    const lock = await afterSleeps(time, locking);
    // The lease is counted from the first copy, which is the one that may have got there.
    expect(lock.remainingMs).toBe(TTL_MS * 0.9 - time.elapsed);
    const { expires } = lock;
    hold.release();
    await hold.held[0]?.settled;
    expect(await scene.row()).toMatchObject({ uuid: lock.uuid, expires: expires.getTime() });
    await lock.unlock();
    expect(await scene.row()).toBeUndefined();
  });
});

describe("a copy that the network delivers late", () => {
  test("trap 19: the first put and the first renewal, delivered again after the third renewal, leave `expires` alone", async () => {
    const time = new ManualTime();
    const put = duplicate();
    const renewal = duplicate();
    scene.proxy.on("PutItem", put);
    scene.proxy.on("UpdateItem", renewal);
    const lock = await scene.host({ clock: time.clock() }).mutex(scene.name, { ttlMs: TTL_MS }).lock();
    for (let count = 1; count <= 3; count += 1) await renewOnce(time, lock);
    const before = await scene.row();
    expect(before).toMatchObject({ uuid: lock.uuid, expires: lock.expires.getTime() });
    for (const copy of [put, renewal]) {
      expect((await copy.deliver()).body.__type).toContain("ConditionalCheckFailed");
      expect(await scene.row()).toEqual(before);
    }
    expect(lock.held).toBe(true);
    await renewOnce(time, lock);
    await lock.unlock();
  });

  test("trap 3: a renewal that arrives after the release does not bring the row back", async () => {
    const lock = await scene.host().mutex(scene.name).lock();
    const copy = duplicate();
    scene.proxy.on("UpdateItem", copy);
    await lock.extend();
    await lock.unlock();
    expect((await copy.deliver()).status).toBe(400);
    expect(await scene.row()).toBeUndefined();
  });

  test("trap 9: a late copy of a release does not take the row of the next holder away", async () => {
    const mutex = scene.host().mutex(scene.name);
    const copy = duplicate();
    scene.proxy.on("DeleteItem", copy);
    const first = await mutex.lock();
    await first.unlock();
    await using next = await mutex.lock();
    expect((await copy.deliver()).status).toBe(400);
    expect(await scene.row()).toMatchObject({ uuid: next.uuid });
  });

  test("a late duplicate of a put after the delete brings the row back; no process treats it as held, and it ends at its first stamp", async () => {
    const time = new ManualTime();
    const losses = hear("dynamutex:lost");
    const copy = duplicate();
    scene.proxy.on("PutItem", copy);
    const mutex = scene.host({ clock: time.clock() }).mutex(scene.name, { ttlMs: TTL_MS });
    const lock = await mutex.lock();
    const firstStamp = lock.expires.getTime();
    await renewOnce(time, lock);
    await lock.unlock();
    expect((await copy.deliver()).status).toBe(200);
    expect(await scene.row()).toMatchObject({ uuid: lock.uuid, expires: firstStamp });
    expect([lock.held, lock.signal.aborted, losses]).toEqual([false, false, []]);

    const other = scene.host({ tag: "other", clock: time.clock() }).mutex(scene.name, { ttlMs: TTL_MS });
    await time.advance(firstStamp - time.now);
    expect(await other.tryLock()).toBeNull();
    expect(await scene.row()).toMatchObject({ expires: firstStamp });
    await time.advance(1);
    const next = await other.tryLock();
    expect(await scene.row()).toMatchObject({ uuid: next?.uuid });
    await next?.unlock();
  });
});

test("a release that hangs is sent again, and the caller hears once it is certain", async () => {
  const time = new ManualTime();
  const lock = await scene.host({ clock: time.clock() }).mutex(scene.name, { ttlMs: TTL_MS }).lock();
  const hung = scene.proxy.on("DeleteItem", hang());
  const unlocking = watch(lock.unlock());
  await hung.done;
  await turn();
  expect(unlocking.settled).toBe(false);
  await time.advance(3_000);
  await time.sleepUntil(() => unlocking.settled);
  expect(await scene.row()).toBeUndefined();
  expect(scene.proxy.count("DeleteItem")).toBe(2);
});

test("a table whose every answer takes longer than a quarter of a short lease is waited for with growing patience", async () => {
  const time = new ManualTime();
  const late = scene.proxy.hold("PutItem", { times: 9, at: "reply" });
  const locking = scene.host({ clock: time.clock() }).mutex(scene.name, { ttlMs: 1_000 }).lock();
  await late.arrived;
  await time.advance(251);
  await time.sleepUntil(() => scene.proxy.count("PutItem") === 2);
  await time.advance(400);
  late.release();
  const lock = await locking;
  expect(lock.held).toBe(true);
  expect(scene.proxy.count("PutItem")).toBe(2);
  await lock.unlock();
});
