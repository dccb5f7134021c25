import { describe, expect, test } from "@jest/globals";
import { type Lock, LockError, LockStoreError } from "../../lib/index.js";
import { hear } from "../support/diagnostics.js";
import { turn, watch } from "../support/eventually.js";
import { createGate } from "../support/fault-proxy/gate.js";
import { error, type Fault, hangAfter, type RecordedRequest, resetAfter, throttle } from "../support/fault-proxy.js";
import { ManualTime } from "../support/manual-time.js";
import { hosts } from "../support/memory-host.js";
import type { Message } from "../support/message.js";
import { useScene } from "../support/scene.js";

const scene = useScene();

const TTL_MS = 30_000;
const LEASE_MS = 27_000;

async function held(time: ManualTime, data?: Record<string, unknown>): Promise<Lock> {
  return await scene
    .host({ clock: time.clock() })
    .mutex(scene.name)
    .lock(data && { data });
}

function carriesData({ operation, body }: RecordedRequest): boolean {
  return operation === "UpdateItem" && JSON.stringify(body.UpdateExpression).includes("#data");
}

describe("lock.data", () => {
  test("is what it was when lock(), tryLock() or lockAll() was called, whatever becomes of it afterwards", async () => {
    const locks = scene.host();
    const data = { job: "report", parts: ["a"] };
    const names = ["a", "b", "c"].map((letter) => `${scene.name}-${letter}`) as [string, string, string];
    const taking = [
      locks.mutex(names[0]).lock({ data }),
      locks.mutex(names[1]).tryLock({ data }),
      locks.lockAll([names[2]], { data }),
    ];
    data.parts.push("b");
    await Promise.all(taking);
    for (const name of names) expect(await scene.row(name)).toMatchObject({ data: { job: "report", parts: ["a"] } });
    data.job = "another";
    expect(((await taking[0]) as Lock).data).toEqual({ job: "report", parts: ["a"] });
  });

  test("replaceData() puts other data in its place, and renews the lease, with one request", async () => {
    const time = new ManualTime();
    const lock = await held(time, { job: "report", done: 0 });
    await time.advance(10_000);
    await lock.replaceData({ ...lock.data, done: 350, parts: new Set(["a"]) });
    expect(lock.data).toEqual({ job: "report", done: 350, parts: new Set(["a"]) });
    expect(lock.remainingMs).toBe(LEASE_MS);
    expect(await scene.row()).toMatchObject({ expires: time.now + TTL_MS, data: { job: "report", done: 350 } });
    expect(scene.proxy.counts()).toEqual({ PutItem: 1, UpdateItem: 1 });
    await lock.unlock();
    expect(lock.data).toEqual({ job: "report", done: 350, parts: new Set(["a"]) });
  });

  test("what the caller does to its object afterwards changes nothing", async () => {
    const time = new ManualTime();
    const lock = await held(time);
    const data = { done: 1, list: [1, { two: 2 }], bytes: new Uint8Array([1, 2]), names: new Set(["a"]) };
    const asItWas = { done: 1, list: [1, { two: 2 }], bytes: new Uint8Array([1, 2]), names: new Set(["a"]) };
    scene.proxy.on("UpdateItem", throttle());
    const replacing = lock.replaceData(data);
    data.done = 2;
    data.list.push(3);
    data.bytes[0] = 9;
    data.names.add("b");
    await time.sleepUntil(() => lock.data !== undefined);
    await replacing;
    expect([lock.data, (await scene.row())?.data]).toEqual([asItWas, asItWas]);
  });

  test.each([
    [undefined, "data"],
    [null, "data"],
    ["text", "data"],
    [7, "data"],
    [{ parts: [{ at: new Date(0) }] }, "data.parts.0.at"],
  ])("%p is refused by its path, and nothing is sent", async (data, option) => {
    const lock = await scene.host().mutex(scene.name).lock();
    expect(lock.data).toBeUndefined();
    await expect(lock.replaceData(data as never)).rejects.toMatchObject({ code: "LOCK_CONFIG", option });
    expect(lock.data).toBeUndefined();
    await lock.unlock();
    expect(scene.proxy.counts()).toEqual({ GetItem: 1, PutItem: 1, DeleteItem: 1 });
  });
});

describe("replaceData() beside other writes of its row", () => {
  test("is not lost by joining a renewal that is under way", async () => {
    const time = new ManualTime();
    const lock = await held(time);
    const hold = scene.proxy.hold("UpdateItem");
    await time.advance(TTL_MS / 2);
    await hold.arrived;
    const replacing = lock.replaceData({ done: 1 });
    const watched = watch(replacing);
    await time.advance(1_000);
    expect([watched.settled, scene.proxy.count("UpdateItem")]).toEqual([false, 1]);
    hold.release();
    await replacing;
    expect(scene.proxy.select("UpdateItem").map(carriesData)).toEqual([false, true]);
    expect(await scene.row()).toMatchObject({ data: { done: 1 }, expires: lock.expires.getTime() });
    await lock.unlock();
  });

  test("several at once are written one after the other, as they were asked for", async () => {
    const lock = await scene.host().mutex(scene.name).lock();
    const seen: unknown[] = [];
    const replacing = [1, 2, 3, 4].map(async (done) => {
      await lock.replaceData({ done });
      seen.push((lock.data as { done: number }).done);
    });
    await Promise.all(replacing);
    expect(seen).toEqual([1, 2, 3, 4]);
    expect(await scene.row()).toMatchObject({ data: { done: 4 } });
    expect(scene.proxy.count("UpdateItem")).toBe(4);
    await lock.unlock();
  });

  test("unlock() waits for none: one that is under way rejects, and so do those that have not begun", async () => {
    const lock = await scene.host().mutex(scene.name).lock();
    const hold = scene.proxy.hold("UpdateItem", { at: "reply" });
    const refused = (done: number) =>
      expect(lock.replaceData({ done })).rejects.toMatchObject({ code: "LOCK_RELEASED" });
    const first = refused(1);
    await hold.arrived;
    const second = refused(2);
    await lock.unlock();
    expect(scene.proxy.count("DeleteItem")).toBe(1);
    hold.release();
    await Promise.all([first, second, refused(3)]);
    expect(scene.proxy.counts()).toEqual({ GetItem: 1, PutItem: 1, UpdateItem: 1, DeleteItem: 1 });
    expect(await scene.row()).toBeUndefined();
  });

  test("a lease whose row has data is not passed on to the next section of the process, but released", async () => {
    const mutex = scene.host().mutex(scene.name);
    const first = await mutex.lock();
    const next = mutex.lock();
    await first.replaceData({ done: 1 });
    await first.unlock();
    const second = await next;
    expect([second.uuid === first.uuid, second.data, first.data]).toEqual([false, undefined, { done: 1 }]);
    expect((await scene.row())?.data).toBeUndefined();
    await second.unlock();
  });
});

describe("replaceData() on a bad network", () => {
  test("a reply that is lost is recognised by the stamp that went with it", async () => {
    const time = new ManualTime();
    const lock = await held(time, { done: 0 });
    scene.proxy.on("UpdateItem", resetAfter());
    const replacing = lock.replaceData({ done: 1 });
    await time.sleepUntil(() => scene.proxy.count("UpdateItem") === 2);
    await replacing;
    expect([lock.data, lock.held]).toEqual([{ done: 1 }, true]);
    expect(await scene.row()).toMatchObject({ data: { done: 1 }, expires: lock.expires.getTime() });
    await lock.unlock();
  });

  test("a renewal that has waited for it does not follow once the lock is unlocked", async () => {
    const lock = await scene.host().mutex(scene.name).lock();
    const gate = createGate();
    const refusal = error("ValidationException", "not these data");
    const apply: Fault["apply"] = async (exchange) => {
      await gate.released;
      await refusal.apply(exchange);
    };
    scene.proxy.on("UpdateItem", { kind: "refusal", apply });
    const replacing = expect(lock.replaceData({ done: 1 })).rejects.toThrow(LockError);
    await scene.proxy.until((requests) => requests.some(({ operation }) => operation === "UpdateItem"));
    const extending = expect(lock.extend()).rejects.toThrow(LockError);
    const unlocking = lock.unlock();
    gate.release();
    await Promise.all([replacing, extending, unlocking]);
    expect(scene.proxy.counts()).toEqual({ GetItem: 1, PutItem: 1, UpdateItem: 1, DeleteItem: 1 });
  });

  test("a table that does not answer ends it in the middle of the lease, whose other half is for renewals", async () => {
    const time = new ManualTime();
    const lock = await held(time, { done: 0 });
    const silence = scene.proxy.on("UpdateItem", hangAfter(), { times: Number.POSITIVE_INFINITY });
    const replacing = lock.replaceData({ done: 1 });
    const watched = watch(replacing);
    await scene.play(time, () => watched.settled, 250);
    expect(time.elapsed).toBe(LEASE_MS / 2);
    await expect(replacing).rejects.toMatchObject({ code: "LOCK_STORE", transient: true });
    expect(lock.data).toEqual({ done: 0 });
    silence.remove();
    await scene.play(time, () => time.elapsed >= 2 * TTL_MS, 250);
    expect(lock.held).toBe(true);
    await lock.unlock();
  });
});

describe("data that the table refuses for good", () => {
  const refusal = () => new LockStoreError("Type mismatch for Index Key data", { answered: true });
  const writesData = (message: Message): boolean =>
    message.kind === "write" && message.write.kind === "renew" && message.write.data !== undefined;

  test("are refused at once, and the lock is kept", async () => {
    const time = new ManualTime();
    const lock = await held(time, { done: 0 });
    const message = "One or more parameter values were invalid: Type mismatch for Index Key data Expected: S Actual: M";
    scene.proxy.on("UpdateItem", error("ValidationException", message));
    await expect(lock.replaceData({ done: 1 })).rejects.toMatchObject({ code: "LOCK_STORE", transient: false });
    expect(scene.proxy.count("UpdateItem")).toBe(1);
    expect(lock.data).toEqual({ done: 0 });
    await scene.play(time, () => time.elapsed >= 2 * TTL_MS, 500);
    expect(lock.held).toBe(true);
    await lock.unlock();
  });

  test("cost one request for each call, and neither a renewal nor an extend() that comes meanwhile", async () => {
    const { time, one } = hosts();
    const failures = hear("dynamutex:renewal-failed");
    const lock = await one.mutex("refused", { ttlMs: TTL_MS }).lock();
    const arrival = createGate();
    one.fate = (message) => (writesData(message) ? arrival.released.then(() => Promise.reject(refusal())) : "answered");
    one.told();
    const replacing = lock.replaceData({ done: 1 });
    const refused = expect(replacing).rejects.toMatchObject({ code: "LOCK_STORE", transient: false });
    await turn();
    const extending = lock.extend();
    arrival.release();
    await Promise.all([refused, extending]);
    expect(one.told()).toEqual(["renew lock", "renew lock"]);
    expect(failures).toHaveLength(1);
    await time.advance(3 * TTL_MS);
    expect(lock.held).toBe(true);
    await lock.unlock();
  });

  test("as far as this can be told only by silence, do not end the lease, however many calls there are", async () => {
    const { time, one } = hosts();
    const lock = await one.mutex("silent", { ttlMs: TTL_MS }).lock();
    one.fate = (message) => (writesData(message) ? "lost" : "answered");
    const calls = [1, 2, 3, 4].map((done) => lock.replaceData({ done }).catch((error: unknown) => error));
    await time.settle(Promise.all(calls), { stepMs: 100, withinMs: 5 * TTL_MS });
    for (const outcome of await Promise.all(calls))
      expect(outcome).toMatchObject({ code: "LOCK_STORE", transient: true });
    await time.advance(2 * TTL_MS);
    expect(lock.held).toBe(true);
    await lock.unlock();
  });
});
