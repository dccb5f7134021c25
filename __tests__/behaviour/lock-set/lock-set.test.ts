import { describe, expect, test } from "@jest/globals";
import { type Lock, type LockAllOptions, type LockSet, LockTable } from "../../../lib/index.js";
import { mutexSettings } from "../../../lib/options/mutex.js";
import { lockAll } from "../../../lib/sets/lock-all.js";
import { hear } from "../../support/diagnostics.js";
import { eventually, turn } from "../../support/eventually.js";
import { deferred } from "../../support/fault-proxy/deferred.js";
import {
  createGate,
  duplicate,
  error,
  hang,
  resetAfter,
  resetBefore,
  status500,
  throttle,
  transactionConflict,
} from "../../support/fault-proxy.js";
import { ManualTime } from "../../support/manual-time.js";
import { hosts, MemoryHost } from "../../support/memory-host.js";
import { rowOf, useScene } from "../../support/scene.js";
import { afterSleeps, sleptThrough, timedOut } from "../../support/settled.js";

const scene = useScene();

const TTL_MS = 30_000;

/** A host on a time that the test moves, and three names of the test's own. */
function oneHost(tag = "a", time = new ManualTime()) {
  const locks = scene.host({ tag, clock: time.clock(), ttlMs: TTL_MS });
  const names = ["x", "y", "z"].map((letter) => `${scene.name}-${letter}`) as [string, string, string];
  return { time, locks, names };
}

const rows = (names: readonly string[]) => Promise.all(names.map((name) => scene.row(name)));
const uuids = async (names: readonly string[]) => (await rows(names)).map((row) => row?.uuid);
const isDelete = ({ operation }: { readonly operation: string }) => operation === "DeleteItem";
const own = (set: LockSet) => [...set.locks.values()].map(({ uuid }) => uuid);

describe("several locks that nobody else wants", () => {
  test("are one transaction and a delete for each, and are what other locks are", async () => {
    const { locks, names } = oneHost();
    const set = await locks.lockAll(names, { data: { job: "transfer" } });
    expect(scene.proxy.counts()).toEqual({ TransactWriteItems: 1 });
    expect(set.names).toEqual(names);
    expect([...set.locks.keys()]).toEqual(names);
    expect(new Set(own(set)).size).toBe(3);
    expect(await rows(names)).toMatchObject(
      own(set).map((uuid) => ({ uuid, ttlMs: TTL_MS, data: { job: "transfer" } })),
    );
    expect([set.held, set.signal.aborted, set.remainingMs]).toEqual([true, false, TTL_MS * 0.9]);
    set.assertHeld(1_000);
    await set.unlock();
    await set.unlock();
    expect(scene.proxy.counts()).toEqual({ TransactWriteItems: 1, DeleteItem: 3 });
    expect(await rows(names)).toEqual([undefined, undefined, undefined]);
    expect([set.held, set.signal.aborted, set.remainingMs]).toEqual([false, false, 0]);
    expect(() => set.assertHeld()).toThrow(expect.objectContaining({ code: "LOCK_RELEASED" }));
  });

  test("are renewed, each by itself, and released at the end of a block", async () => {
    const { time, locks, names } = oneHost();
    {
      await using set = await locks.lockAll(names);
      await time.advance(TTL_MS / 2);
      await eventually(() => scene.proxy.count("UpdateItem") === 3);
      await eventually(() => set.remainingMs > TTL_MS / 2);
      await set.extend();
      // Those that are due together may travel together: what each costs tells how many there were.
      const isRenewal = (operation: string): boolean => /^(UpdateItem|BatchExecuteStatement)$/.test(operation);
      expect(scene.proxy.units({ operation: isRenewal }).write).toBe(6);
    }
    expect(await rows(names)).toEqual([undefined, undefined, undefined]);
  });

  test("keep others out, and one of them may be unlocked alone", async () => {
    const { locks, names } = oneHost();
    const { locks: others } = oneHost("b");
    const set = await locks.lockAll(names);
    for (const name of names) expect(await others.mutex(name).tryLock()).toBeNull();
    for (const name of names) expect(await locks.mutex(name).tryLock()).toBeNull();
    await set.locks.get(names[1])?.unlock();
    expect([set.held, set.signal.aborted]).toEqual([false, false]);
    await (await others.mutex(names[1]).tryLock())?.unlock();
    expect(await others.mutex(names[0]).tryLock()).toBeNull();
    await set.unlock();
    expect(await rows(names)).toEqual([undefined, undefined, undefined]);
  });

  test("a hundred names are no more than three", async () => {
    const { locks } = oneHost();
    const many = Array.from({ length: 100 }, (_, index) => `${scene.name}-${index}`);
    const set = await locks.lockAll(many);
    expect([set.held, set.locks.size, scene.proxy.count("TransactWriteItems")]).toEqual([true, 100, 1]);
    await set.unlock();
    expect(scene.proxy.count("DeleteItem")).toBe(100);
  });

  test("whose rows remember something keep it, and cost one transaction more for a process that did not know", async () => {
    const { locks, names } = oneHost();
    await locks.mutex(names[0]).tryRun(() => 1, { once: 7 });
    const { locks: others } = oneHost("b");
    scene.proxy.reset();
    await (await others.lockAll(names)).unlock();
    expect(scene.proxy.counts()).toEqual({ TransactWriteItems: 2, UpdateItem: 1, DeleteItem: 2 });
    expect(await scene.row(names[0])).toMatchObject({ tick: 7, expires: 0 });
    expect(await scene.row(names[0])).not.toHaveProperty("purge");
  });

  test("may stay taken for a while, each of them", async () => {
    const { time, locks, names } = oneHost();
    await (await locks.lockAll(names, { holdAtLeastMs: 5_000 })).unlock();
    expect(await rows(names)).toMatchObject(names.map(() => ({ expires: time.now + 5_000 })));
    expect(await uuids(names)).toEqual([undefined, undefined, undefined]);
  });
});

describe("several locks of which one is held", () => {
  test("wait holding nothing, at one read a poll, however many they are, and have all of them when it is free", async () => {
    const { time, locks, names } = oneHost();
    const { locks: others } = oneHost("b", time);
    const other = await others.mutex(names[1]).lock();
    scene.proxy.reset();
    const taking = locks.lockAll(names);
    await time.sleepUntil(() => scene.proxy.count({ client: "a", operation: "GetItem" }) === 20);
    expect(await uuids(names)).toEqual([undefined, other.uuid, undefined]);
    // Once more than the reads: a holder that stays is told once that somebody waits.
    expect(
      scene.proxy
        .select({ client: "a" })
        .map(({ operation }) => operation)
        .sort(),
    ).toEqual([...Array(20).fill("GetItem"), "TransactWriteItems", "UpdateItem"]);
    await other.unlock();
    const set = await afterSleeps(time, taking);
    expect(await uuids(names)).toEqual(own(set));
    expect(scene.proxy.count({ client: "a", operation: "TransactWriteItems" })).toBe(2);
    await set.unlock();
  });

  test("a holder that died is succeeded when its lease is over", async () => {
    const { time, locks, names } = oneHost();
    await scene.put(rowOf({ expires: time.now + TTL_MS, ttlMs: TTL_MS }), names[2]);
    const startedAt = time.now;
    const taking = locks.lockAll(names);
    await sleptThrough(time, taking);
    expect(time.now - startedAt).toBeLessThanOrEqual(TTL_MS + 1);
    await (await taking).unlock();
  });

  test("waitMs ends the wait, and 0 does not wait: the error names the holder of one", async () => {
    const { time, locks, names } = oneHost();
    await scene.put(rowOf({ expires: time.now + TTL_MS, owner: "elsewhere#1" }), names[1]);
    const refused = {
      code: "LOCK_TIMEOUT",
      lockName: names.join(", "),
      holder: { name: names[1], owner: "elsewhere#1" },
    };
    await expect(locks.lockAll(names, { waitMs: 0 })).rejects.toMatchObject(refused);
    expect(scene.proxy.counts()).toEqual({ TransactWriteItems: 1 });
    const waiting = locks.lockAll(names, { waitMs: 1_000 });
    waiting.catch(() => undefined);
    await time.nextSleep();
    await timedOut(time, waiting);
    await expect(waiting).rejects.toMatchObject({ ...refused, waitedMs: 1_000 });
    expect(await uuids(names)).toEqual([undefined, "somebody-else", undefined]);
  });

  test("a signal ends the wait with its reason, and closing the table does", async () => {
    const { time, locks, names } = oneHost();
    await scene.put(rowOf({ expires: time.now + TTL_MS }), names[1]);
    const reason = new Error("enough");
    const controller = new AbortController();
    const waiting = locks.lockAll(names, { signal: controller.signal });
    await time.nextSleep();
    controller.abort(reason);
    await expect(waiting).rejects.toBe(reason);
    await expect(locks.lockAll(names, { signal: controller.signal })).rejects.toBe(reason);
    const again = locks.lockAll(names);
    again.catch(() => undefined);
    await time.nextSleep();
    await locks.close();
    await expect(again).rejects.toMatchObject({ code: "LOCK_CLOSED" });
    await expect(locks.lockAll(names)).rejects.toMatchObject({ code: "LOCK_CLOSED" });
  });
});

describe("losing one of several locks", () => {
  test("is losing the set: its signal aborts with that loss, which is what unlock and the block's end throw", async () => {
    const { locks, names } = oneHost();
    const set = await locks.lockAll(names);
    await scene.remove(names[1]);
    await expect(set.extend()).rejects.toMatchObject({ code: "LOCK_LOST", reason: "deleted", lockName: names[1] });
    expect([set.held, set.signal.aborted, set.remainingMs]).toEqual([false, true, 0]);
    expect(() => set.assertHeld()).toThrow(set.signal.reason);
    expect(set.locks.get(names[0])?.held).toBe(true);
    await expect(set.unlock()).rejects.toBe(set.signal.reason);
    await expect(set[Symbol.asyncDispose]()).rejects.toBe(set.signal.reason);
    // The others are released all the same.
    expect(await rows(names)).toEqual([undefined, undefined, undefined]);
  });

  test("while another is being renewed: extend() throws that loss, although each was renewed", async () => {
    const { one, other } = hosts();
    const late = deferred<void>();
    const set = await one.lockAll(["a", "b"]);
    const a = set.locks.get("a") as Lock;
    one.fate = (message) => (message.kind === "write" && message.write.at.name === "b" ? late.promise : "answered");
    const extending = set.extend();
    await turn();
    await other.mutex("a").forceUnlock(a.uuid);
    await expect(a.extend()).rejects.toMatchObject({ code: "LOCK_LOST", lockName: "a" });
    late.resolve();
    await expect(extending).rejects.toBe(set.signal.reason);
    await expect(set.unlock()).rejects.toBe(set.signal.reason);
  });

  test("trap 5: a release that fails does not keep the others from theirs", async () => {
    const { time, locks, names } = oneHost();
    const failed = hear("dynamutex:release-failed");
    const set = await locks.lockAll(names);
    scene.proxy.on(({ operation, body }) => operation === "DeleteItem" && body.Key?.name?.S === names[0], hang(), {
      times: 100,
    });
    const unlocking = set.unlock();
    await scene.proxy.until(
      (requests) => requests.filter(isDelete).filter(({ status }) => status === 200).length === 2,
    );
    await turn();
    await timedOut(time, unlocking);
    expect(failed.map(({ name }) => name)).toEqual([names[0]]);
    expect(await uuids(names)).toEqual([set.locks.get(names[0])?.uuid, undefined, undefined]);
  });
});

describe("on a network that fails", () => {
  test("if one lock was unlocked by force after a lost reply, the others are released", async () => {
    const { time, locks, names } = oneHost();
    const operator = oneHost("operator").locks;
    const gate = createGate();
    scene.proxy.on("TransactWriteItems", resetAfter(gate.released));
    const locking = locks.lockAll(names, { waitMs: 0 });
    const refused = expect(locking).rejects.toMatchObject({ code: "LOCK_TIMEOUT" });
    await scene.proxy.until(([first]) => first?.table !== undefined);
    const [forced] = await uuids(names);
    expect(await operator.mutex(names[0]).forceUnlock(String(forced))).toBe(true);
    gate.release();
    await sleptThrough(time, refused);
    await scene.proxy.until(
      (requests) => requests.filter((it) => isDelete(it) && it.table?.status === 200).length === 2,
    );
    expect(await uuids(names)).toEqual([undefined, undefined, undefined]);
    expect((await rows(names)).slice(1)).toEqual([undefined, undefined]);
  });

  test.each([
    ["a connection that is cut", resetAfter],
    ["a 500 for what was applied", () => status500({ applied: true })],
  ])("trap 1: a transaction whose reply is lost (%s) is recognised by its own uuids", async (_how, fault) => {
    const { time, locks, names } = oneHost();
    const lost = scene.proxy.on("TransactWriteItems", fault());
    const taking = locks.lockAll(names);
    await lost.done;
    const set = await afterSleeps(time, taking);
    expect(await uuids(names)).toEqual(own(set));
    expect(scene.proxy.counts()).toEqual({ TransactWriteItems: 2 });
    await set.unlock();
    expect(await rows(names)).toEqual([undefined, undefined, undefined]);
  });

  describe("on an engine that answers a transaction as it does a single write", () => {
    const refusal = () => error("ConditionalCheckFailedException", "The conditional request failed");

    test("a lock that is held is waited for, and named", async () => {
      const { time, locks, names } = oneHost();
      const holder = rowOf({ expires: time.now + 60_000, ttlMs: 60_000 });
      await scene.put(holder, names[1]);
      scene.proxy.on("TransactWriteItems", refusal());
      const taking = locks.lockAll(names, { waitMs: 5_000 });
      await expect(afterSleeps(time, taking)).rejects.toMatchObject({
        code: "LOCK_TIMEOUT",
        holder: { uuid: holder.uuid },
      });
      expect(await uuids(names)).toEqual([undefined, holder.uuid, undefined]);
    });

    test("rows that are gone by then are asked for again", async () => {
      const { time, locks, names } = oneHost();
      scene.proxy.on("TransactWriteItems", refusal());
      const taking = locks.lockAll(names, { waitMs: 5_000 });
      const set = await afterSleeps(time, taking);
      expect(await uuids(names)).toEqual(own(set));
      await set.unlock();
    });
  });

  test.each([
    ["a conflict with another transaction", () => transactionConflict({ item: 1 })],
    ["throttling", throttle],
    ["a reset", resetBefore],
  ])("trap 20: %s is tried again, and is no answer", async (_what, fault) => {
    const { time, locks, names } = oneHost();
    scene.proxy.on("TransactWriteItems", fault(), { times: 3 });
    const taking = locks.lockAll(names, { waitMs: 10_000 });
    const set = await afterSleeps(time, taking);
    expect(await uuids(names)).toEqual(own(set));
    expect(scene.proxy.count("TransactWriteItems")).toBe(4);
    await set.unlock();
  });

  test("a late copy while the set is held, and while others hold one of its locks, writes nothing", async () => {
    const { locks, names } = oneHost();
    const copy = duplicate();
    scene.proxy.on("TransactWriteItems", copy);
    const set = await locks.lockAll(names);
    await set.extend();
    const before = await rows(names);
    await copy.deliver();
    expect(await rows(names)).toEqual(before);
    await set.unlock();
    const { locks: others } = oneHost("b");
    const other = await others.mutex(names[1]).lock();
    await copy.deliver().catch(() => undefined);
    expect(await uuids(names)).toEqual([undefined, other.uuid, undefined]);
    await other.unlock();
  });

  test("trap 17: a transaction that lands after the wait was given up is taken back, all of it", async () => {
    const { time, locks, names } = oneHost();
    const hold = scene.proxy.hold("TransactWriteItems");
    const controller = new AbortController();
    const taking = locks.lockAll(names, { signal: controller.signal });
    taking.catch(() => undefined);
    await hold.arrived;
    controller.abort(new Error("enough"));
    await expect(taking).rejects.toThrow("enough");
    hold.release();
    await time.sleepUntil(() => scene.proxy.count("DeleteItem") === 3);
    await locks.close();
    expect(await rows(names)).toEqual([undefined, undefined, undefined]);
  });
});

describe("what cannot work", () => {
  const call = (locks: LockTable, names: unknown, options?: object) =>
    locks.lockAll(names as string[], options as LockAllOptions);

  test.each([
    [[], undefined, "locks"],
    ["name", undefined, "locks"],
    [undefined, undefined, "locks"],
    [["a", "b", "a"], undefined, "locks.2"],
    [["a", 7], undefined, "locks.1"],
    [[undefined], undefined, "locks.0"],
    [["a", { name: "b" }], undefined, "locks.1"],
    [Array.from({ length: 101 }, (_, index) => `n${index}`), undefined, "locks"],
    [["a", ""], undefined, "locks.1"],
    [["a", "ä".repeat(1_025)], undefined, "locks.1"],
    [["a"], { fencing: true }, "fencing"],
    [["a"], { fair: true }, "fair"],
    [["a"], { handOverMs: 5 }, "handOverMs"],
    [["a"], { once: 5 }, "once"],
    [["a"], { ttlMs: 99 }, "ttlMs"],
    [["a"], { waitMs: -1 }, "waitMs"],
    [["a"], { data: [] }, "data"],
    [["a"], { ttlMs: 1_000, safetyMarginMs: 1_000 }, "safetyMarginMs"],
  ])("%j with %j is refused before anything is sent", async (names, options, option) => {
    const { locks } = oneHost();
    await expect(call(locks, names, options)).rejects.toMatchObject({ code: "LOCK_CONFIG", option });
    expect(scene.proxy.counts()).toEqual({});
  });
});

describe("mutexes in place of names", () => {
  test("are the locks of these names, mixed with names, and in their order", async () => {
    const { locks, names } = oneHost();
    const [x, y, z] = names;
    await using set = await locks.lockAll([locks.mutex(z), x, locks.mutex(y)]);
    expect(set.names).toEqual([z, x, y]);
    expect(scene.proxy.counts()).toEqual({ TransactWriteItems: 1 });
    expect(await uuids(set.names)).toEqual(own(set));
  });

  test("bring along how their locks are kept, and the options of the call go first", async () => {
    const { locks, names } = oneHost();
    const [x, y, z] = names;
    const short = { ttlMs: 10_000, safetyMarginMs: 2_000 };
    const ofMutexes = await locks.lockAll([locks.mutex(x, { ttlMs: 20_000 }), locks.mutex(y, short), z]);
    expect([...ofMutexes.locks.values()].map(({ remainingMs }) => remainingMs)).toEqual([18_000, 8_000, 27_000]);
    await ofMutexes.unlock();
    const ofCall = await locks.lockAll([locks.mutex(y, short), z], { ttlMs: 5_000 });
    expect([...ofCall.locks.values()].map(({ remainingMs }) => remainingMs)).toEqual([4_500, 4_500]);
    await ofCall.unlock();
  });

  test("do not hand a lock out whose own lease is over before the table answers", async () => {
    const time = new ManualTime();
    const host = new MemoryHost(time);
    host.fate = ({ kind }) => (kind === "writeAll" ? "lost" : "answered");
    const settings = (ttlMs: number) => mutexSettings({ ttlMs });
    const members = [
      { name: "a", settings: settings(30_000) },
      { name: "b", settings: settings(1_000) },
    ];
    const taking = lockAll(host.session, members, { waitMs: 9_000 });
    const refused = expect(taking).rejects.toMatchObject({ code: "LOCK_STORE" });
    await time.advance(9_000);
    await refused;
    // After its lease a copy of a claim would be of no use any more: another claim, with other uuids, is made.
    const uuids = host.sent.flatMap((message) => (message.kind === "writeAll" ? message.takes[1]?.uuid : []));
    expect(new Set(uuids).size).toBeGreaterThan(5);
  });

  test.each([
    ["of another table", () => new LockTable({ tableName: "others" }).mutex("b")],
    ["that is a semaphore", () => new LockTable({ tableName: "others" }).semaphore("b", { permits: 1 })],
    ["that is a Promise", () => Promise.resolve("b")],
  ])("one %s is refused", async (_, other) => {
    const { locks } = oneHost();
    const refused = locks.lockAll(["a", other() as never]);
    await expect(refused).rejects.toThrow(/^locks\.1: must be a name, or a mutex of this LockTable \(got /);
  });

  test("one with tokens is refused, and the same lock twice", async () => {
    const { locks } = oneHost();
    const fenced = locks.mutex("b", { fencing: true });
    await expect(locks.lockAll(["a", fenced])).rejects.toThrow(
      /^locks\.1: must not be a mutex with fencing.* \(got "b"\)/,
    );
    await expect(locks.lockAll(["a", locks.mutex("a")])).rejects.toThrow(/^locks\.1: must not be there twice/);
    expect(scene.proxy.counts()).toEqual({});
  });
});

test("a set is not handed out after the lease of one of its locks, which waited for the renewal of another", async () => {
  const time = new ManualTime();
  const host = new MemoryHost(time);
  const [taken, reissued] = [time.clock().sleep(1_200), time.clock().sleep(3_300)];
  let isSlow = true;
  host.hold = ({ kind }) => (isSlow && kind === "writeAll" ? taken : undefined);
  host.fate = (message) => {
    if (!isSlow || message.kind !== "write" || message.write.at.name !== "b") return "answered";
    if (message.write.kind === "renew") return "lost";
    return message.write.kind === "reissue" ? reissued : "answered";
  };
  void reissued.then(() => {
    isSlow = false;
  });
  const locking = host.lockAll(["a", "b"], { ttlMs: 2_000 });
  await time.settle(locking, { withinMs: 60_000 });
  const set = await locking;
  expect(host.told()).toContain("reissue lock");
  expect([set.held, set.signal.aborted]).toEqual([true, false]);
  await set.unlock();
});

test("a set that arrives when its caller has gone leaves no row, though its process has taken some of them over", async () => {
  const { time, one, other } = hosts();
  const late = deferred<void>();
  one.fate = ({ kind }) => (kind === "writeAll" ? late.promise : "answered");
  const gone = one.lockAll(["a", "b", "c"], { ttlMs: 300_000, waitMs: 100 });
  const ended = expect(gone).rejects.toMatchObject({ code: "LOCK_STORE" });
  await time.advance(3_500);
  await ended;
  late.resolve();
  await turn();
  expect(one.row("c")).toBeDefined();
  one.fate = () => "answered";
  const locking = one.lockAll(["a", "b"]);
  await time.settle(locking);
  await (await locking).unlock();
  await time.advance(10_000);
  const lock = await other.mutex("c").tryLock();
  expect(lock?.held).toBe(true);
});
