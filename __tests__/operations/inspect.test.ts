import { describe, expect, test } from "@jest/globals";
import { LockConfigError, LockError, LockStoreError } from "../../lib/index.js";
import { watch } from "../support/eventually.js";
import { hang } from "../support/fault-proxy.js";
import { ManualTime } from "../support/manual-time.js";
import { rowOf, useScene } from "../support/scene.js";

const scene = useScene();

describe("inspect()", () => {
  test("tells who holds the lock, since when, until when and with what data, by one consistent read", async () => {
    const lock = await scene
      .host({ owner: "host-7#42", ttlMs: 20_000 })
      .mutex(scene.name)
      .lock({ data: { job: "report" } });
    const mutex = scene.host({ tag: "operator" }).mutex(scene.name);
    expect(await mutex.inspect()).toMatchObject({
      name: scene.name,
      uuid: lock.uuid,
      owner: "host-7#42",
      acquired: lock.acquired,
      expires: lock.expires,
      ttlMs: 20_000,
      data: { job: "report" },
    });
    expect(
      scene.proxy.select({ client: "operator" }).map(({ operation, body }) => [operation, body.ConsistentRead]),
    ).toEqual([["GetItem", true]]);
    await lock.unlock();
    expect(await mutex.inspect()).toBeNull();
  });

  test("of a fair mutex it shows who waits, in order, with owner and since when", async () => {
    const holder = await scene.host({ owner: "holder" }).mutex(scene.name, { fair: true }).lock();
    const owners = ["b", "a", "c"];
    const stop = new AbortController();
    const waits = [];
    for (const owner of owners) {
      const tag = `waiter-${owner}`;
      waits.push(scene.host({ owner, tag }).mutex(scene.name, { fair: true }).lock({ signal: stop.signal }));
      // The order is that in which the rows of the waiters were written.
      await scene.proxy.until((requests) =>
        requests.some(
          ({ client, operation, body, ending }) =>
            client === tag &&
            operation === "PutItem" &&
            String(body.Item?.sort?.S).startsWith("queue#") &&
            ending !== undefined,
        ),
      );
    }
    const mutex = scene.host({ tag: "operator" }).mutex(scene.name, { fair: true });
    const state = await mutex.inspect();
    expect(state).toMatchObject({ owner: "holder", uuid: holder.uuid });
    expect(state?.waiters.map(({ owner }) => owner)).toEqual(owners);
    expect(state?.waiters.map(({ sections }) => sections)).toEqual([1, 1, 1]);
    const tickets = state?.waiters.map(({ ticket }) => ticket) ?? [];
    expect(tickets).toEqual([...tickets].sort((one, other) => (one < other ? -1 : 1)));
    for (const { since, expires, uuid } of state?.waiters ?? []) {
      expect(since.getTime()).toBeGreaterThanOrEqual(holder.acquired.getTime() - 2_000);
      expect(expires.getTime()).toBeGreaterThan(since.getTime());
      expect(uuid).toEqual(expect.any(String));
    }
    expect(scene.proxy.select({ client: "operator" }).map(({ operation }) => operation)).toEqual(["GetItem", "Query"]);
    expect((await scene.host().mutex(scene.name).inspect())?.waiters).toEqual([]);
    stop.abort(new Error("enough"));
    await Promise.allSettled(waits);
    await holder.unlock();
    expect(await mutex.inspect()).toBeNull();
  });

  test("shows a holder that has died, until somebody takes the lock", async () => {
    const mutex = scene.host().mutex(scene.name);
    await scene.put(rowOf({ uuid: "dead", owner: "elsewhere#1", expires: Date.now() - 60_000 }));
    expect(await mutex.inspect()).toMatchObject({ uuid: "dead", owner: "elsewhere#1" });
    await using lock = await mutex.lock();
    expect(await mutex.inspect()).toMatchObject({ uuid: lock.uuid });
  });

  test("a row that nobody holds and nobody may take yet has no uuid; when it may be taken, nobody has the lock", async () => {
    const { uuid: _, ...free } = rowOf({ expires: Date.now() + 60_000 });
    await scene.put(free);
    const mutex = scene.host().mutex(scene.name);
    expect(await mutex.inspect()).toMatchObject({ uuid: undefined, owner: "elsewhere#1" });
    await scene.put({ ...free, expires: Date.now() - 60_000 });
    expect(await mutex.inspect()).toBeNull();
  });

  test("somebody else's item is shown in an error", async () => {
    await scene.put({ customer: "Ada" });
    const error = await scene
      .host()
      .mutex(scene.name)
      .inspect()
      .catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(LockStoreError);
    expect(String(error)).toContain("Ada");
  });

  test("a table that does not answer fails after 10 s, and not before", async () => {
    const time = new ManualTime();
    scene.proxy.on("GetItem", hang(), { times: Number.POSITIVE_INFINITY });
    const inspecting = scene.host({ clock: time.clock() }).mutex(scene.name).inspect();
    const watched = watch(inspecting);
    await scene.play(time, () => watched.settled, 250);
    const error = await inspecting.catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(LockStoreError);
    expect(error).toMatchObject({ transient: true });
    expect(time.elapsed).toBeGreaterThanOrEqual(10_000);
    expect(time.elapsed).toBeLessThan(11_000);
  });

  test("a table that closes meanwhile answers at once", async () => {
    const locks = scene.host();
    scene.proxy.on("GetItem", hang());
    const inspecting = locks.mutex(scene.name).inspect();
    const expected = expect(inspecting).rejects.toMatchObject({ code: "LOCK_CLOSED" });
    await scene.proxy.until((requests) => requests.length === 1);
    const closed = locks.close();
    await expected;
    scene.proxy.partition("", "reset");
    await closed;
    await expect(locks.mutex(scene.name).inspect()).rejects.toBeInstanceOf(LockError);
  });
});

describe("options of operations are checked before anything is sent", () => {
  test.each<readonly [string, unknown]>([
    ["uuid", ""],
    ["uuid", 7],
    ["uuid", undefined],
  ])("forceUnlock: %s %p", async (option, uuid) => {
    const error = await scene
      .host()
      .mutex(scene.name)
      .forceUnlock(uuid as string)
      .catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(LockConfigError);
    expect(error).toMatchObject({ option, value: uuid, message: expect.stringContaining("inspect()") });
    expect(scene.proxy.count()).toBe(0);
  });

  test.each<readonly [Record<string, unknown>, string]>([
    [{ now: "yes" }, "now"],
    [{ soon: true }, "soon"],
  ])("forceUnlock: %p", async (options, option) => {
    await expect(scene.host().mutex(scene.name).forceUnlock("a", options)).rejects.toMatchObject({ option });
    expect(scene.proxy.count()).toBe(0);
  });

  test.each<readonly [Record<string, unknown>, string]>([
    [{ prefix: 7 }, "prefix"],
    [{ kept: 1 }, "kept"],
    [{ signal: {} }, "signal"],
    [{ prefixes: "a" }, "prefixes"],
  ])("list: %p", (options, option) => {
    expect(() => scene.host().list(options)).toThrow(expect.objectContaining({ code: "LOCK_CONFIG", option }));
  });
});
