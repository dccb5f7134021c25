import { describe, expect, test } from "@jest/globals";
import { type Lock, LockLostError } from "../../../lib/index.js";
import { hear, useWarnings } from "../../support/diagnostics.js";
import { eventually, watch } from "../../support/eventually.js";
import { error, hang, resetBefore, status500 } from "../../support/fault-proxy.js";
import { ManualTime } from "../../support/manual-time.js";
import { rowOf, useScene } from "../../support/scene.js";
import { afterSleeps } from "../../support/settled.js";

const scene = useScene();
const warnings = useWarnings();

const TTL_MS = 30_000;
const LEASE_MS = 27_000;
const FOREVER = { times: Number.POSITIVE_INFINITY };

test("unlock twice, at once or one after the other, is one release, and so is a disposal after that", async () => {
  const { lock } = await scene.locked();
  await Promise.all([lock.unlock(), lock.unlock()]);
  await lock.unlock();
  await lock[Symbol.asyncDispose]();
  expect(scene.proxy.counts()).toEqual({ PutItem: 1, DeleteItem: 1 });
});

describe("trap 9: an unlock is conditional", () => {
  test("a row that somebody else has taken is left alone, and the caller hears that the lock was stolen", async () => {
    const { lock } = await scene.locked();
    const theirs = rowOf();
    await scene.put(theirs);
    await expect(lock.unlock()).rejects.toMatchObject({ code: "LOCK_LOST", reason: "stolen" });
    expect(await scene.row()).toMatchObject(theirs);
    expect([lock.held, lock.signal.aborted]).toEqual([false, true]);
    await expect(lock.unlock()).rejects.toBe(lock.signal.reason);
    expect(scene.proxy.counts()).toEqual({ PutItem: 1, DeleteItem: 1 });
  });

  test("a section that ends just before its deadline has not lost its lock, even if the release finds another's row", async () => {
    const { time, lock } = await scene.locked({ autoRenew: false });
    await time.advance(LEASE_MS - 1);
    const hold = scene.proxy.hold("DeleteItem");
    const unlocking = lock.unlock();
    await hold.arrived;
    await time.advance(2_000);
    await scene.put(rowOf());
    hold.release();
    await unlocking;
    expect(await scene.row()).toMatchObject({ uuid: "somebody-else" });
  });
});

describe("trap 4: a release while a renewal is in flight", () => {
  test("does not wait for it: it is refused when it arrives, and the row is gone in the end", async () => {
    const { time, lock } = await scene.locked();
    const hold = scene.proxy.hold("UpdateItem");
    await time.advance(TTL_MS / 2);
    await hold.arrived;
    await lock.unlock();
    hold.release();
    await hold.held[0]?.settled;
    await eventually(() => time.timers === 0);
    // The refusal shows no row, so the row is read.
    expect(scene.proxy.counts()).toEqual({ PutItem: 1, UpdateItem: 1, DeleteItem: 1, GetItem: 1 });
    expect(scene.proxy.requests.find(({ operation }) => operation === "UpdateItem")?.status).toBe(400);
    expect(await scene.row()).toBeUndefined();
  });

  test("one that fails is not tried again", async () => {
    const { time, lock } = await scene.locked();
    const hold = scene.proxy.hold("UpdateItem", { at: "reply" });
    await time.advance(TTL_MS / 2);
    await hold.arrived;
    await lock.unlock();
    scene.proxy.partition(undefined, "reset");
    hold.release();
    await hold.held[0]?.settled;
    scene.proxy.heal();
    await eventually(() => time.timers === 0);
    expect(scene.proxy.counts()).toEqual({ PutItem: 1, UpdateItem: 1, DeleteItem: 1 });
    expect(await scene.row()).toBeUndefined();
  });

  test("one that hangs holds nothing up", async () => {
    const { time, lock } = await scene.locked();
    const hung = scene.proxy.on("UpdateItem", hang());
    await time.advance(TTL_MS / 2);
    await hung.done;
    const { elapsed } = time;
    await lock.unlock();
    expect(time.elapsed).toBe(elapsed);
    expect(scene.proxy.counts()).toEqual({ PutItem: 1, UpdateItem: 1, DeleteItem: 1 });
    expect(await scene.row()).toBeUndefined();
  });

  test("one that waits for its next attempt is called off at once", async () => {
    const { time, lock } = await scene.locked();
    const failed = scene.proxy.on("UpdateItem", resetBefore());
    const sleeping = time.nextSleep();
    await time.advance(TTL_MS / 2);
    await failed.done;
    await sleeping;
    const elapsed = time.elapsed;
    await lock.unlock();
    expect(time.elapsed).toBe(elapsed);
    expect(scene.proxy.counts()).toEqual({ PutItem: 1, UpdateItem: 1, DeleteItem: 1 });
    expect(time.timers).toBe(0);
  });

  test("an extend() that it calls off says that the lock has been unlocked", async () => {
    const { time, lock } = await scene.locked();
    scene.proxy.on("UpdateItem", resetBefore());
    const sleeping = time.nextSleep();
    const extending = lock.extend();
    await sleeping;
    const [extended] = await Promise.allSettled([extending, lock.unlock()]);
    expect(extended).toMatchObject({ status: "rejected", reason: { code: "LOCK_RELEASED" } });
    expect(scene.proxy.counts()).toEqual({ PutItem: 1, UpdateItem: 1, DeleteItem: 1 });
  });

  test("of a row that another has taken makes unlock() reject, before the renewal is answered", async () => {
    const { time, lock } = await scene.locked();
    const hold = scene.proxy.hold("UpdateItem");
    await time.advance(TTL_MS / 2);
    await hold.arrived;
    await scene.put(rowOf());
    await expect(lock.unlock()).rejects.toMatchObject({ reason: "stolen" });
    hold.release();
    await hold.held[0]?.settled;
    expect(await scene.row()).toMatchObject({ uuid: "somebody-else" });
  });
});

describe("a release that the network prevents", () => {
  test("is given up after releaseWithinMs, told on the channel and not thrown; the lease ends by itself", async () => {
    const failures = hear("dynamutex:release-failed");
    const { time, mutex, lock } = await scene.locked({ releaseWithinMs: 2_000 });
    scene.proxy.on("DeleteItem", hang(), FOREVER);
    const unlocking = lock.unlock();
    const watched = watch(unlocking);
    await scene.proxy.until((requests) => requests.some(({ operation }) => operation === "DeleteItem"));
    await time.advance(1_999);
    expect(watched.settled).toBe(false);
    await time.advance(1);
    await unlocking;
    expect(time.elapsed).toBe(2_000);
    expect(failures).toEqual([{ name: scene.name, uuid: lock.uuid, cause: expect.any(Error) }]);

    const expires = lock.expires.getTime();
    expect(await scene.row()).toMatchObject({ uuid: lock.uuid, expires });
    await time.advance(expires - time.now + 1);
    expect(scene.proxy.count("UpdateItem")).toBe(0);
    const next = await mutex.tryLock();
    expect(next?.held).toBe(true);
  });

  test("is never tried for longer than the lease has left", async () => {
    const { time, lock } = await scene.locked({ autoRenew: false, releaseWithinMs: 20_000 });
    await time.advance(LEASE_MS - 1_000);
    scene.proxy.on("DeleteItem", status500(), FOREVER);
    const unlocking = watch(lock.unlock());
    await time.sleepUntil(() => unlocking.settled);
    expect(time.elapsed).toBe(TTL_MS);
  });

  test("by a missing permission is tried as long, and then told, as a warning too, and not thrown", async () => {
    const failures = hear("dynamutex:release-failed");
    const { time, lock } = await scene.locked({ releaseWithinMs: 2_000 });
    scene.proxy.on("DeleteItem", error("AccessDeniedException", "User is not authorized"), FOREVER);
    const unlocking = lock.unlock();
    await afterSleeps(time, unlocking);
    expect(time.elapsed).toBe(2_000);
    expect(failures.map(({ cause }) => cause)).toEqual([
      expect.objectContaining({ code: "LOCK_STORE", message: expect.stringContaining("dynamodb:DeleteItem") }),
    ]);
    expect(warnings).toEqual([expect.stringContaining("dynamodb:DeleteItem")]);
    expect(scene.proxy.count("DeleteItem")).toBeGreaterThan(2);
  });
});

describe("close", () => {
  test("trap 5: with 50 locks of which some fail, all sections hear of it, and the others are released", async () => {
    const failures = hear("dynamutex:release-failed");
    const time = new ManualTime();
    const locks = scene.host({ clock: time.clock(), releaseWithinMs: 1_000 });
    const names = Array.from({ length: 50 }, (_, index) => `${scene.name}/${String(index).padStart(2, "0")}`);
    const held = await Promise.all(names.map((name) => locks.mutex(name).lock()));
    const [stolen, deleted, stuck, throttled] = names as [string, string, string, string];
    await scene.put(rowOf(), stolen);
    await scene.remove(deleted);
    scene.proxy.on({ operation: "DeleteItem", where: ({ body }) => body.Key?.name?.S === stuck }, status500(), FOREVER);
    scene.proxy.on({ operation: "DeleteItem", where: ({ body }) => body.Key?.name?.S === throttled }, resetBefore(), {
      times: 2,
    });

    const closing = locks.close();
    const unlocking = Promise.allSettled(held.map((lock) => lock.unlock()));
    const watched = watch(closing);
    await scene.play(time, () => watched.settled);
    await closing;
    const outcomes = await unlocking;
    const lost = outcomes.flatMap((outcome) => (outcome.status === "rejected" ? [outcome.reason] : []));
    expect(lost.every((reason) => reason instanceof LockLostError)).toBe(true);
    expect(lost.map(({ lockName, reason }) => [lockName, reason])).toEqual([
      [stolen, "stolen"],
      [deleted, "deleted"],
    ]);
    expect(failures.map(({ name }) => name)).toEqual([stuck]);
    const rows = await Promise.all(names.map((name) => scene.row(name)));
    expect(names.filter((_, index) => rows[index] !== undefined)).toEqual([stolen, stuck]);
    expect(held.some((lock) => lock.held)).toBe(false);
  });

  test.each([
    { drainMs: -1 },
    { drainMs: 0.5 },
    { drainMs: Number.POSITIVE_INFINITY },
    { drainMs: "5s" },
    { drain: 5 },
  ])("with %j is refused, and the table stays open", async (options) => {
    const locks = scene.host();
    const option = Object.keys(options)[0];
    await expect(locks.close(options as object)).rejects.toMatchObject({ code: "LOCK_CONFIG", option });
    await (await locks.mutex(scene.name).lock()).unlock();
  });
});

describe("run", () => {
  const failure = new Error("the section failed");

  const throwing = (): never => {
    throw failure;
  };

  test.each([
    ["throws", throwing],
    ["rejects", () => Promise.reject(failure)],
  ])("a section that %s: exactly that error, and the lock is released", async (_, section) => {
    const mutex = scene.host().mutex(scene.name);
    await expect(mutex.run(section)).rejects.toBe(failure);
    await expect(mutex.tryRun(section)).rejects.toBe(failure);
    expect(await scene.row()).toBeUndefined();
    expect(scene.proxy.counts()).toEqual({ GetItem: 1, PutItem: 2, DeleteItem: 2 });
  });

  test("a section that fails on a lock that was lost: exactly the section's error", async () => {
    const mutex = scene.host().mutex(scene.name);
    const section = async () => {
      await scene.remove();
      throw failure;
    };
    await expect(mutex.run(section)).rejects.toBe(failure);
    await expect(mutex.tryRun(section)).rejects.toBe(failure);
  });

  test("a section that succeeds on a lock that was lost: the LockLostError", async () => {
    const mutex = scene.host().mutex(scene.name);
    const seen: Lock[] = [];
    const section = async (lock: Lock) => {
      seen.push(lock);
      await scene.remove();
      return "done";
    };
    const outcome = await mutex.run(section).catch((reason: unknown) => reason);
    expect(outcome).toBeInstanceOf(LockLostError);
    expect(outcome).toBe(seen[0]?.signal.reason);
    await expect(mutex.tryRun(section)).rejects.toMatchObject({ code: "LOCK_LOST", reason: "deleted" });
  });

  test("a section that cannot be released is a success all the same", async () => {
    scene.proxy.on("DeleteItem", error("AccessDeniedException", "User is not authorized"), FOREVER);
    const mutex = scene.host().mutex(scene.name, { releaseWithinMs: 100 });
    expect(await mutex.run(() => "done")).toBe("done");
    expect(await scene.row()).toBeDefined();
  });

  test("an unlock inside of the section is fine", async () => {
    await scene
      .host()
      .mutex(scene.name)
      .run((lock) => lock.unlock());
    expect(scene.proxy.counts()).toEqual({ GetItem: 1, PutItem: 1, DeleteItem: 1 });
  });
});
