import { AsyncLocalStorage } from "node:async_hooks";
import { describe, expect, test } from "@jest/globals";
import type { Diagnostics, LockTable } from "../../../lib/index.js";
import { hear } from "../../support/diagnostics.js";
import { watch } from "../../support/eventually.js";
import { error, hang, throttle } from "../../support/fault-proxy.js";
import { startHost } from "../../support/host-process.js";
import { ManualTime } from "../../support/manual-time.js";
import { MemoryHost } from "../../support/memory-host.js";
import { rowOf, useScene } from "../../support/scene.js";
import type { LateListenerConfig } from "./hosts/late-listener.js";

const scene = useScene();

const TTL_MS = 30_000;

/** Every channel, and what tells its messages from one another. The type checker misses a channel that is not here. */
const TELLING: { readonly [Name in keyof Diagnostics]: (message: Diagnostics[Name]) => readonly unknown[] } = {
  "dynamutex:asked": ({ call }) => [call],
  "dynamutex:acquired": ({ call }) => [call],
  "dynamutex:renewed": () => [],
  "dynamutex:renewal-failed": () => [],
  "dynamutex:one-by-one": () => [],
  "dynamutex:wanted": ({ call }) => [call],
  "dynamutex:lost": ({ call, reason }) => [call, reason],
  "dynamutex:released": ({ call }) => [call],
  "dynamutex:missed": ({ call, reason }) => [call, reason],
  "dynamutex:failed": ({ call, reason }) => [call, reason],
  "dynamutex:blocked": ({ call }) => [call],
  "dynamutex:stuck": ({ call }) => [call],
  "dynamutex:forced": () => [],
  "dynamutex:release-failed": () => [],
  "dynamutex:request": ({ operation, outcome }) => [operation, outcome],
  "dynamutex:not-shared": () => [],
  "dynamutex:not-recorded": ({ isKnown }) => [isKnown],
  "dynamutex:wait-failed": () => [],
  "dynamutex:ticket-lost": ({ reason }) => [reason],
  "dynamutex:permits-differ": () => [],
  "dynamutex:election": ({ event }) => [event],
  "dynamutex:clock": ({ event }) => [event],
};

/** All that is told from here on, in order, as words; calls are numbered from 1. What comes again at once is left out. */
function hearAll(): readonly string[] {
  const story: string[] = [];
  const calls: unknown[] = [];
  for (const name of Object.keys(TELLING) as (keyof Diagnostics)[]) {
    hear(name, (message) => {
      const words = TELLING[name](message as never).map((word) => {
        if (typeof word !== "number") return word;
        if (!calls.includes(word)) calls.push(word);
        return `#${calls.indexOf(word) + 1}`;
      });
      const line = [name.slice("dynamutex:".length), ...words].join(" ");
      if (story.at(-1) !== line) story.push(line);
    });
  }
  return story;
}

function host(time: ManualTime, tag = "me"): LockTable {
  return scene.host({ clock: time.clock(), ttlMs: TTL_MS, tag, owner: tag });
}

describe("all that the channels tell, in order,", () => {
  test("of one contended lock", async () => {
    const story = hearAll();
    const time = new ManualTime();
    const first = await host(time, "first").mutex(scene.name).lock();
    const waiting = host(time, "second").mutex(scene.name).lock();
    await scene.play(time, () => story.includes("renewed"), 2_500);
    await first.unlock();
    const settled = watch(waiting);
    await scene.play(time, () => settled.settled);
    await (await waiting).unlock();
    // The waiter looks at times that are drawn, and beside the renewal in no order.
    expect(story).toContain("request read ok");
    // A waiter whose answers become slower says so in another mark, before or after it is told that it waits long.
    const told = story.filter((line) => line !== "request read ok");
    const before = (index: number) => told.slice(0, index).findLast((line) => line !== "blocked #2");
    expect(told.filter((line, index) => line !== "request mark ok" || before(index) !== line)).toEqual([
      "asked #1",
      "request take ok",
      "acquired #1",
      "asked #2",
      "request take refused",
      "request mark ok",
      "blocked #2",
      "request renew ok",
      "renewed",
      "wanted #1",
      "request release ok",
      "released #1",
      "request take ok",
      "acquired #2",
      "request release ok",
      "released #2",
    ]);
  });

  test("of a lock that is handed off, and of who resumes it, once and once more", async () => {
    const story = hearAll();
    const mutex = host(new ManualTime()).mutex(scene.name);
    const token = await (await mutex.lock()).handOff({ validForMs: 10_000 });
    await (await mutex.resume(token)).unlock();
    await expect(mutex.resume(token)).rejects.toMatchObject({ code: "LOCK_LOST" });
    expect(story).toEqual([
      "asked #1",
      "request take ok",
      "acquired #1",
      // Only what was renewed under its uuid is handed on.
      "request renew ok",
      "request transfer ok",
      "released #1",
      "asked #2",
      // What is remembered is on the row, and not in the token.
      "request read ok",
      "request transfer ok",
      "acquired #2",
      "request release ok",
      "released #2",
      "asked #3",
      // Its uuid is gone, so nothing is written.
      "request read ok",
      "failed #3 error",
    ]);
  });

  test("of a set, which is one call and a section for each name", async () => {
    const [asked, acquired] = [hear("dynamutex:asked"), hear("dynamutex:acquired")];
    const story = hearAll();
    const names = [`${scene.name}-x`, `${scene.name}-y`];
    const set = await host(new ManualTime()).lockAll(names);
    for (const lock of set.locks.values()) await lock.unlock();
    expect(asked).toMatchObject([{ name: names.join(", "), locks: 2 }]);
    expect(acquired.map(({ name }) => name)).toEqual(names);
    const release = ["request release ok", "released #1"];
    expect(story).toEqual(["asked #1", "request take-all ok", "acquired #1", ...release, ...release]);
  });

  test("of readers of one process, which share a uuid and not a call", async () => {
    const released = hear("dynamutex:released");
    const story = hearAll();
    const { shared } = host(new ManualTime()).sharedMutex(scene.name);
    const first = await shared.lock();
    const second = await shared.lock();
    await first.unlock();
    await second.unlock();
    expect(second.uuid).toBe(first.uuid);
    expect(new Set(released.map(({ uuid }) => uuid)).size).toBe(1);
    const take = ["request take ok", "request read ok"];
    expect(story).toEqual([
      ...["asked #1", ...take, "acquired #1", "asked #2", "acquired #2"],
      ...["released #1", "request release ok", "released #2"],
    ]);
  });
});

describe("a call that has asked tells once what came of it:", () => {
  /** The ends of calls as they come: what came of them, and why. */
  function hearEnds(): readonly string[] {
    const ends: string[] = [];
    hear("dynamutex:acquired", () => ends.push("acquired"));
    hear("dynamutex:missed", ({ reason }) => ends.push(`missed ${reason}`));
    hear("dynamutex:failed", ({ reason }) => ends.push(`failed ${reason}`));
    return ends;
  }

  test("a try, a wait that is over or aborted, and one that a close ends", async () => {
    const [asked, failed] = [hear("dynamutex:asked"), hear("dynamutex:failed")];
    const missed = hear("dynamutex:missed");
    const ends = hearEnds();
    const time = new ManualTime();
    await scene.put(rowOf({ expires: time.now + 600_000, ttlMs: 600_000 }));
    const locks = host(time);
    const mutex = locks.mutex(scene.name);
    expect(await mutex.tryLock()).toBeNull();
    await expect(mutex.lock({ waitMs: 0 })).rejects.toMatchObject({ code: "LOCK_TIMEOUT" });
    await expect(locks.lockAll([scene.name, "other"], { waitMs: 0 })).rejects.toMatchObject({ code: "LOCK_TIMEOUT" });
    const late = mutex.lock({ waitMs: 1_000 });
    const watched = watch(late);
    await scene.play(time, () => watched.settled, 100);
    await expect(late).rejects.toMatchObject({ code: "LOCK_TIMEOUT" });
    const controller = new AbortController();
    const aborted = mutex.run(() => undefined, { signal: controller.signal });
    await time.advance(300);
    controller.abort(new Error("enough"));
    await expect(aborted).rejects.toThrow("enough");
    const closed = mutex.lock();
    const closing = locks.close();
    await expect(closed).rejects.toMatchObject({ code: "LOCK_CLOSED" });
    await closing;
    expect(ends).toEqual([
      ...["missed held", "missed held", "missed held", "missed timeout", "failed aborted", "failed closed"],
    ]);
    expect(asked).toHaveLength(ends.length);
    expect(missed[2]).toMatchObject({ name: `${scene.name}, other`, holder: { owner: "elsewhere#1" } });
    const ended = { name: scene.name, call: asked[4]?.call, cause: controller.signal.reason, waitedMs: 300 };
    expect(failed[0]).toEqual({ ...ended, reason: "aborted" });
  });

  test("a table that cannot be used", async () => {
    const asked = hear("dynamutex:asked");
    const failed = hear("dynamutex:failed");
    const ends = hearEnds();
    scene.proxy.on("PutItem", error("AccessDeniedException", "no"), { times: 2 });
    const mutex = host(new ManualTime()).mutex(scene.name);
    const causes = [await mutex.lock().catch((cause) => cause), await mutex.tryLock().catch((cause) => cause)];
    expect(ends).toEqual(["failed error", "failed error"]);
    expect(failed.map(({ call, cause }) => [call, cause])).toEqual(asked.map(({ call }, at) => [call, causes[at]]));
  });

  test("a call that is refused as it is made has not asked", async () => {
    const asked = hear("dynamutex:asked");
    const ends = hearEnds();
    const locks = host(new ManualTime());
    const mutex = locks.mutex(scene.name);
    await expect(mutex.lock({ waitMs: -1 })).rejects.toMatchObject({ code: "LOCK_CONFIG" });
    await expect(mutex.lock({ signal: AbortSignal.abort(new Error("gone")) })).rejects.toThrow("gone");
    await expect(mutex.resume("no token")).rejects.toMatchObject({ code: "LOCK_CONFIG" });
    await locks.close();
    await expect(mutex.lock()).rejects.toMatchObject({ code: "LOCK_CLOSED" });
    expect([asked, ends]).toEqual([[], []]);
  });

  test("what the library does by itself asks for nothing: a place in a queue, a look at a lock", async () => {
    const asked = hear("dynamutex:asked");
    const time = new ManualTime();
    await scene.put(rowOf({ expires: time.now + 600_000, ttlMs: 600_000 }));
    const mutex = host(time).mutex(scene.name, { fair: true });
    const waiting = mutex.lock({ waitMs: 5_000 });
    const watched = watch(waiting);
    await scene.play(time, () => watched.settled, 500);
    await expect(waiting).rejects.toMatchObject({ code: "LOCK_TIMEOUT" });
    await mutex.inspect();
    expect(scene.proxy.count("UpdateItem")).toBeGreaterThan(0);
    expect(asked).toHaveLength(1);
  });

  test("it asks in its caller's own asynchronous context, before it returns", async () => {
    const storage = new AsyncLocalStorage<string>();
    const contexts: (string | undefined)[] = [];
    hear("dynamutex:asked", () => contexts.push(storage.getStore()));
    const locks = host(new ManualTime());
    const mutex = locks.mutex(scene.name, { fair: true });
    const { shared } = locks.sharedMutex(scene.name);
    const semaphore = locks.semaphore(scene.name, { permits: 1 });
    const calls: Readonly<Record<string, () => Promise<unknown>>> = {
      lock: () => mutex.lock(),
      tryLock: () => mutex.tryLock(),
      run: () => mutex.run(() => undefined),
      tryRun: () => shared.tryRun(() => undefined),
      lockAll: () => locks.lockAll([`${scene.name}-x`]),
      permit: () => semaphore.lock({ waitMs: 0 }),
    };
    for (const [name, call] of Object.entries(calls)) {
      const made = storage.run(name, call);
      expect(contexts.at(-1)).toBe(name);
      const lock = await made;
      await (lock as { readonly unlock?: () => Promise<void> } | undefined)?.unlock?.();
    }
    expect(contexts).toEqual(Object.keys(calls));
  });
});

describe("each request tells", () => {
  test("what it was for and what it cost", async () => {
    const requests = hear("dynamutex:request");
    const locks = host(new ManualTime());
    const mutex = locks.mutex(scene.name);
    const lock = await mutex.lock();
    await lock.extend();
    await mutex.inspect();
    const Item = { name: { S: "x" }, sort: { S: "y" } };
    await lock.transactWrite([{ Put: { TableName: scene.tableName, Item } }]);
    await mutex.forceUnlock(lock.uuid, { now: true });
    for await (const _ of locks.list()) void 0;
    await locks.semaphore(scene.name, { permits: 2 }).inspect();
    await (await locks.lockAll([scene.name, `${scene.name}-y`])).unlock();
    const [name, noWrites, noReads] = [scene.name, { readUnits: 0 }, { writeUnits: 0 }];
    expect(requests).toMatchObject([
      { operation: "take", name, ...noWrites, writeUnits: 1 },
      { operation: "renew", name, ...noWrites, writeUnits: 1 },
      { operation: "read", name, ...noReads, readUnits: 1 },
      { operation: "transact", name, ...noWrites },
      { operation: "release", name, ...noWrites, writeUnits: 1 },
      { operation: "scan", name: undefined, ...noReads },
      { operation: "query", name, ...noReads },
      { operation: "take-all", name, ...noWrites },
      { operation: "release", ...noWrites, writeUnits: 1 },
      { operation: "release", ...noWrites, writeUnits: 1 },
    ]);
    for (const request of requests) expect(request).toMatchObject({ outcome: "ok", cause: undefined, attempts: 1 });
    // Of a transaction and of an empty query the engine tells less than DynamoDB takes.
    const toldRight = requests.filter(({ operation }) => !["transact", "take-all", "query"].includes(operation));
    const right = (operation: string) => operation !== "TransactWriteItems" && operation !== "Query";
    const sum = (unit: "readUnits" | "writeUnits") =>
      toldRight.reduce((total, { [unit]: units = 0 }) => total + units, 0);
    expect({ read: sum("readUnits"), write: sum("writeUnits") }).toEqual(scene.proxy.units({ operation: right }));
  });

  test("what came of it, how long it took, and how often the client sent it", async () => {
    const requests = hear("dynamutex:request");
    const time = new ManualTime();
    const mutex = host(time).mutex(scene.name);
    scene.proxy.on("PutItem", throttle());
    scene.proxy.on("PutItem", error("InternalServerError", "no", 500));
    scene.proxy.on("PutItem", hang());
    const locking = mutex.lock();
    const locked = watch(locking);
    await scene.play(time, () => locked.settled);
    const lock = await locking;
    expect(await host(time, "other").mutex(scene.name).tryLock()).toBeNull();
    expect(requests.map(({ operation, outcome, attempts }) => [operation, outcome, attempts])).toEqual([
      ["take", "throttled", 1],
      ["take", "failed", 1],
      ["take", "unanswered", 1],
      ["take", "ok", 1],
      ["take", "refused", 1],
    ]);
    const [throttled, , unanswered, , refused] = requests;
    expect(throttled?.cause).toMatchObject({ name: "ThrottlingException" });
    expect(unanswered?.ms).toBeGreaterThan(100);
    expect(refused).toMatchObject({ cause: undefined, readUnits: undefined, writeUnits: undefined });
    await lock.unlock();
    scene.proxy.on("PutItem", throttle());
    await scene
      .host({ clock: time.clock(), sdk: { maxAttempts: 2 } })
      .mutex(scene.name)
      .lock();
    expect(requests.at(-1)).toMatchObject({ operation: "take", outcome: "ok", attempts: 2 });
  });

  test("nothing to nobody: without a subscriber no reply is asked what it cost", async () => {
    const locks = host(new ManualTime());
    const use = async () => {
      const lock = await locks.mutex(scene.name).lock();
      await lock.transactWrite([]);
      await lock.unlock();
      await (await locks.lockAll([scene.name, "other"])).unlock();
    };
    await use();
    const asks = () => scene.proxy.requests.map(({ body }) => body.ReturnConsumedCapacity);
    expect(new Set(asks())).toEqual(new Set([undefined]));
    scene.proxy.reset();
    hear("dynamutex:request");
    await use();
    expect(new Set(asks())).toEqual(new Set(["TOTAL"]));
  });
});

test.each(["aborts its signal", "closes its table"])("a subscriber to `asked` that %s ends the call", async (what) => {
  const time = new ManualTime();
  const holder = new MemoryHost(time, { owner: "holder" });
  const host = new MemoryHost(time, { owner: "host", table: holder.table });
  await holder.mutex("x").lock();
  const stopping = new AbortController();
  let isAsked = false;
  hear("dynamutex:asked", () => {
    isAsked = true;
    if (what === "aborts its signal") stopping.abort();
    else void host.session.close(0);
  });
  const watched = watch(host.mutex("x").lock({ signal: stopping.signal }));
  await time.advance(60_000);
  expect([isAsked, watched.settled, host.sent.length]).toEqual([true, true, 0]);
});

test("no channel goes deaf where it is subscribed to after events and a garbage collection (nodejs/node#59910)", async () => {
  const channels = Object.keys(TELLING) as (keyof Diagnostics)[];
  await using host = startHost(new URL("./hosts/late-listener.js", import.meta.url), {
    config: { channels } satisfies LateListenerConfig,
    flags: ["--expose-gc"],
  });
  expect(await host.message(({ kind }) => kind === "deaf")).toEqual({ kind: "deaf", channels: [] });
});
