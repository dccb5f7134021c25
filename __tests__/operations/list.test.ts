import { BatchWriteItemCommand } from "@aws-sdk/client-dynamodb";
import { marshall } from "@aws-sdk/util-dynamodb";
import { beforeAll, describe, expect, test } from "@jest/globals";
import type { ListOptions, LockInfo, LockTable } from "../../lib/index.js";
import { listLocks } from "../../lib/operations/inspect.js";
import { hang, passOn, throttle } from "../support/fault-proxy.js";
import { ManualTime } from "../support/manual-time.js";
import { MemoryHost } from "../support/memory-host.js";
import { type Attributes, rowOf, useScene } from "../support/scene.js";
import { createTestTable, testClient } from "../support/table.js";

const scene = useScene();
const client = testClient();

const NAMES = Array.from({ length: 3_000 }, (_, at) => `${at % 3 === 0 ? "customer" : "file"}#${at}`);
/** What one request looks at. */
const PAGE_ITEMS = 250;

async function fill(tableName: string, items: readonly Attributes[]): Promise<void> {
  const requests = items.map((item) => ({ PutRequest: { Item: marshall(item) } }));
  const writes: Promise<unknown>[] = [];
  for (let at = 0; at < requests.length; at += 25) {
    writes.push(client.send(new BatchWriteItemCommand({ RequestItems: { [tableName]: requests.slice(at, at + 25) } })));
  }
  await Promise.all(writes);
}

async function all(locks: LockTable, options?: ListOptions): Promise<LockInfo[]> {
  const listed: LockInfo[] = [];
  for await (const lock of locks.list(options)) listed.push(lock);
  return listed;
}

function namesOf(locks: readonly LockInfo[]): string[] {
  return locks.map(({ name }) => name).sort();
}

describe("list()", () => {
  let tableName = "";

  beforeAll(async () => {
    tableName = await createTestTable();
    const { uuid: _, ...withoutHolder } = rowOf({ expires: Date.now() + 3_600_000 });
    await fill(tableName, [
      ...NAMES.map((name, at) => ({ name, sort: "lock", ...rowOf({ uuid: `uuid-${at}`, data: { at } }) })),
      { name: "customer#free", sort: "lock", ...withoutHolder, expires: 0, fence: 7 },
      { name: "customer#parked", sort: "lock", ...withoutHolder },
      // What an application keeps there, and what else the locks do.
      { name: "customer#1", sort: "order", total: 7 },
      { name: "customer#1", sort: "queue#00000000000000000000000000000000000001", ...rowOf() },
      { name: "customer#2", sort: "lock", format: "of the door", colour: "red" },
      { name: "customer#4", sort: "lock", format: 1, keys: 3 },
    ]);
  });

  const table = () => scene.host({ tableName });

  test("gives every one of 3 000 locks once, a page of items at a time, and nothing else that is in the table", async () => {
    const listed = await all(table());
    expect(namesOf(listed)).toEqual([...NAMES, "customer#parked"].sort());
    expect(listed.find(({ name }) => name === "customer#3")).toMatchObject({
      uuid: "uuid-3",
      owner: "elsewhere#1",
      data: { at: 3 },
      ttlMs: 30_000,
      expires: expect.any(Date),
      acquired: expect.any(Date),
    });
    const requests = scene.proxy.select("Scan");
    expect(scene.proxy.count()).toBe(requests.length);
    expect(requests.length).toBe(Math.ceil((NAMES.length + 6) / PAGE_ITEMS));
    expect(requests.every(({ body }) => body.ConsistentRead !== true)).toBe(true);
  });

  test("ends between two locks, and in the middle of a request, when its signal aborts", async () => {
    const controller = new AbortController();
    const reason = new Error("seen enough");
    const seen: LockInfo[] = [];
    const listing = (async () => {
      for await (const lock of table().list({ signal: controller.signal })) {
        seen.push(lock);
        if (seen.length === 2) controller.abort(reason);
      }
    })();
    await expect(listing).rejects.toBe(reason);
    expect(seen).toHaveLength(2);
    scene.proxy.reset();
    const second = new AbortController();
    scene.proxy.on("Scan", passOn());
    scene.proxy.on("Scan", hang());
    const hanging = all(table(), { signal: second.signal });
    const expected = expect(hanging).rejects.toBe(reason);
    await scene.proxy.until((requests) => requests.length === 2);
    second.abort(reason);
    await expected;
    scene.proxy.partition("", "reset");
  });

  test("throttling is waited out, in the middle of a listing too", async () => {
    scene.proxy.on("Scan", passOn());
    scene.proxy.on("Scan", throttle(), { times: 2 });
    let seen = 0;
    for await (const _ of table().list()) {
      seen += 1;
      if (seen > PAGE_ITEMS) break;
    }
    expect(scene.proxy.select("Scan").map(({ fault }) => fault)).toEqual(["passOn", "throttle", "throttle", undefined]);
  });
});

describe("list() of a few locks", () => {
  test("a prefix is a part of a name like any other, and nothing begins with what no name does", async () => {
    const locks = scene.host();
    for (const name of ["file#2", "file#29", "file#291", "file#3", "File#29"]) await locks.mutex(name).lock();
    expect(namesOf(await all(locks, { prefix: "file#29" }))).toEqual(["file#29", "file#291"]);
    expect(await all(locks, { prefix: "none" })).toEqual([]);
  });

  test("with includeFree, a lock that is free is given as well if its row remembers something", async () => {
    const { uuid: _, ...free } = rowOf({ expires: 0, fence: 7 });
    await scene.put(free, "kept#1");
    const locks = scene.host();
    expect(await all(locks, { prefix: "kept#" })).toEqual([]);
    const listed = await all(locks, { prefix: "kept#", includeFree: true });
    expect(listed).toMatchObject([{ name: "kept#1", uuid: undefined, expires: new Date(0) }]);
  });
});

describe("list() of a table with other keys", () => {
  test("names come without the key prefix, in an application's own table too", async () => {
    const mine = scene.host({ keyPrefix: "lock#" });
    const lock = await mine.mutex("a").lock();
    await scene.host({ keyPrefix: "other#" }).mutex("a").lock();
    await scene.put({ customer: "Ada" }, "lock#b");
    expect(namesOf(await all(mine))).toEqual(["a"]);
    expect((await all(mine))[0]?.uuid).toBe(lock.uuid);
  });

  test("a table without a sort key", async () => {
    const tableName = await createTestTable({ sortKey: false });
    await fill(tableName, [
      { name: "x1", customer: "Ada" },
      { name: "x2", format: 1 },
    ]);
    const locks = scene.host({ tableName, keys: { sort: null } });
    await locks.mutex("x3").lock();
    expect(namesOf(await all(locks, { prefix: "x" }))).toEqual(["x3"]);
  });
});

test("an endpoint that gives the same page again and again is reported, and not asked for ever", async () => {
  const host = new MemoryHost(new ManualTime());
  let scans = 0;
  host.session.store.scan = async () => {
    scans += 1;
    return { rows: [], bad: [], next: { name: "x" } };
  };
  const list = listLocks(host.session, {});
  await expect(list.next()).rejects.toMatchObject({ code: "LOCK_STORE", transient: false });
  expect(scans).toBe(2);
});
