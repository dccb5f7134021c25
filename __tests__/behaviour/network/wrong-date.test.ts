import { describe, expect, test } from "@jest/globals";
import type { MutexOptions } from "../../../lib/index.js";
import { hear } from "../../support/diagnostics.js";
import { dateHeader } from "../../support/fault-proxy.js";
import { ManualTime } from "../../support/manual-time.js";
import { useScene } from "../../support/scene.js";
import { sleptThrough } from "../../support/settled.js";

// The table has many servers. The clock of one of them is wrong.
const scene = useScene();

const TTL_MS = 30_000;
const MINUTE_MS = 60_000;

/** By how much a stamp may be later than the lease that it stands for, while no reply contradicts another. */
const DOUBT_MS = 2_000;

const FOREVER = { times: Number.POSITIVE_INFINITY };

function world() {
  const time = new ManualTime();
  scene.proxy.rewriteDate(time.dateHeader);
  const host = (tag: string, options: MutexOptions = {}) =>
    scene.host({ clock: time.tableClock(), tag }).mutex(scene.name, options);
  const wrong = (byMs: number) => dateHeader(() => new Date(time.now + byMs).toUTCString());
  /** Lets a host hear of the time for so long that it counts as confirmed. */
  const confirm = async (mutex: ReturnType<typeof host>): Promise<void> => {
    await mutex.inspect();
    await time.advance(MINUTE_MS + 1_000);
    await mutex.inspect();
  };
  return { time, host, wrong, confirm };
}

async function expires(): Promise<number> {
  return ((await scene.row()) as { expires: number }).expires;
}

describe("trap 32: a contender whose reply shows a time that is a minute ahead", () => {
  test("does not take a lock that is held", async () => {
    const { host, wrong } = world();
    const heard = hear("dynamutex:clock");
    const contender = host("contender");
    const lock = await host("holder").lock();
    expect(await contender.tryLock()).toBeNull();
    scene.proxy.on({ client: "contender" }, wrong(MINUTE_MS));
    expect(await contender.tryLock()).toBeNull();
    expect(await contender.tryLock()).toBeNull();
    expect(await scene.row()).toMatchObject({ uuid: lock.uuid });
    expect(heard.map(({ event }) => event)).toEqual(["contradicted"]);
    await lock.unlock();
  });

  test("takes over by watching meanwhile, and by the time again after the next right reply", async () => {
    const { time, host, wrong, confirm } = world();
    const contender = host("contender");
    await confirm(contender);
    scene.proxy.on({ client: "contender" }, wrong(MINUTE_MS));
    await contender.inspect();
    await host("dead").lock();
    scene.proxy.partition("dead");
    const startedAt = time.elapsed;
    const all = scene.proxy.on({ client: "contender" }, wrong(MINUTE_MS), FOREVER);
    all.done.catch(() => undefined);
    const locking = contender.lock();
    await sleptThrough(time, locking);
    const waitedMs = time.elapsed - startedAt;
    expect(waitedMs).toBeGreaterThanOrEqual(TTL_MS - DOUBT_MS);
    expect(waitedMs).toBeLessThanOrEqual(TTL_MS + DOUBT_MS);
    all.remove();
    await (await locking).unlock();

    await host("other-dead").lock();
    scene.proxy.partition("other-dead");
    await contender.inspect();
    await time.advance(TTL_MS + DOUBT_MS + 1_000);
    // The first look at this row is the last: it is over by the time.
    await (await contender.tryLock())?.unlock();
    expect(await scene.row()).toBeUndefined();
  });
});

describe("trap 32: a holder whose reply shows a time that is a minute ahead", () => {
  test("keeps its lock, and renews it at once with a stamp that is late enough by either time", async () => {
    const { time, host, wrong } = world();
    const lock = await host("holder").lock();
    scene.proxy.on({ client: "holder", operation: "UpdateItem" }, wrong(MINUTE_MS));
    await time.advance(TTL_MS / 2);
    await scene.quiet();
    expect(scene.proxy.count("UpdateItem")).toBe(1);
    expect(lock.held).toBe(true);
    const before = await expires();
    await time.advance(100);
    await scene.quiet();
    expect(scene.proxy.count("UpdateItem")).toBe(2);
    expect(lock.held).toBe(true);
    expect(lock.remainingMs).toBeGreaterThan(TTL_MS / 2);
    expect(await expires()).toBeGreaterThanOrEqual(before + MINUTE_MS - DOUBT_MS);
    await lock.unlock();
  });

  test("by the reply to its take: gets a lock that was renewed before it was handed out", async () => {
    const { time, host, wrong } = world();
    const mutex = host("holder");
    await (await mutex.lock()).unlock();
    scene.proxy.reset();
    scene.proxy.on({ client: "holder", operation: "PutItem" }, wrong(MINUTE_MS));
    const lock = await mutex.lock();
    expect(scene.proxy.counts()).toEqual({ PutItem: 1, UpdateItem: 1 });
    expect(lock.remainingMs).toBeGreaterThan(TTL_MS / 2);
    expect(await expires()).toBeGreaterThanOrEqual(time.now + MINUTE_MS + TTL_MS);
    await lock.unlock();
  });
});

describe("trap 32: a reply that shows a time that is a minute behind", () => {
  test("makes no stamp too early: nobody takes the lock beside its holder", async () => {
    const { time, host, wrong } = world();
    const contender = host("contender");
    const mutex = host("holder");
    await (await mutex.lock()).unlock();
    for (const operation of ["PutItem", "UpdateItem"]) {
      scene.proxy.on({ client: "holder", operation }, wrong(-MINUTE_MS), FOREVER).done.catch(() => undefined);
    }
    await mutex.inspect();
    const lock = await mutex.lock();
    for (let renewals = 0; renewals < 3; renewals += 1) {
      expect(await expires()).toBeGreaterThanOrEqual(time.now + TTL_MS);
      expect(await contender.tryLock()).toBeNull();
      await lock.extend();
    }
    expect(lock.held).toBe(true);
    await lock.unlock();
  });
});
