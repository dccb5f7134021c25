import { afterEach, describe, expect, test } from "@jest/globals";
import {
  type Lock,
  LockConfigError,
  LockTable,
  LockTimeoutError,
  type Mutex,
  type MutexOptions,
  systemClock,
} from "../../../lib/index.js";
import { TestTable } from "../../../lib/testing/index.js";
import { hear } from "../../support/diagnostics.js";
import { eventually, turn, watch } from "../../support/eventually.js";
import { duplicate, type RecordedRequest, resetAfter } from "../../support/fault-proxy.js";
import { ManualTime } from "../../support/manual-time.js";
import {
  isDraw,
  isEnqueue,
  isRemoval,
  isRenewal,
  isTake,
  QueueRows,
  sortIn,
  untilStanding,
} from "../../support/queue.js";
import { rowOf, useScene } from "../../support/scene.js";

const tables: { readonly locks: LockTable; readonly manual: boolean }[] = [];

// Before the scene ends, and its network with it.
afterEach(async () => {
  // What runs on a test's own clock may never end; that it is told to is enough.
  const closings = tables.splice(0).map(({ locks, manual }) => {
    const closing = locks.close({ drainMs: 0 }).catch(() => undefined);
    return manual ? undefined : closing;
  });
  scene.proxy.heal();
  await Promise.all(closings);
});

const scene = useScene();
const rows = new QueueRows(scene);

const POLL = { minMs: 5, maxMs: 20 };
const TTL_MS = 4_000;

function hostOf(owner: string, time?: ManualTime): LockTable {
  const clock = time?.clock() ?? systemClock({ maxSkewMs: 0 });
  const locks = scene.host({ tag: owner, owner, clock });
  tables.push({ locks, manual: time !== undefined });
  return locks;
}

/** A fair mutex on a host of its own. */
function fair(owner: string, options: MutexOptions = {}, time?: ManualTime): Mutex {
  return hostOf(owner, time).mutex(scene.name, { fair: true, poll: POLL, ...options });
}

/** Starts waiting, and resolves once the waiter's row is there. */
async function lineUp(
  owner: string,
  options: MutexOptions = {},
  time?: ManualTime,
): Promise<{ locking: Promise<Lock> }> {
  const locking = fair(owner, options, time).lock();
  locking.catch(() => undefined);
  const isThere = () => scene.proxy.count((it) => it.client === owner && isEnqueue(it) && it.status === 200) > 0;
  await (time === undefined ? scene.proxy.until(isThere) : scene.play(time, isThere, 1));
  return { locking };
}

/** A look by this client after its row was there. */
const isPoll =
  (client: string) =>
  ({ client: sender, operation }: RecordedRequest): boolean =>
    sender === client &&
    operation === "Query" &&
    scene.proxy.count((it) => it.client === client && isEnqueue(it) && it.status === 200) > 0;

/** How many of each operation a host has sent. */
function countsOf(client: string): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { operation } of scene.proxy.select({ client })) counts[operation] = (counts[operation] ?? 0) + 1;
  return counts;
}

/** Nothing is under way any more. */
async function quiet(): Promise<void> {
  for (let count = -1; count !== scene.proxy.requests.length; ) {
    count = scene.proxy.requests.length;
    await eventually(() => scene.proxy.requests.every(({ ending }) => ending !== undefined));
    await turn();
  }
}

describe("a fair lock that nobody waits for", () => {
  test("takes one consistent query, one put and one delete, and leaves nothing behind", async () => {
    const lock = await fair("a").lock();
    await lock.unlock();
    expect(scene.proxy.counts()).toEqual({ Query: 1, PutItem: 1, DeleteItem: 1 });
    expect(scene.proxy.select("Query")[0]?.body.ConsistentRead).toBe(true);
    expect(scene.proxy.units()).toEqual({ read: 1, write: 2 });
    expect(await rows.sorts()).toEqual([]);
  });

  test("costs the same in every form, and draws no ticket", async () => {
    const mutex = fair("a");
    await (await mutex.tryLock())?.unlock();
    expect(await mutex.run(() => "done")).toBe("done");
    expect(await mutex.tryRun(async () => "done")).toEqual({ ran: true, value: "done" });
    await (await mutex.lock({ waitMs: 0 })).unlock();
    expect(scene.proxy.counts()).toEqual({ Query: 4, PutItem: 4, DeleteItem: 4 });
  });
});

describe("a fair lock that somebody waits for", () => {
  test("is given in the order of the waiters' rows, and every waiter's row goes as it enters", async () => {
    const holder = await fair("holder").lock();
    const names = ["a", "b", "c", "d"];
    const entered: string[] = [];
    const sections: Promise<void>[] = [];
    for (const name of names) {
      const { locking } = await lineUp(name);
      sections.push(
        locking.then(async (lock) => {
          entered.push(name);
          await lock.unlock();
        }),
      );
    }
    expect(await rows.owners()).toEqual(names);
    await holder.unlock();
    await Promise.all(sections);
    expect(entered).toEqual(names);
    await quiet();
    expect(await rows.sorts()).toEqual(["tickets"]);
  });

  test.each([
    ["that nobody holds", false],
    ["that somebody holds", true],
  ])("fails at once for those who do not wait, on a lock %s, and they leave no ticket", async (_, held) => {
    await rows.plant(7);
    if (held) await scene.put(rowOf());
    const mutex = fair("a");
    expect(await mutex.tryLock()).toBeNull();
    expect(await mutex.tryRun(() => "ran")).toMatchObject({ ran: false, reason: "held" });
    await expect(mutex.lock({ waitMs: 0 })).rejects.toBeInstanceOf(LockTimeoutError);
    expect(scene.proxy.counts()).toEqual({ Query: 3 });
    expect(await rows.owners()).toEqual(["owner 7"]);
  });

  test("is not taken by a newcomer while it is free and its first waiter is on the way", async () => {
    await rows.put({ sort: "tickets", n: 7, format: 1 });
    await rows.plant(7, { expires: Date.now() + 60_000 });
    const { locking } = await lineUp("newcomer");
    await scene.proxy.until((requests) => requests.filter((it) => it.operation === "Query").length > 5);
    expect(scene.proxy.count(isTake)).toBe(0);
    await rows.remove((await rows.sorts())[0] as string);
    await (await locking).unlock();
  });
});

describe("what a waiter pays", () => {
  test("three requests to stand in the queue, polls, and four to enter and leave", async () => {
    const holder = await fair("holder").lock();
    // Marks no holder before that, however slow the machine is.
    const { locking } = await lineUp("a", { handOverMs: 20_000 });
    await untilStanding(scene, "a");
    await holder.unlock();
    await (await locking).unlock();
    await quiet();
    const { Query = 0, ...counts } = countsOf("a");
    // A number; a row. The lock, and its row; the row of the place.
    expect(counts).toEqual({ UpdateItem: 1, PutItem: 2, DeleteItem: 2 });
    // A look at the queue, polls, and a look from the own row: the first and the last are consistent.
    const looks = scene.proxy.select({ client: "a", operation: "Query" });
    const consistent = looks.filter(({ body }) => body.ConsistentRead === true);
    expect([consistent[0], consistent.at(-1)]).toEqual([looks[0], looks.at(-1)]);
    const read = consistent.length + (Query - consistent.length) / 2;
    expect(scene.proxy.units({ client: "a" })).toEqual({ read, write: 5 });
  });

  test("half a unit for each poll in the queue, of three rows however long the queue is", async () => {
    await using _holder = await fair("holder").lock();
    await rows.put({ sort: "tickets", n: 30, format: 1 });
    for (let ticket = 1; ticket <= 30; ticket += 1) await rows.plant(ticket);
    await lineUp("a", { poll: { minMs: 1, maxMs: 4 } });
    const answered = (it: RecordedRequest): boolean => isPoll("a")(it) && it.table !== undefined;
    await scene.proxy.until((requests) => requests.filter(answered).length > 6);
    // The first ones may have left before the row was there.
    for (const { body, table, units } of scene.proxy.select(answered).slice(2)) {
      expect([body.ConsistentRead, table?.body.Count, units]).toEqual([false, 3, { read: 0.5, write: 0 }]);
    }
  });
});

describe("replies that are lost", () => {
  test.each<readonly [string, (request: RecordedRequest) => boolean]>([
    ["of the first look", (it) => it.operation === "Query"],
    ["of the number", isDraw],
    ["of the row", isEnqueue],
    ["of a poll", isPoll("first")],
    ["of the look from the own row", (it) => isPoll("first")(it) && it.body.ConsistentRead === true],
    ["of the claim", isTake],
    ["of the removal", isRemoval],
  ])("%s cost time, and neither the place nor the order, and leave nothing behind", async (_, isLost) => {
    const holder = await fair("holder").lock();
    const lost = scene.proxy.on((it) => it.client === "first" && isLost(it), resetAfter());
    const first = fair("first").lock();
    await untilStanding(scene, "first");
    const { locking: second } = await lineUp("second");
    const order: string[] = [];
    const sections = [first, second].map(async (locking, index) => {
      const lock = await locking;
      order.push(["first", "second"][index] as string);
      await lock.unlock();
    });
    await holder.unlock();
    await Promise.all(sections);
    await lost.done;
    await Promise.all(tables.splice(0).map(({ locks }) => locks.close()));
    expect(order).toEqual(["first", "second"]);
    expect(await rows.sorts()).toEqual(["tickets"]);
  });

  test("of a renewal does not end the place", async () => {
    const losses = hear("dynamutex:ticket-lost");
    const time = new ManualTime();
    await rows.plant(1, { expires: time.now + 60_000 });
    await lineUp("a", { ttlMs: TTL_MS }, time);
    const lost = scene.proxy.on(isRenewal, resetAfter());
    await time.advance(TTL_MS / 2);
    await lost.done;
    await scene.play(time, () => scene.proxy.count((it) => isRenewal(it) && it.status !== undefined) >= 3, 10);
    expect(losses).toEqual([]);
    expect(scene.proxy.count(isEnqueue)).toBe(1);
  });
});

test("an outage while a place is drawn is waited out, because the table has answered before", async () => {
  const table = new TestTable({ time: "manual" });
  const [holder, waiter] = [table.host(), table.host()];
  const held = await holder.mutex("queued", { fair: true }).lock();
  const locking = waiter.mutex("queued", { fair: true }).lock();
  const watched = watch(locking);
  await turn(); // it has looked, and is about to draw
  table.silence(waiter);
  await table.clock.advance(60_000);
  expect(watched.settled).toBe(false);
  table.answer(waiter);
  await held.unlock();
  await table.clock.advance(10_000);
  await (await locking).unlock();
});

describe("copies that the network delivers late", () => {
  test("a duplicate draw skips a ticket; a duplicate place changes nothing", async () => {
    const holder = await fair("holder").lock();
    const [draw, enqueue] = [duplicate(), duplicate()];
    scene.proxy.on(isDraw, draw);
    scene.proxy.on(isEnqueue, enqueue);
    const { locking } = await lineUp("a");
    const before = await rows.waiters();
    await draw.deliver();
    expect((await enqueue.deliver()).status).toBe(400);
    expect(await rows.waiters()).toEqual(before);
    await holder.unlock();
    await (await locking).unlock();
  });

  test("a late duplicate of a place delays those behind it until its lease ends", async () => {
    const time = new ManualTime();
    await scene.put(rowOf({ expires: time.now + 600_000 }));
    const enqueue = duplicate();
    scene.proxy.on(isEnqueue, enqueue);
    const controller = new AbortController();
    const locks = hostOf("a", time);
    const leaving = locks.mutex(scene.name, { fair: true, ttlMs: TTL_MS }).lock({ signal: controller.signal });
    leaving.catch(() => undefined);
    await untilStanding(scene, "a", time);
    controller.abort(new Error("enough"));
    await scene.proxy.until((requests) => requests.some((it) => isRemoval(it) && it.status === 200));
    await scene.remove();
    expect((await enqueue.deliver()).status).toBe(200);
    const [ghost] = await rows.waiters();
    const next = fair("next", { ttlMs: 10 * TTL_MS }, time);
    expect(await next.tryLock()).toBeNull();
    await time.advance((ghost?.expires as number) - time.now - 1);
    expect(await next.tryLock()).toBeNull();
    await time.advance(2);
    const lock = await next.tryLock();
    expect(lock?.held).toBe(true);
  });
});

describe("the order of tickets, where rows come in another", () => {
  /** A waiter whose row is still on its way, and one behind it whose row is there. */
  async function lateAndEarly() {
    const late = scene.proxy.hold((request) => isEnqueue(request) && request.client === "late");
    const lateLocking = fair("late").lock();
    await late.arrived;
    const { locking: earlyLocking } = await lineUp("early");
    const order: string[] = [];
    const note = (name: string) => async (lock: Lock) => {
      order.push(name);
      await lock.unlock();
    };
    const served = Promise.all([earlyLocking.then(note("early")), lateLocking.then(note("late"))]);
    return { late, order, served };
  }

  const lateIsThere = () =>
    scene.proxy.until((requests) => requests.some((it) => isEnqueue(it) && it.client === "late" && it.status === 200));

  test("a row that comes late stands where its ticket says, for one ticket", async () => {
    const holder = await fair("holder").lock();
    const { late, order, served } = await lateAndEarly();
    late.release();
    await lateIsThere();
    expect(await rows.owners()).toEqual(["late", "early"]);
    await holder.unlock();
    await served;
    expect(order).toEqual(["late", "early"]);
    expect(scene.proxy.count(isDraw)).toBe(2);
  });

  test("it is overtaken by a claim whose look preceded it, and by no other: it is next", async () => {
    const holder = await fair("holder").lock();
    const { late, order, served } = await lateAndEarly();
    const claim = scene.proxy.hold((request) => isTake(request) && request.client === "early");
    await holder.unlock();
    await claim.arrived;
    late.release();
    await lateIsThere();
    expect(await fair("newcomer").tryLock()).toBeNull();
    claim.release();
    await served;
    expect(order).toEqual(["early", "late"]);
  });

  test("whoever finds nobody waiting enters while another is between number and row, and that one is next", async () => {
    const holder = await fair("holder").lock();
    const slow = scene.proxy.hold((request) => isEnqueue(request));
    const slowLocking = fair("slow").lock();
    await slow.arrived;
    await holder.unlock();
    const quick = await fair("quick").tryLock();
    expect(quick).not.toBeNull();
    slow.release();
    await untilStanding(scene, "slow");
    expect(await fair("third").tryLock()).toBeNull();
    await quick?.unlock();
    await (await slowLocking).unlock();
  });
});

describe("beside plain mutexes", () => {
  test("either excludes the other, and a plain one overtakes", async () => {
    const holder = await fair("holder").lock();
    const plain = scene.host({ tag: "plain" }).mutex(scene.name, { poll: POLL });
    expect(await plain.tryLock()).toBeNull();
    const { locking } = await lineUp("fair");
    await holder.unlock();
    await (await locking).unlock();

    const first = await plain.lock();
    expect(await fair("other").tryLock()).toBeNull();
    const { locking: next } = await lineUp("waiting");
    await untilStanding(scene, "waiting");
    const claim = scene.proxy.hold((it) => isTake(it) && it.client === "waiting");
    await first.unlock();
    await claim.arrived;
    const second = await plain.tryLock();
    expect(second).not.toBeNull();
    claim.release();
    await second?.unlock();
    await (await next).unlock();
  });

  test("a process that passes a plain lock on among its own sections gives way to a fair waiter", async () => {
    const plain = scene.host({ tag: "plain" }).mutex(scene.name, { handOverMs: 30 });
    let stop = false;
    const busy = async (): Promise<void> => {
      while (!stop) await plain.run(() => new Promise((resolve) => setTimeout(resolve, 2)));
    };
    const sections = [busy(), busy()];
    const lock = await fair("fair", { handOverMs: 30 }).lock();
    stop = true;
    await lock.unlock();
    await Promise.all(sections);
  });
});

describe("giving up", () => {
  test("a wait that is over rejects and takes its ticket with it", async () => {
    const time = new ManualTime();
    await using holder = await fair("holder", {}, time).lock();
    const { locking } = await lineUp("a", { waitMs: 150 }, time);
    await time.advance(150);
    await expect(locking).rejects.toMatchObject({
      code: "LOCK_TIMEOUT",
      holder: { owner: "holder" },
    });
    await scene.proxy.until((requests) => requests.some((it) => isRemoval(it) && it.status === 200));
    expect(await rows.sorts()).toEqual(["lock", "tickets"]);
    expect(holder.held).toBe(true);
  });

  test("trap 17: an abort in the middle of the queue takes the ticket out, and the one behind moves up", async () => {
    const holder = await fair("holder").lock();
    const controller = new AbortController();
    const { locking: first } = await lineUp("first");
    const middle = fair("middle").lock({ signal: controller.signal });
    await scene.proxy.until((requests) =>
      requests.some((it) => isEnqueue(it) && it.client === "middle" && it.status === 200),
    );
    const { locking: last } = await lineUp("last");
    const reason = new Error("enough");
    controller.abort(reason);
    await expect(middle).rejects.toBe(reason);
    await holder.unlock();
    await (await first).unlock();
    await (await last).unlock();
    await quiet();
    expect(await rows.sorts()).toEqual(["tickets"]);
  });

  test("trap 17: an abort between number and row rejects at once, and no row is written", async () => {
    await using _holder = await fair("holder").lock();
    const controller = new AbortController();
    const draw = scene.proxy.hold(isDraw, { at: "reply" });
    const locking = fair("a").lock({ signal: controller.signal });
    await draw.arrived;
    controller.abort(new Error("enough"));
    await expect(locking).rejects.toThrow("enough");
    draw.release();
    await quiet();
    expect(scene.proxy.count(isEnqueue)).toBe(0);
    expect(await rows.sorts()).toEqual(["lock", "tickets"]);
  });

  test.each(["request", "reply"] as const)(
    "trap 17: an abort while the row's %s is on its way rejects at once, and the row goes when it is there",
    async (at) => {
      await using _holder = await fair("holder").lock();
      const controller = new AbortController();
      const enqueue = scene.proxy.hold(isEnqueue, { at });
      const locks = hostOf("a");
      const locking = locks.mutex(scene.name, { fair: true, poll: POLL }).lock({ signal: controller.signal });
      await enqueue.arrived;
      controller.abort(new Error("enough"));
      await expect(locking).rejects.toThrow("enough");
      enqueue.release();
      await locks.close();
      expect(scene.proxy.count((it) => isEnqueue(it) && it.table?.status === 200)).toBe(1);
      expect(await rows.sorts()).toEqual(["lock", "tickets"]);
    },
  );

  test("closing the table ends every wait and removes the place that they share", async () => {
    await using _holder = await fair("holder").lock();
    const locks = hostOf("a");
    const mutex = locks.mutex(scene.name, { fair: true, poll: POLL });
    const waits = Array.from({ length: 5 }, () => mutex.lock());
    const outcomes = Promise.allSettled(waits);
    await untilStanding(scene, "a");
    expect(await rows.waiters()).toMatchObject([{ owner: "a", data: { sections: 5 } }]);
    await locks.close();
    for (const outcome of await outcomes) expect(outcome).toMatchObject({ reason: { code: "LOCK_CLOSED" } });
    expect(await rows.owners()).toEqual([]);
  });
});

describe("a ticket that is lost", () => {
  test("because its row was deleted, is noticed before the lock is taken on it; a new one is at the end", async () => {
    const losses = hear("dynamutex:ticket-lost");
    const holder = await fair("holder").lock();
    const { locking: first } = await lineUp("first");
    await untilStanding(scene, "first");
    const { locking: second } = await lineUp("second");
    const [row] = await rows.waiters();
    await rows.remove(row?.sort as string);
    await holder.unlock();
    await (await second).unlock();
    await (await first).unlock();
    expect(losses).toMatchObject([{ name: scene.name, uuid: row?.uuid, reason: "deleted" }]);
  });

  test("because its row was deleted, is noticed by its renewal far behind the front", async () => {
    const losses = hear("dynamutex:ticket-lost");
    const time = new ManualTime();
    await rows.plant(1, { expires: time.now + 60_000 });
    await lineUp("a", { ttlMs: TTL_MS }, time);
    const [, own] = await rows.waiters();
    await rows.remove(own?.sort as string);
    await time.advance(TTL_MS / 2);
    await eventually(() => losses.length > 0);
    expect(losses).toMatchObject([{ uuid: own?.uuid, ticket: BigInt(own?.sort.slice(6) ?? 0), reason: "deleted" }]);
    await scene.play(time, () => scene.proxy.count((it) => isEnqueue(it) && it.status === 200) === 2, 10);
    expect(await rows.owners()).toEqual(["owner 1", "a"]);
  });

  test("because no renewal got through, is given up, although its row may still be there", async () => {
    const losses = hear("dynamutex:ticket-lost");
    const time = new ManualTime();
    await rows.plant(1, { expires: time.now + 60_000 });
    await lineUp("a", { ttlMs: TTL_MS }, time);
    const [, own] = await rows.waiters();
    scene.proxy.partition("a", "reset");
    await scene.play(time, () => losses.length > 0, 10);
    expect(losses).toMatchObject([{ uuid: own?.uuid, reason: "expired" }]);
    // For others it lasts a little longer: they would never skip whoever still believes in its ticket.
    expect(time.now).toBeLessThan(own?.expires as number);
    scene.proxy.heal("a");
    await scene.play(time, () => scene.proxy.count((it) => isEnqueue(it) && it.status === 200) === 2, 10);
    const [, last] = (await rows.waiters()).filter(({ uuid }) => uuid !== own?.uuid);
    expect(last).toMatchObject({ owner: "a" });
  });

  test("while the process was suspended, is not entered on when it goes on", async () => {
    const losses = hear("dynamutex:ticket-lost");
    const time = new ManualTime();
    await scene.put(rowOf({ expires: time.now + 3 * TTL_MS }));
    await lineUp("a", { ttlMs: TTL_MS }, time);
    // Each of them: one that is tried again in time would keep the ticket.
    const renewal = scene.proxy.hold(isRenewal, { times: 20 });
    await time.advance(TTL_MS / 2);
    await renewal.arrived;
    await time.advance(TTL_MS);
    renewal.release();
    await scene.remove();
    // What is sent gets its answer before time goes on: no attempt is given up, and sent again.
    await scene.play(time, () => scene.proxy.count((it) => isTake(it) && it.status === 200) === 1, 10);
    expect(losses).toMatchObject([{ reason: "expired" }]);
    // A put that is slow to be answered is sent again: what counts is how many places it asked for, and when it first asked.
    const enqueued = scene.proxy.select(isEnqueue);
    const lost = sortIn(enqueued[0] as RecordedRequest);
    expect(new Set(enqueued.map(sortIn)).size).toBe(2);
    const { arrivedAt } = scene.proxy.select(isTake)[0] as RecordedRequest;
    expect(enqueued.find((it) => sortIn(it) !== lost)?.arrivedAt).toBeLessThan(arrivedAt);
  });
});

describe("dead waiters", () => {
  test("are skipped and removed, by those who queue and by those who come along", async () => {
    const over = Date.now() - 1;
    for (const ticket of [1, 2, 3]) await rows.plant(ticket, { expires: over });
    const locks = hostOf("a");
    await (await locks.mutex(scene.name, { fair: true }).tryLock())?.unlock();
    await scene.proxy.until((requests) => requests.filter((it) => isRemoval(it) && it.status === 200).length === 3);
    expect(await rows.sorts()).toEqual([]);
    expect(scene.proxy.count(isTake)).toBe(1);
  });

  test("are not those whose lease ran out while the reply that shows them was on its way: they may have renewed it", async () => {
    const time = new ManualTime();
    await rows.plant(7, { expires: time.now + 1_000 });
    const query = scene.proxy.hold(({ operation }) => operation === "Query", { at: "reply" });
    const trying = fair("newcomer", {}, time).tryLock();
    await query.arrived;
    await time.advance(2_000);
    query.release();
    expect(await trying).toBeNull();
    expect(scene.proxy.count(isTake)).toBe(0);
    expect(await rows.sorts()).toHaveLength(1);
  });

  test("dead waiters that cannot be removed block no one", async () => {
    await rows.plant(1, { expires: Date.now() - 1 });
    const sweeps = scene.proxy.hold("DeleteItem");
    const lock = await fair("a").tryLock();
    expect(lock?.held).toBe(true);
    sweeps.release();
    await lock?.unlock();
  });
});

describe("the counter", () => {
  test("makes itself from the table's time, so that one that was purged goes on behind all earlier tickets", async () => {
    await using _holder = await fair("holder").lock();
    await lineUp("a");
    await rows.remove("tickets");
    await lineUp("b");
    expect(await rows.owners()).toEqual(["a", "b"]);
    const sorts = await rows.sorts();
    expect(sorts.at(-1)).toBe("tickets");
    for (const sort of sorts.slice(1, 3)) expect(sort).toMatch(/^queue#\d{38}$/);
  });

  test("of any size keeps the order", async () => {
    await using _holder = await fair("holder").lock();
    await rows.put({ sort: "tickets", n: 10n ** 20n - 2n, format: 1 });
    for (const name of ["a", "b", "c"]) await lineUp(name);
    expect(await rows.owners()).toEqual(["a", "b", "c"]);
    expect((await rows.waiters()).map(({ sort }) => BigInt(sort.slice(6)))).toEqual([
      10n ** 20n - 1n,
      10n ** 20n,
      10n ** 20n + 1n,
    ]);
  });

  test("that was set back by hand is stepped over where its numbers are taken", async () => {
    await using _holder = await fair("holder").lock();
    await rows.put({ sort: "tickets", n: 4, format: 1 });
    await rows.plant(5);
    const { locking } = await lineUp("a", { waitMs: 5_000 });
    expect((await rows.waiters()).map(({ sort }) => Number(sort.slice(6)))).toEqual([5, 6]);
    locking.catch(() => undefined);
  });

  test("that gives nothing but numbers that are taken is an error that says what to delete", async () => {
    await using _holder = await fair("holder").lock();
    await rows.put({ sort: "tickets", n: 4, format: 1 });
    for (let ticket = 5; ticket < 10; ticket += 1) await rows.plant(ticket);
    const failure = await fair("a")
      .lock()
      .catch((error: unknown) => error);
    expect(failure).toMatchObject({ code: "LOCK_STORE", transient: false });
    expect(String(failure)).toMatch(/the ticket counter .* item "tickets" was changed or restored: delete that item/);
  });
});

describe("where it cannot work", () => {
  const table = { tableName: "locks", keys: { sort: null } };

  test("a table without a sort key refuses fair mutexes, and says why", () => {
    expect(() => new LockTable({ ...table, fair: true })).toThrow(LockConfigError);
    const locks = new LockTable(table);
    const make = () => locks.mutex("name", { fair: true });
    expect(make).toThrow(expect.objectContaining({ option: "fair", value: true, code: "LOCK_CONFIG" }));
    expect(make).toThrow(/sort key.*row of its own/);
    expect(() => locks.mutex("name", { fair: false })).not.toThrow();
  });

  test("no key attribute may have the counter's name", () => {
    expect(() => new LockTable({ tableName: "locks", keys: { partition: "n" } })).toThrow(
      expect.objectContaining({ option: "keys.partition" }),
    );
  });

  test.each([1, "yes", null])("%p is no way to say fair", (value) => {
    const options = { tableName: "locks", fair: value as unknown as boolean };
    expect(() => new LockTable(options)).toThrow(expect.objectContaining({ option: "fair", value }));
  });
});
