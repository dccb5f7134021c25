import { describe, expect, test } from "@jest/globals";
import { LockError } from "../../lib/index.js";
import { hang } from "../support/fault-proxy.js";
import { untilStanding } from "../support/queue.js";
import { type Attributes, rowOf, useScene } from "../support/scene.js";

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

  test("of a fair mutex it shows who waits, in order, by one query more", async () => {
    const fair = (owner: string) => scene.host({ owner, tag: owner }).mutex(scene.name, { fair: true });
    const holder = await fair("holder").lock();
    const stop = new AbortController();
    const waits = [];
    for (const owner of ["b", "a"]) {
      waits.push(fair(owner).lock({ signal: stop.signal }));
      await untilStanding(scene, owner);
    }
    const operator = fair("operator");
    const waiters = ["b", "a"].map((owner) => ({ owner, sections: 1 }));
    expect(await operator.inspect()).toMatchObject({ owner: "holder", uuid: holder.uuid, waiters });
    expect(scene.proxy.select({ client: "operator" }).map(({ operation }) => operation)).toEqual(["GetItem", "Query"]);
    expect((await scene.host().mutex(scene.name).inspect())?.waiters).toEqual([]);
    stop.abort(new Error("enough"));
    await Promise.allSettled(waits);
    await holder.unlock();
    expect(await operator.inspect()).toBeNull();
  });

  test("shows a holder that has died, until somebody takes the lock", async () => {
    const mutex = scene.host().mutex(scene.name);
    await scene.put(rowOf({ uuid: "dead", owner: "elsewhere#1", expires: Date.now() - 60_000 }));
    expect(await mutex.inspect()).toMatchObject({ uuid: "dead", owner: "elsewhere#1" });
    await using lock = await mutex.lock();
    expect(await mutex.inspect()).toMatchObject({ uuid: lock.uuid });
  });

  test("of a free mutex with a tick it shows the last one: who was granted it, when, and whether it has succeeded", async () => {
    const at = (owner: string) => scene.host({ owner, tag: owner }).mutex(scene.name);
    const operator = at("operator");
    const first = await at("a").tryLock({ once: 7 });
    await first?.unlock();
    const granted = { tick: 7, lastRun: { owner: "a", began: first?.acquired }, succeeded: undefined };
    expect(await operator.inspect()).toMatchObject({ uuid: undefined, owner: "a", ...granted });
    // A lock without a tick has another owner, and leaves what the row knows of its tick.
    const plain = await at("b").lock();
    expect(await operator.inspect()).toMatchObject({ uuid: plain.uuid, owner: "b", ...granted });
    await plain.unlock();
    expect(await operator.inspect()).toMatchObject({ uuid: undefined, owner: "b", ...granted });
    expect(scene.proxy.select({ client: "a" }).map(({ operation }) => operation)).toEqual([
      "GetItem", // the table's time
      "UpdateItem",
      "UpdateItem",
    ]);
  });

  test("of a tick that runs until it succeeds it shows the last run, and whether that was the one", async () => {
    const at = (owner: string) => scene.host({ owner }).mutex(scene.name);
    const run = (owner: string, fn: () => void) => at(owner).tryRun(fn, { once: 7, untilSuccess: true });
    await expect(
      run("a", () => {
        throw new Error("failed");
      }),
    ).rejects.toThrow("failed");
    const failed = { attempts: 1, succeeded: false, lastRun: { owner: "a" } };
    expect(await at("operator").inspect()).toMatchObject(failed);
    await run("b", () => undefined);
    expect(await at("operator").inspect()).toMatchObject({ attempts: 2, succeeded: true, lastRun: { owner: "b" } });
  });

  test.each<[string, Attributes]>([
    ["of another tick: an older version was granted this one", { ran: { tick: 6, owner: "a", at: 1_000 } }],
    ["of another attempt", { due: 7, attempt: 2, ran: { tick: 7, attempt: 1, owner: "a", at: 1_000 } }],
    ["that does not parse", { ran: { tick: 7, owner: 5, at: 1_000 } }],
    ["that is no date", { ran: { tick: 7, owner: "a", at: 9e15 } }],
    ["of another type", { ran: "a" }],
    ["of nobody: an older version wrote the row", {}],
  ])("shows no last run %s", async (_, attributes) => {
    const { uuid: __, ...row } = rowOf({ expires: 0, tick: 7, ...attributes });
    await scene.put(row);
    const state = await scene.host().mutex(scene.name).inspect();
    expect(state).toMatchObject({ tick: 7, uuid: undefined });
    expect(state).not.toHaveProperty("lastRun");
    await (await scene.host().mutex(scene.name).lock()).unlock();
  });

  test("somebody else's item is shown in an error", async () => {
    await scene.put({ customer: "Ada" });
    const failure = { code: "LOCK_STORE", message: expect.stringContaining("Ada") };
    await expect(scene.host().mutex(scene.name).inspect()).rejects.toMatchObject(failure);
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
  test.each<readonly [string, RegExp, readonly unknown[]]>([
    ["uuid", /inspect\(\)/, [""]],
    ["uuid", /inspect\(\)/, [7]],
    ["uuid", /inspect\(\)/, [undefined]],
    ["now", /^now: /, ["a", { now: "yes" }]],
    ["soon", /^soon: /, ["a", { soon: true }]],
  ])("forceUnlock: %s: %s, of %j", async (option, message, given) => {
    const mutex = scene.host().mutex(scene.name);
    const forceUnlock = mutex.forceUnlock.bind(mutex) as (...given: readonly unknown[]) => Promise<boolean>;
    const refused = { code: "LOCK_CONFIG", option, message: expect.stringMatching(message) };
    await expect(forceUnlock(...given)).rejects.toMatchObject(refused);
    expect(scene.proxy.count()).toBe(0);
  });

  test.each<readonly [Record<string, unknown>, string]>([
    [{ prefix: 7 }, "prefix"],
    [{ includeFree: 1 }, "includeFree"],
    [{ signal: {} }, "signal"],
    [{ prefixes: "a" }, "prefixes"],
  ])("list: %p", (options, option) => {
    expect(() => scene.host().list(options)).toThrow(expect.objectContaining({ code: "LOCK_CONFIG", option }));
  });
});
