import { describe, expect, test } from "@jest/globals";
import { LockTimeoutError, systemClock } from "../../../lib/index.js";
import { hear } from "../../support/diagnostics.js";
import { rowOf, useScene } from "../../support/scene.js";

const scene = useScene();

describe("a lock that nobody else wants", () => {
  test("each way to take and release it is one PutItem and one DeleteItem, and costs 2 write units", async () => {
    const mutex = scene.host({ clock: systemClock() }).mutex(scene.name);
    await (await mutex.lock()).unlock();
    await (await mutex.tryLock())?.unlock();
    expect(await mutex.run(async (lock) => lock.held)).toBe(true);
    expect(await mutex.tryRun(async () => "done")).toEqual({ ran: true, value: "done" });
    await (await mutex.lock({ waitMs: 0 })).unlock();
    expect(scene.proxy.counts()).toEqual({ PutItem: 5, DeleteItem: 5 });
    expect(scene.proxy.units()).toEqual({ read: 0, write: 10 });
    expect(await scene.row()).toBeUndefined();
  });

  test("the first round of a process that learns the time from the table begins with one consistent read", async () => {
    const mutex = scene.host().mutex(scene.name);
    for (let round = 0; round < 2; round += 1) await mutex.run(() => undefined);
    const round = ["PutItem", "DeleteItem"];
    expect(scene.proxy.requests.map(({ operation }) => operation)).toEqual(["GetItem", ...round, ...round]);
    expect(scene.proxy.units()).toEqual({ read: 1, write: 4 });
  });

  test("the row says who holds it, since when, until when, and what the caller adds", async () => {
    const before = Date.now();
    const locks = scene.host({ owner: "host-7#42", ttlMs: 20_000, clock: systemClock() });
    await using lock = await locks.mutex(scene.name).lock({ data: { job: "report", pages: 3 } });
    const after = Date.now();
    expect(await scene.row()).toEqual({
      name: scene.name,
      sort: "lock",
      format: 1,
      uuid: lock.uuid,
      expires: lock.expires.getTime(),
      ttlMs: 20_000,
      owner: "host-7#42",
      acquired: lock.acquired.getTime(),
      purge: expect.any(Number),
      data: { job: "report", pages: 3 },
    });
    expect(lock.acquired.getTime()).toBeGreaterThanOrEqual(before - 1);
    expect(lock.acquired.getTime()).toBeLessThanOrEqual(after + 1);
    expect(lock.expires.getTime()).toBeGreaterThanOrEqual(before + 20_000);
  });

  test("trap 7: the attribute for DynamoDB's TTL feature is in seconds, a week after the lease", async () => {
    await using lock = await scene.host().mutex(scene.name).lock();
    const { purge } = (await scene.row()) as { purge: number };
    const week = 7 * 24 * 60 * 60;
    const expiresSeconds = lock.expires.getTime() / 1_000;
    expect(Math.abs(purge - (expiresSeconds + week))).toBeLessThanOrEqual(1);
  });

  test("every acquisition has a uuid of its own, and the channel tells of it", async () => {
    const acquired = hear("dynamutex:acquired");
    const released = hear("dynamutex:released");
    const mutex = scene.host({ owner: "me" }).mutex(scene.name);
    const first = await mutex.lock();
    await first.unlock();
    const second = await mutex.lock();
    await second.unlock();
    expect(second.uuid).not.toBe(first.uuid);
    expect(acquired.map(({ name, uuid, owner }) => [name, uuid, owner])).toEqual([
      [scene.name, first.uuid, "me"],
      [scene.name, second.uuid, "me"],
    ]);
    expect(released.map(({ uuid }) => uuid)).toEqual([first.uuid, second.uuid]);
  });
});

describe("a lock that somebody holds", () => {
  test.each([
    ["does not know the table's time yet", undefined, { GetItem: 1 }],
    ["knows the time", systemClock(), { PutItem: 1 }],
  ])("tryLock of a process that %s is null after one request", async (_, clock, requests) => {
    await scene.put(rowOf());
    expect(await scene.host({ clock }).mutex(scene.name).tryLock()).toBeNull();
    expect(scene.proxy.counts()).toEqual(requests);
  });

  test("tryRun runs nothing and shows who is in the way", async () => {
    const row = rowOf({ data: { job: "report" } });
    await scene.put(row);
    const section = (): never => {
      throw new Error("it must not run");
    };
    expect(await scene.host().mutex(scene.name).tryRun(section)).toEqual({
      ran: false,
      reason: "held",
      holder: {
        name: scene.name,
        kind: "mutex",
        uuid: "somebody-else",
        owner: "elsewhere#1",
        acquired: new Date(row.acquired as number),
        expires: new Date(row.expires as number),
        ttlMs: 30_000,
        data: { job: "report" },
        handedOff: false,
      },
    });
    expect(scene.proxy.counts()).toEqual({ GetItem: 1 });
  });

  test("lock with waitMs 0 fails after one request and names the holder", async () => {
    await scene.put(rowOf());
    const attempt = scene.host().mutex(scene.name).lock({ waitMs: 0 });
    await expect(attempt).rejects.toBeInstanceOf(LockTimeoutError);
    await expect(attempt).rejects.toMatchObject({ lockName: scene.name, holder: { owner: "elsewhere#1" } });
    expect(scene.proxy.counts()).toEqual({ GetItem: 1 });
  });
});

describe("several names", () => {
  test("do not disturb each other, and a name is the same name in every table object", async () => {
    const locks = scene.host();
    await using one = await locks.mutex(`${scene.name}/a`).lock();
    await using other = await locks.mutex(`${scene.name}/b`).lock();
    expect(one.uuid).not.toBe(other.uuid);
    expect(await scene.host().mutex(`${scene.name}/a`).tryLock()).toBeNull();
    expect(await scene.host().mutex(`${scene.name}/A`).tryLock()).not.toBeNull();
  });

  test("are compared byte by byte: neither case nor another form of the same letters makes one name of two", async () => {
    const locks = scene.host();
    const names = ["caf\u00e9", "cafe\u0301", "CAF\u00c9"].map((name) => `${scene.name}/${name}`);
    const held = await Promise.all(names.map((name) => locks.mutex(name).tryLock()));
    expect(held.map((lock) => lock?.name)).toEqual(names);
    for (const [index, name] of names.entries())
      expect(await scene.row(name)).toMatchObject({ uuid: held[index]?.uuid });
    await Promise.all(held.map((lock) => lock?.unlock()));
  });

  test("with a key prefix, the row's key has it and the lock's name does not", async () => {
    const mutex = () => scene.host({ keyPrefix: "tenant-7/" }).mutex(scene.name);
    await using lock = await mutex().lock();
    expect(lock.name).toBe(scene.name);
    expect(await scene.row(`tenant-7/${scene.name}`)).toMatchObject({ uuid: lock.uuid });
    const result = await mutex().tryRun(() => undefined);
    expect(result).toMatchObject({ ran: false, holder: { name: scene.name } });
    expect(await scene.row()).toBeUndefined();
  });
});
