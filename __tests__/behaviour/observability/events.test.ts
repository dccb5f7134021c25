import { describe, expect, test } from "@jest/globals";
import type { Diagnostics, Lock } from "../../../lib/index.js";
import { hear } from "../../support/diagnostics.js";
import { eventually, turn, watch } from "../../support/eventually.js";
import { hang } from "../../support/fault-proxy.js";
import { ManualTime } from "../../support/manual-time.js";
import { rowOf, useScene } from "../../support/scene.js";
import { timedOut } from "../../support/settled.js";

const scene = useScene();

const TTL_MS = 30_000;

/** The names of a section's events, in the order in which they come, until the test ends. */
function hearSections(): readonly string[] {
  const events: string[] = [];
  for (const event of ["acquired", "lost", "released"] as const) {
    hear(`dynamutex:${event}`, () => events.push(event));
  }
  return events;
}

function host(time: ManualTime, tag = "me") {
  return scene.host({ clock: time.clock(), ttlMs: TTL_MS, tag, owner: tag });
}

describe("the events of a section", () => {
  test("come for each of 32 sections that share one lease, and each ends before the next begins", async () => {
    const acquired = hear("dynamutex:acquired");
    const released = hear("dynamutex:released");
    const events = hearSections();
    const mutex = scene.host({ owner: "me" }).mutex(scene.name);
    await Promise.all(Array.from({ length: 32 }, () => mutex.run(() => turn())));
    expect(scene.proxy.counts()).toEqual({ GetItem: 1, PutItem: 1, DeleteItem: 1 });
    expect(events).toEqual(Array.from({ length: 32 }, () => ["acquired", "released"]).flat());
    expect(acquired.map(({ passedOn }) => passedOn)).toEqual([false, ...Array.from({ length: 31 }, () => true)]);
    const [first] = acquired;
    const message = { name: scene.name, uuid: first?.uuid, owner: "me", takeover: undefined };
    for (const heard of acquired) expect(heard).toMatchObject(message);
    for (const heard of released) expect(heard).toMatchObject({ name: scene.name, uuid: first?.uuid });
  });

  test("say how long its call waited, and how long it held the lock", async () => {
    const acquired = hear("dynamutex:acquired");
    const released = hear("dynamutex:released");
    const asked = hear("dynamutex:asked");
    const time = new ManualTime();
    const mutex = host(time).mutex(scene.name);
    const first = await mutex.lock();
    const waiting = mutex.lock();
    await time.advance(400);
    await first.unlock();
    const second = await waiting;
    await time.advance(250);
    await second.unlock();
    expect(acquired.map(({ waitedMs, passedOn }) => [waitedMs, passedOn])).toEqual([
      [0, false],
      [400, true],
    ]);
    const calls = asked.map(({ call }) => call);
    expect(new Set(calls).size).toBe(2);
    expect(acquired.map(({ call }) => call)).toEqual(calls);
    expect(released).toEqual([
      { name: scene.name, uuid: first.uuid, call: calls[0], heldMs: 400 },
      { name: scene.name, uuid: second.uuid, call: calls[1], heldMs: 250 },
    ]);
  });

  test("name the rule by which the lock was taken over", async () => {
    const acquired = hear("dynamutex:acquired");
    const time = new ManualTime();
    await scene.put(rowOf({ expires: time.now - 1 }));
    await (await host(time).mutex(scene.name).lock()).unlock();
    expect(acquired).toMatchObject([{ takeover: "expired", passedOn: false }]);
  });

  test("tell of a loss once, and of the end when the section has ended", async () => {
    const events = hearSections();
    const [asked, losses] = [hear("dynamutex:asked"), hear("dynamutex:lost")];
    const released = hear("dynamutex:released");
    const time = new ManualTime();
    const lock = await host(time).mutex(scene.name).lock();
    const call = asked[0]?.call;
    await scene.put(rowOf());
    await time.advance(TTL_MS / 2);
    await eventually(() => losses.length > 0);
    expect(events).toEqual(["acquired", "lost"]);
    await time.advance(1_000);
    await expect(lock.unlock()).rejects.toMatchObject({ reason: "stolen" });
    await expect(lock.unlock()).rejects.toMatchObject({ reason: "stolen" });
    expect(events).toEqual(["acquired", "lost", "released"]);
    expect(losses).toEqual([{ name: scene.name, uuid: lock.uuid, call, reason: "stolen", cause: undefined }]);
    expect(released).toEqual([{ name: scene.name, uuid: lock.uuid, call, heldMs: TTL_MS / 2 + 1_000 }]);
  });

  test("tell of a loss that only the release finds before they tell of the end", async () => {
    const events = hearSections();
    const lock = await host(new ManualTime()).mutex(scene.name).lock();
    await scene.put(rowOf());
    await expect(lock.unlock()).rejects.toMatchObject({ reason: "stolen" });
    expect(events).toEqual(["acquired", "lost", "released"]);
  });

  test("do not take an abort of run() for a loss", async () => {
    const losses = hear("dynamutex:lost");
    const locks = host(new ManualTime());
    const other = await locks.mutex(`${scene.name}-other`).lock();
    const section = async (lock: Lock) => {
      await scene.remove(other.name);
      await expect(other.extend()).rejects.toMatchObject({ reason: "deleted" });
      expect([lock.signal.reason, lock.held]).toEqual([other.signal.reason, true]);
    };
    await locks.mutex(scene.name).run(section, { signal: other.signal });
    expect(losses).toMatchObject([{ name: other.name, uuid: other.uuid }]);
  });

  test("do not come for a call that has gone before its lock was there", async () => {
    const events = hearSections();
    const time = new ManualTime();
    const controller = new AbortController();
    const hold = scene.proxy.hold("PutItem", { at: "reply" });
    const locking = host(time).mutex(scene.name).lock({ signal: controller.signal });
    await hold.arrived;
    controller.abort(new Error("enough"));
    await expect(locking).rejects.toThrow("enough");
    hold.release();
    await scene.proxy.until((requests) => requests.some((it) => it.operation === "DeleteItem" && it.status === 200));
    await turn();
    expect(events).toEqual([]);
  });

  test("tell of the end also where the release got no answer", async () => {
    const told: string[] = [];
    hear("dynamutex:release-failed", () => told.push("release-failed"));
    hear("dynamutex:released", () => told.push("released"));
    const time = new ManualTime();
    const lock = await host(time).mutex(scene.name, { releaseWithinMs: 2_000 }).lock();
    scene.proxy.on("DeleteItem", hang(), { times: 100 });
    const unlocking = lock.unlock();
    await timedOut(time, unlocking);
    await unlocking;
    expect(told).toEqual(["release-failed", "released"]);
  });

  test("count the renewals", async () => {
    const renewed = hear("dynamutex:renewed");
    const time = new ManualTime();
    const lock = await host(time).mutex(scene.name).lock();
    for (const count of [1, 2]) {
      await time.advance(TTL_MS / 2);
      await eventually(() => renewed.length === count);
    }
    await lock.extend();
    const message = { name: scene.name, uuid: lock.uuid, remainingMs: TTL_MS * 0.9 };
    expect(renewed).toEqual([message, message, message]);
    expect(scene.proxy.count("UpdateItem")).toBe(3);
    await lock.unlock();
  });
});

describe("a call that ends without the lock tells why", () => {
  const missed = () => hear("dynamutex:missed");
  type Missed = readonly Diagnostics["dynamutex:missed"][];
  const whyOf = (messages: Missed) => messages.map(({ reason, waitedMs, holder }) => [reason, waitedMs, holder?.owner]);

  test("where a try finds it held, by another host or by its own", async () => {
    const heard = missed();
    const time = new ManualTime();
    const lock = await host(time, "holder").mutex(scene.name).lock();
    const mutex = host(time, "other").mutex(scene.name);
    expect(await mutex.tryLock()).toBeNull();
    expect(await mutex.tryRun(() => undefined)).toMatchObject({ ran: false });
    await expect(mutex.lock({ waitMs: 0 })).rejects.toMatchObject({ code: "LOCK_TIMEOUT" });
    expect(whyOf(heard)).toEqual([
      ["held", 0, "holder"],
      ["held", 0, "holder"],
      ["held", 0, "holder"],
    ]);
    expect(heard[0]).toMatchObject({ name: scene.name, holder: { uuid: lock.uuid } });
    await lock.unlock();
    const own = await mutex.lock();
    expect(await mutex.tryLock()).toBeNull();
    expect(whyOf(heard).slice(3)).toEqual([["held", 0, "other"]]);
    await own.unlock();
  });

  test("where a tick is done", async () => {
    const heard = missed();
    const mutex = host(new ManualTime(), "me").mutex(scene.name);
    await mutex.tryRun(() => undefined, { once: 7 });
    await mutex.tryRun(() => undefined, { once: 7 });
    expect(whyOf(heard)).toEqual([["done", 0, "me"]]);
  });

  test.each([false, true])("where its time is over, fair: %s", async (fair) => {
    const heard = missed();
    const time = new ManualTime();
    const lock = await host(time, "holder").mutex(scene.name, { fair }).lock();
    const waiting = host(time, "other").mutex(scene.name, { fair }).lock({ waitMs: 2_000 });
    const watched = watch(waiting);
    await scene.play(time, () => watched.settled, 100);
    await expect(waiting).rejects.toMatchObject({ code: "LOCK_TIMEOUT", waitedMs: 2_000 });
    expect(whyOf(heard)).toEqual([["timeout", 2_000, "holder"]]);
    await lock.unlock();
  });
});
