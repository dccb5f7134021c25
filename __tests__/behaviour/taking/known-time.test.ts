import { describe, expect, test } from "@jest/globals";
import type { Clock, MutexOptions, TryRun } from "../../../lib/index.js";
import { isTimeKnown } from "../../../lib/time/clock.js";
import { tableClockOn } from "../../../lib/time/table-clock.js";
import { hear } from "../../support/diagnostics.js";
import { eventually, watch } from "../../support/eventually.js";
import { duplicate, resetBefore } from "../../support/fault-proxy.js";
import { ManualTime } from "../../support/manual-time.js";
import { untilStanding } from "../../support/queue.js";
import { type HostOptions, useScene } from "../../support/scene.js";
import { afterSleeps } from "../../support/settled.js";

// A process that does not know the table's time reads the row that it is about to take: the reply tells the time.
const scene = useScene();

const TTL_MS = 30_000;
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

/** By how much a stamp may be later than the lease that it stands for: the table's time is known to so much. */
const DOUBT_MS = 2_000;

/** A time that the table's replies show, and hosts whose own clocks are ahead of it. */
function world() {
  const time = new ManualTime();
  scene.proxy.rewriteDate(time.dateHeader);
  const host = (aheadMs: number, tag = "host", options: MutexOptions = {}) =>
    scene.host({ clock: time.tableClock({ aheadMs }), tag }).mutex(scene.name, options);
  /** A host whose clock knows the time only where `isCurrent` says so, too. */
  const hostThatKnows = (isCurrent: () => boolean, tag = "host", options: MutexOptions = {}) => {
    const clock = time.tableClock({ aheadMs: HOUR_MS });
    const doubtful: Clock = { ...clock, isCurrent: () => isCurrent() && isTimeKnown(clock) };
    return scene.host({ clock: doubtful, tag }).mutex(scene.name, options);
  };
  /** A host that knows the time as a call begins, and no longer as its first copy is about to leave, until it has read so often. */
  const hostThatForgets = async (reads: number) => {
    let asked = Number.NEGATIVE_INFINITY;
    const mutex = hostThatKnows(() => {
      asked += 1;
      return asked <= 1 || scene.proxy.count("GetItem") >= reads;
    });
    await (await mutex.lock()).unlock();
    const begin = (): void => {
      scene.proxy.reset();
      asked = 0;
    };
    return { mutex, begin };
  };
  /** A host whose wall clock a test sets while it runs. */
  const hostThatIsSet = () => {
    let aheadMs = 0;
    const { sleep, alarm } = time.clock();
    const its = { monotonic: () => time.elapsed, wall: () => time.now + aheadMs };
    const set = (byMs: number): void => {
      aheadMs = byMs;
    };
    return { mutex: scene.host({ clock: tableClockOn({ time: its, sleep, alarm }) }).mutex(scene.name), set };
  };
  /** Many locks of one process that does not know the time yet, all at once. */
  const lockMany = async (count: number, options: HostOptions = {}) => {
    const locks = scene.host({ clock: time.tableClock({ aheadMs: HOUR_MS }), ...options });
    const names = Array.from({ length: count }, (_, index) => `${scene.name}/${index}`);
    const held = await Promise.all(names.map((name) => locks.mutex(name).lock()));
    expect(held.every((lock) => lock.held)).toBe(true);
    await Promise.all(held.map((lock) => lock.unlock()));
  };
  return { time, host, hostThatKnows, hostThatForgets, hostThatIsSet, lockMany };
}

/** What was sent, in order. */
function operations(client?: string): readonly string[] {
  return scene.proxy.select(client === undefined ? {} : { client }).map(({ operation }) => operation);
}

async function expectGoodStamp(time: ManualTime): Promise<void> {
  const { expires } = (await scene.row()) as { expires: number };
  expect(expires).toBeGreaterThanOrEqual(time.now + TTL_MS);
  expect(expires).toBeLessThanOrEqual(time.now + TTL_MS + DOUBT_MS);
}

describe("trap 23: a new process writes nothing before it knows the table's time", () => {
  test.each([0, 500, -500, -20_000, -HOUR_MS, HOUR_MS])(
    "with a host's clock that is %d ms ahead, its first lock is read, taken and good",
    async (aheadMs) => {
      const { time, host } = world();
      const lock = await host(aheadMs).lock();
      expect(operations()).toEqual(["GetItem", "PutItem"]);
      expect(scene.proxy.select("GetItem")[0]?.body.ConsistentRead).toBe(true);
      const { expires, uuid } = (await scene.row()) as { expires: number; uuid: string };
      expect([expires, uuid]).toEqual([lock.expires.getTime(), lock.uuid]);
      await expectGoodStamp(time);
      expect(Math.abs(lock.acquired.getTime() - time.now)).toBeLessThanOrEqual(DOUBT_MS / 2);
      // Never relied on beyond what is on the row.
      expect(lock.remainingMs).toBeGreaterThanOrEqual(TTL_MS / 2 - 3_000);
      expect(time.now + lock.remainingMs + 3_000).toBeLessThanOrEqual(expires);
      await lock.unlock();
      expect(await scene.row()).toBeUndefined();
    },
  );

  test("it does not take what is held, whatever its own clock says, and sends no write", async () => {
    const { host } = world();
    const lock = await host(0).lock();
    scene.proxy.reset();
    expect(await host(HOUR_MS, "early").tryLock()).toBeNull();
    expect(await host(-HOUR_MS, "late").tryLock()).toBeNull();
    expect(operations()).toEqual(["GetItem", "GetItem"]);
    expect(await scene.row()).toMatchObject({ uuid: lock.uuid });
    await lock.unlock();
  });

  test("it takes what is over by the table's time, by one write", async () => {
    const { time, host } = world();
    await host(0, "dead").lock();
    scene.proxy.partition("dead");
    await time.advance(TTL_MS + 10_000);
    const lock = await host(-HOUR_MS, "late").tryLock();
    expect(lock?.held).toBe(true);
    expect(operations("late")).toEqual(["GetItem", "PutItem"]);
    await lock?.unlock();
  });

  test.each([-1_000, -1_500, -1_999, -2_500])(
    "a Date has whole seconds: with a host's clock %d ms off, the lease is over before anybody can take it",
    async (aheadMs) => {
      const { time, host } = world();
      // Just before the table's second is over, when its Date is the most out of date.
      await time.advance(999);
      // The least margin: it is not what makes up for the stamp.
      const lock = await host(aheadMs, "holder", { safetyMarginMs: 60 }).lock();
      let lostAt = Number.POSITIVE_INFINITY;
      lock.signal.addEventListener("abort", () => {
        lostAt = time.elapsed;
      });
      const { expires } = (await scene.row()) as { expires: number };
      expect(time.now + lock.remainingMs).toBeLessThan(expires);
      expect(lock.remainingMs).toBeLessThan(TTL_MS);

      // A contender that knows the time as well as anybody can.
      const contender = host(0, "contender");
      for (let reply = 0; reply < 5; reply += 1) {
        expect(await contender.tryLock()).toBeNull();
        await time.advance(200);
      }
      scene.proxy.partition("holder");
      const locking = watch(contender.lock());
      await scene.play(time, () => locking.settled, 100);
      expect(lostAt).toBeLessThan(time.elapsed);
    },
  );

  test("its first put, delivered again after the release: nobody waits for the hour that its clock is early", async () => {
    const { time, host } = world();
    const copy = duplicate();
    scene.proxy.on("PutItem", copy);
    const lock = await host(HOUR_MS).lock();
    await lock.unlock();
    expect((await copy.deliver()).status).toBe(200);
    const locking = watch(host(0, "next").lock());
    const since = time.elapsed;
    await time.sleepUntil(() => locking.settled);
    expect(time.elapsed - since).toBeLessThanOrEqual(TTL_MS + DOUBT_MS);
  });

  test("many calls at once share one read", async () => {
    const { lockMany } = world();
    await lockMany(20);
    expect(scene.proxy.counts()).toEqual({ GetItem: 1, PutItem: 20, DeleteItem: 20 });
  });

  test("a read that fails is sent again, and all who share it go on", async () => {
    const { time, lockMany } = world();
    const failures = hear("dynamutex:wait-failed");
    scene.proxy.on("GetItem", resetBefore());
    await afterSleeps(time, lockMany(5));
    expect(new Set(failures.map(({ name }) => name)).size).toBe(5);
    expect(failures).toHaveLength(5);
    expect(operations().lastIndexOf("GetItem")).toBeLessThan(operations().indexOf("PutItem"));
    expect(scene.proxy.count("PutItem")).toBe(5);
  });

  test("a read that never ends holds up nobody for longer than its attempt", async () => {
    const { time, lockMany } = world();
    // A client that ignores abort signals: what hangs in it hangs for ever.
    const client = scene.client();
    const deaf = Object.assign(Object.create(client), {
      send: (command: Parameters<typeof client.send>[0]) => client.send(command),
    });
    const hold = scene.proxy.hold("GetItem");
    const locking = lockMany(5, { client: deaf });
    await hold.arrived;
    await time.advance(3_000);
    await afterSleeps(time, locking);
    expect(time.elapsed).toBeLessThan(4_000);
    hold.release();
  });

  test("a read without an answer holds up its own call alone: others wait for it until it is overdue, and then share another", async () => {
    const { time } = world();
    const hold = scene.proxy.hold("GetItem");
    const locks = scene.host({ clock: time.tableClock({ aheadMs: HOUR_MS }) });
    const first = watch(locks.mutex(scene.name).lock());
    await hold.arrived;
    const others = watch(Promise.all([1, 2, 3].map((index) => locks.mutex(`${scene.name}/${index}`).lock())));
    await time.advance(200);
    expect([scene.proxy.counts(), others.settled]).toEqual([{ GetItem: 1 }, false]);
    await time.advance(50);
    await eventually(() => others.settled);
    expect(scene.proxy.counts()).toEqual({ GetItem: 2, PutItem: 3 });
    expect([first.settled, time.elapsed]).toEqual([false, 250]);
    hold.release();
    await eventually(() => first.settled);
  });

  test("a period waits for it, and is the table's", async () => {
    const { time, host } = world();
    const mutex = host(HOUR_MS);
    expect(await mutex.tryRun(({ tick }) => tick, { everyMs: HOUR_MS })).toEqual({ ran: true, value: time.now });
    expect(operations()).toEqual(["GetItem", "UpdateItem", "UpdateItem"]);
    expect(await scene.row()).not.toHaveProperty("purge");
  });

  test("a ticket and the place that it numbers wait for it", async () => {
    const { time, host, hostThatKnows } = world();
    const holder = await host(0, "holder", { fair: true }).lock();
    // The query that shows the queue tells the time as well; here it does not.
    const hasRead = () => scene.proxy.count({ client: "waiter", operation: "GetItem" }) > 0;
    const locking = hostThatKnows(hasRead, "waiter", { fair: true }).lock();
    const watched = watch(locking);
    await untilStanding(scene, "waiter", time);
    const requests = scene.proxy.select({ client: "waiter" });
    expect(operations("waiter").slice(0, 4)).toEqual(["Query", "GetItem", "UpdateItem", "PutItem"]);
    const expires = Number(requests[3]?.body.Item?.expires?.N);
    expect(expires).toBeGreaterThanOrEqual(time.now + TTL_MS);
    expect(expires).toBeLessThanOrEqual(time.now + TTL_MS + DOUBT_MS);
    await holder.unlock();
    await time.sleepUntil(() => watched.settled);
    await (await locking).unlock();
  });
});

describe("trap 24: what was known of the time is no longer", () => {
  test("a process that was idle for a day reads before it writes, and stamps no later than 2 s past its lease", async () => {
    const { time, host } = world();
    const mutex = host(HOUR_MS);
    await (await mutex.lock()).unlock();
    scene.proxy.reset();
    await time.advance(DAY_MS);
    const lock = await mutex.lock();
    expect(operations()).toEqual(["GetItem", "PutItem"]);
    await expectGoodStamp(time);
    await lock.unlock();
  });

  test.each([HOUR_MS, -HOUR_MS])(
    "a process whose wall clock was set by %d ms stamps no later than 2 s past its lease",
    async (setByMs) => {
      const { time, hostThatIsSet } = world();
      const { mutex, set } = hostThatIsSet();
      await (await mutex.lock()).unlock();
      await time.advance(1_000);
      set(setByMs);
      const lock = await mutex.lock();
      await expectGoodStamp(time);
      await lock.unlock();
    },
  );

  test("a take that was suspended while it waited to leave does not leave before the time is known again", async () => {
    const { time, hostThatForgets } = world();
    const { mutex, begin } = await hostThatForgets(1);
    begin();
    const lock = await mutex.lock();
    expect(operations()).toEqual(["GetItem", "PutItem"]);
    await expectGoodStamp(time);
    await lock.unlock();
  });

  test("a resume that was suspended while it waited to leave reads the time before it writes", async () => {
    const { time, host, hostThatForgets } = world();
    const { mutex, begin } = await hostThatForgets(2);
    const token = await (await host(0, "giver").lock()).handOff({ validForMs: HOUR_MS });
    begin();
    const lock = await mutex.resume(token);
    expect(operations()).toEqual(["GetItem", "GetItem", "UpdateItem"]);
    await expectGoodStamp(time);
    await lock.unlock();
  });

  test("a process that was suspended while it read reads again", async () => {
    const { time, hostThatIsSet } = world();
    const { mutex, set } = hostThatIsSet();
    const hold = scene.proxy.hold("GetItem", { at: "reply" });
    const locking = mutex.lock();
    await hold.arrived;
    set(HOUR_MS);
    hold.release();
    const lock = await locking;
    expect(operations()).toEqual(["GetItem", "GetItem", "PutItem"]);
    await expectGoodStamp(time);
    await lock.unlock();
  });

  test("renewals and releases never wait for it", async () => {
    const { time, hostThatKnows } = world();
    let isCurrent = true;
    const lock = await hostThatKnows(() => isCurrent).lock();
    isCurrent = false;
    scene.proxy.reset();
    await lock.extend();
    const before = lock.expires.getTime();
    await time.advance(TTL_MS / 2);
    await scene.play(time, () => lock.expires.getTime() > before);
    await lock.unlock();
    expect(operations()).toEqual(["UpdateItem", "UpdateItem", "DeleteItem"]);
  });

  test.each([
    ["a day", DAY_MS, 12],
    ["6 hours", DAY_MS / 4, 24],
  ])("long-lived hosts that ask once in %s run once in each period, for that period", async (_, everyMs, periods) => {
    const { time, host } = world();
    // Each asks by its own clock, at what it takes for the beginning of the period.
    const hosts = [900, 350, 0, -20, -700].map((aheadMs) => ({ aheadMs, mutex: host(aheadMs) }));
    const begin = time.now;
    for (let period = 1; period <= periods; period += 1) {
      const beginsAt = begin + period * everyMs;
      const asking: Promise<TryRun<number | undefined>>[] = [];
      for (const { aheadMs, mutex } of hosts) {
        await time.advance(beginsAt - aheadMs - time.now);
        asking.push(mutex.tryRun(({ tick }) => tick, { everyMs }));
        await scene.quiet();
      }
      const all = await afterSleeps(time, Promise.all(asking));
      const ran = all.flatMap((result) => (result.ran ? [result.value] : []));
      expect(ran).toEqual([beginsAt]);
    }
  });
});
