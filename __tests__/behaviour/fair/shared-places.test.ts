import { describe, expect, test } from "@jest/globals";
import type { Lock } from "../../../lib/lock.js";
import type { LockOptions } from "../../../lib/options/calls.js";
import type { MutexOptions } from "../../../lib/options/mutex.js";
import { LOCK_SORT, lockAt, MUTEX_QUEUE } from "../../../lib/protocol/addresses.js";
import { MemoryTable } from "../../../lib/testing/memory-table.js";
import { takesOf } from "../../proof/simulation/message.js";
import { hear } from "../../support/diagnostics.js";
import { watch } from "../../support/eventually.js";
import { createGate } from "../../support/fault-proxy.js";
import { ManualTime } from "../../support/manual-time.js";
import { MemoryHost } from "../../support/memory-host.js";
import type { Message } from "../../support/message.js";
import { placesIn } from "../../support/places.js";

const NAME = "popular";

const isTakeOfLock = (message: Message): boolean => takesOf(message).some(({ at }) => at.sort === LOCK_SORT);
const isTakeOfPlace = (message: Message): boolean => takesOf(message).some(({ at }) => at.sort !== LOCK_SORT);
const isReleaseOfLock = (message: Message): boolean =>
  message.kind === "write" && message.write.kind === "vacate" && message.write.at.sort === LOCK_SORT;
const isDraw = (message: Message): boolean => message.kind === "write" && message.write.kind === "draw";
const isConsistentLook = (message: Message): boolean => message.kind === "query" && message.query.consistent;

/** A caller that has asked. */
interface Caller {
  readonly locking: Promise<Lock>;
  readonly settled: boolean;
}

/** Processes on a table in memory, and the order in which their sections begin. */
class World {
  readonly time = new ManualTime();
  readonly table = new MemoryTable();
  readonly order: string[] = [];
  readonly #callers: { readonly settled: boolean }[] = [];

  host(owner: string): MemoryHost {
    return new MemoryHost(this.time, { owner, table: this.table });
  }

  /** A section of so long, which begins when its turn has come. */
  ask(host: MemoryHost, caller: string, call: LockOptions = {}, mutex: MutexOptions = {}): Caller {
    const locking = host.mutex(NAME, { fair: true, ...mutex }).lock(call);
    const section = locking.then(async (lock) => {
      this.order.push(caller);
      await this.time.clock().sleep(10);
      await lock.unlock();
    });
    const watched = watch(section);
    this.#callers.push(watched);
    return {
      locking,
      get settled() {
        return watched.settled;
      },
    };
  }

  /** The same, and time passes until all places of its process are there that it needs. */
  async lineUp(host: MemoryHost, callers: readonly string[], call: LockOptions = {}): Promise<void> {
    for (const caller of callers) this.ask(host, caller, call);
    await this.pass(200);
  }

  async pass(ms: number): Promise<void> {
    for (const end = this.time.elapsed + ms; this.time.elapsed < end; ) await this.time.advance(5);
  }

  /** Until all who have asked have run, or gone. */
  async allServed(withinMs = 30_000): Promise<void> {
    const isOver = (): boolean => this.#callers.every(({ settled }) => settled);
    await this.time.advanceUntil(isOver, { stepMs: 5, withinMs });
    await this.time.advance(0);
  }

  /** Gives the lock up: who has asked is served in this order, and nothing stays. */
  async expectServed(lock: Lock, order: readonly string[]): Promise<void> {
    await lock.unlock();
    await this.allServed();
    expect(this.order).toEqual(order);
    this.expectNothingLeft();
  }

  /** Who has places, in their order, and how many callers shared each when it was taken. */
  get places(): readonly string[] {
    return placesIn(this.table, NAME).map(({ owner, data }) => `${owner} ${data?.sections}`);
  }

  /** What is left of the name: nothing but the counter. */
  expectNothingLeft(): void {
    expect([...this.table.partition(NAME).keys()].filter((sort) => sort !== MUTEX_QUEUE.counter)).toEqual([]);
  }
}

function processes() {
  const world = new World();
  return { world, a: world.host("a"), b: world.host("b"), c: world.host("c") };
}

describe("callers of a process whose own section has the lock", () => {
  test("who asked before another host had a place go before it, on the same lease; those who asked later go after it", async () => {
    const { world, a, b } = processes();
    const lock = await a.mutex(NAME, { fair: true }).lock();
    await world.lineUp(a, ["a1", "a2"]);
    // A look has shown that nobody else waits: they need no place.
    expect(world.places).toEqual([]);
    await world.lineUp(b, ["b1"]);
    await world.lineUp(a, ["a3", "a4"]);
    // All who wait then share it, although two of them go before.
    expect(world.places).toEqual(["b 1", "a 4"]);
    await world.expectServed(lock, ["a1", "a2", "b1", "a3", "a4"]);
    // One for its first three sections, and one for those that came after the other host.
    expect(a.sent.filter(isTakeOfLock)).toHaveLength(2);
    expect(a.sent.filter(isDraw)).toHaveLength(1);
  });

  test("leave it to another host that came first, although they wait and the lease could be passed on", async () => {
    const { world, a, b } = processes();
    const lock = await a.mutex(NAME, { fair: true }).lock();
    await world.lineUp(b, ["b1"]);
    // They ask in the last moment: nothing is known of the queue, and they have no place yet.
    world.ask(a, "a1");
    world.ask(a, "a2");
    await world.expectServed(lock, ["b1", "a1", "a2"]);
    expect(a.sent.filter(isDraw)).toHaveLength(1);
  });

  test("who asked after its last look had left go after another host that has come meanwhile", async () => {
    const { world, a, b } = processes();
    const lock = await a.mutex(NAME, { fair: true }).lock();
    const gate = createGate();
    a.hold = (message) => (isConsistentLook(message) ? gate.released : undefined);
    world.ask(a, "a1");
    await world.pass(100);
    await world.lineUp(b, ["b1"]);
    world.ask(a, "a2");
    gate.release();
    await world.pass(20);
    await world.expectServed(lock, ["a1", "b1", "a2"]);
  });

  test("need no request of their own where the last look still tells that it is their turn, and one look where it does not", async () => {
    const { world, a } = processes();
    const lock = await a.mutex(NAME, { fair: true }).lock();
    a.sent.length = 0;
    for (let caller = 1; caller <= 20; caller += 1) world.ask(a, `a${caller}`);
    await lock.unlock();
    await world.allServed();
    expect(world.order).toEqual(Array.from({ length: 20 }, (_, index) => `a${index + 1}`));
    expect(a.sent).toHaveLength(2);
    expect([a.sent.filter(isConsistentLook).length, a.sent.filter(isReleaseOfLock).length]).toEqual([1, 1]);
  });
});

describe("places of one process", () => {
  test("serve nobody who asks after the draw of the ticket, while the row is still on its way", async () => {
    const { world, a, b, c } = processes();
    const lock = await c.mutex(NAME, { fair: true }).lock();
    const gate = createGate();
    a.hold = (message) => (isTakeOfPlace(message) ? gate.released : undefined);
    world.ask(a, "a1");
    await world.pass(100);
    await world.lineUp(b, ["b1"]);
    world.ask(a, "a2");
    gate.release();
    await world.pass(200);
    await world.expectServed(lock, ["a1", "b1", "a2"]);
  });

  test.each([2, 3, 4, 5])(
    "that follow one another, %i of them, are served on one lease: it is passed on, with one look at most",
    async (count) => {
      const { world, a, b } = processes();
      const lock = await b.mutex(NAME, { fair: true }).lock();
      const callers = Array.from({ length: count }, (_, index) => [`a${index}`, `a${index}'`]);
      for (const pair of callers) await world.lineUp(a, pair);
      expect(world.places).toEqual(callers.map(() => "a 2"));
      await lock.unlock();
      await world.pass(1);
      const before = a.sent.length;
      await world.allServed();
      expect(world.order).toEqual(callers.flat());
      expect([a.sent.filter(isTakeOfLock).length, a.sent.filter(isReleaseOfLock).length]).toEqual([1, 1]);
      // The look on which it was taken shows the first three places.
      const looks = a.sent.slice(before).filter(isConsistentLook);
      expect(looks.length).toBeLessThanOrEqual(count <= 3 ? 1 : 2);
      world.expectNothingLeft();
    },
  );

  test("of which there are more than a look shows, let in nobody who asked after another host", async () => {
    const { world, a, b, c } = processes();
    const lock = await c.mutex(NAME, { fair: true }).lock();
    const before = ["a1", "a2", "a3", "a4", "a5"];
    for (const caller of before) await world.lineUp(a, [caller]);
    await world.lineUp(b, ["b1"]);
    await world.lineUp(a, ["a6"]);
    await world.expectServed(lock, [...before, "b1", "a6"]);
  });

  test("between which another host stands, are served before and after it", async () => {
    const { world, a, b, c } = processes();
    const lock = await c.mutex(NAME, { fair: true }).lock();
    await world.lineUp(a, ["a1", "a2"]);
    await world.lineUp(b, ["b1"]);
    await world.lineUp(a, ["a3"]);
    expect(world.places).toEqual(["a 2", "b 1", "a 1"]);
    await world.expectServed(lock, ["a1", "a2", "b1", "a3"]);
  });
});

describe("callers that cannot go on with the lease of the one before", () => {
  const OTHERS: readonly (readonly [string, LockOptions, MutexOptions])[] = [
    ["with data", { data: { job: 7 } }, {}],
    ["with a hold", { holdAtLeastMs: 50 }, {}],
    ["with another ttl", {}, { ttlMs: 12_345 }],
  ];

  test.each(OTHERS)("%s, take the lock again in their turn, on the place that they share", async (_, call, mutex) => {
    const { world, a, b, c } = processes();
    const lock = await b.mutex(NAME, { fair: true }).lock();
    world.ask(a, "a1");
    world.ask(a, "a2", call, mutex);
    world.ask(a, "a3", call, mutex);
    world.ask(a, "a4");
    await world.pass(200);
    await world.lineUp(c, ["c1"]);
    expect(world.places).toEqual(["a 4", "c 1"]);
    await world.expectServed(lock, ["a1", "a2", "a3", "a4", "c1"]);
    expect(a.sent.filter(isDraw)).toHaveLength(1);
    expect(a.sent.filter(isTakeOfLock).length).toBeGreaterThanOrEqual(3);
  });

  test.each(OTHERS)(
    "%s, get a place behind a section of their own process: the lock is given back before them",
    async (...parts) => {
      const [, call, mutex] = parts;
      const { world, a, c } = processes();
      const lock = await a.mutex(NAME, { fair: true }).lock();
      world.ask(a, "a1");
      world.ask(a, "a2", call, mutex);
      await world.pass(200);
      await world.lineUp(c, ["c1"]);
      expect(world.places).toEqual(["a 2", "c 1"]);
      await world.expectServed(lock, ["a1", "a2", "c1"]);
    },
  );
});

describe("a place that is lost", () => {
  test("its callers share the next place of their process, at its head, in the order of asking", async () => {
    const { world, a, b, c } = processes();
    const lock = await b.mutex(NAME, { fair: true }).lock();
    await world.lineUp(a, ["a1", "a2"]);
    await world.lineUp(c, ["c1"]);
    await world.lineUp(a, ["a3", "a4"]);
    const [first] = placesIn(world.table, NAME);
    expect(first).toMatchObject({ owner: "a", data: { sections: 2 } });
    world.table.plant({ name: NAME, sort: first?.sort as string }, undefined);
    await world.expectServed(lock, ["c1", "a1", "a2", "a3", "a4"]);
    // Nobody draws again.
    expect(a.sent.filter(isDraw)).toHaveLength(2);
  });

  test("that is not the first of its process is replaced before its turn comes", async () => {
    const world = new World();
    const ttlMs = 2_000;
    const [a, b, c] = [world.host("a"), world.host("b"), world.host("c")];
    const lock = await c.mutex(NAME, { fair: true }).lock();
    for (const caller of ["a1", "a2"]) {
      world.ask(a, caller, {}, { ttlMs });
      await world.pass(200);
    }
    const [, second] = placesIn(world.table, NAME);
    world.table.plant(second as { name: string; sort: string }, undefined);
    await world.pass(ttlMs);
    await world.lineUp(b, ["b1"]);
    expect(world.places).toEqual(["a 1", "a 1", "b 1"]);
    await world.expectServed(lock, ["a1", "a2", "b1"]);
  });

  test("its callers draw one ticket together where their process has no other", async () => {
    const { world, a, b, c } = processes();
    const lock = await b.mutex(NAME, { fair: true }).lock();
    await world.lineUp(a, ["a1", "a2"]);
    await world.lineUp(c, ["c1"]);
    const [first] = placesIn(world.table, NAME);
    world.table.plant({ name: NAME, sort: first?.sort as string }, undefined);
    await world.expectServed(lock, ["c1", "a1", "a2"]);
    expect(a.sent.filter(isDraw)).toHaveLength(2);
  });
});

test("a place that is lost while its look is on its way is replaced as the look is answered, without a pause", async () => {
  const { world, a, b } = processes();
  const lock = await b.mutex(NAME, { fair: true }).lock();
  world.ask(a, "a1", {}, { ttlMs: 1_000, poll: { minMs: 1_000, maxMs: 1_000 } });
  await world.pass(200);
  const arrival = createGate();
  let isHeld = false;
  a.hold = (message) => {
    if (message.kind !== "query") return undefined;
    isHeld = true;
    return arrival.released;
  };
  await world.time.advanceUntil(() => isHeld, { stepMs: 5 });
  const [place] = placesIn(world.table, NAME);
  world.table.plant({ name: NAME, sort: place?.sort as string }, undefined);
  const lost: unknown[] = [];
  hear("dynamutex:ticket-lost", (message) => lost.push(message));
  await world.time.advanceUntil(() => lost.length > 0, { stepMs: 5 });
  arrival.release();
  await world.pass(20);
  expect(a.sent.filter(isDraw)).toHaveLength(2);
  await world.expectServed(lock, ["a1"]);
});

describe("callers that give up", () => {
  test("the next one, while the lease is prepared for it: it does not go to one who asked after another host came", async () => {
    const { world, a, b } = processes();
    const gate = createGate();
    let reissues = 0;
    a.fate = (message) => {
      if (message.kind !== "write" || message.write.kind !== "reissue") return "answered";
      reissues += 1;
      return gate.released;
    };
    const controller = new AbortController();
    world.ask(a, "a1", {}, { fencing: true });
    const next = world.ask(a, "a2", { signal: controller.signal }, { fencing: true });
    await world.time.advanceUntil(() => reissues > 0);
    await world.lineUp(b, ["b1"]);
    controller.abort(new Error("enough"));
    await expect(next.locking).rejects.toThrow("enough");
    world.ask(a, "a3", {}, { fencing: true });
    gate.release();
    await world.allServed();
    expect(world.order).toEqual(["a1", "b1", "a3"]);
    expect(world.places).toEqual([]);
  });

  test.each([55, 60, 65, 70, 75, 80])("after %d ms, and ask again at once, get a place", async (waitMs) => {
    const { world, a, b, c } = processes();
    const lock = await a.mutex(NAME, { fair: true }).lock();
    await world.lineUp(b, ["b1"]);
    const asked = a.mutex(NAME, { fair: true }).lock({ waitMs });
    const again = asked.catch(() => world.ask(a, "a2"));
    await world.pass(waitMs + 200);
    await again;
    await world.lineUp(c, ["c1"]);
    expect(world.places).toEqual(["b 1", "a 1", "c 1"]);
    await world.expectServed(lock, ["b1", "a2", "c1"]);
  });

  test("leave their place to those who share it, and the last of them removes it", async () => {
    const { world, a, b } = processes();
    const lock = await b.mutex(NAME, { fair: true }).lock();
    const signals = [1, 2, 3].map(() => new AbortController());
    const callers = signals.map(({ signal }, index) => world.ask(a, `a${index}`, { signal }));
    await world.pass(200);
    expect(world.places).toEqual(["a 3"]);
    // The one that leads, and the last.
    for (const index of [0, 2, 1]) {
      expect(world.places).toEqual(["a 3"]);
      signals[index]?.abort(new Error("enough"));
      await expect(callers[index]?.locking).rejects.toThrow("enough");
      await world.pass(50);
    }
    expect(world.places).toEqual([]);
    expect(lock.held).toBe(true);
    await lock.unlock();
    world.expectNothingLeft();
  });

  test("all of them while their claim is on its way: what it takes is given back, and goes to the next host", async () => {
    const { world, a, b, c } = processes();
    const lock = await b.mutex(NAME, { fair: true }).lock();
    const controller = new AbortController();
    const { signal } = controller;
    const callers = ["a1", "a2"].map((caller) => world.ask(a, caller, { signal }));
    await world.pass(200);
    await world.lineUp(c, ["c1"]);
    const gate = createGate();
    let claims = 0;
    a.fate = (message) => {
      if (!isTakeOfLock(message)) return "answered";
      claims += 1;
      return gate.released;
    };
    await lock.unlock();
    await world.time.advanceUntil(() => claims > 0);
    controller.abort(new Error("enough"));
    for (const { locking } of callers) await expect(locking).rejects.toThrow("enough");
    gate.release();
    await world.pass(5);
    expect(a.sent.filter(isReleaseOfLock)).toHaveLength(1);
    expect(world.places).toEqual(["c 1"]);
    await world.allServed(1_000);
    expect(world.order).toEqual(["c1"]);
    world.expectNothingLeft();
  });

  test("the one that leads while its claim is on its way: those who share its place are served without a pause", async () => {
    const { world, a, b, c } = processes();
    const lock = await b.mutex(NAME, { fair: true }).lock();
    const controller = new AbortController();
    const gone = world.ask(a, "a1", { signal: controller.signal });
    world.ask(a, "a2");
    await world.pass(200);
    await world.lineUp(c, ["c1"]);
    const gate = createGate();
    let claims = 0;
    a.fate = (message) => {
      if (!isTakeOfLock(message) || claims > 0) return "answered";
      claims += 1;
      return gate.released;
    };
    await lock.unlock();
    await world.time.advanceUntil(() => claims > 0);
    controller.abort(new Error("enough"));
    await expect(gone.locking).rejects.toThrow("enough");
    await world.pass(5);
    gate.release();
    await world.allServed(1_000);
    expect(world.order).toEqual(["a2", "c1"]);
    world.expectNothingLeft();
  });

  test("all who share a place, while its look is on its way: it admits nobody who asked after another host came", async () => {
    const { world, a, b, c } = processes();
    const lock = await c.mutex(NAME, { fair: true }).lock();
    const controller = new AbortController();
    const { signal } = controller;
    for (const caller of ["a1", "a2"]) await world.lineUp(a, [caller], { signal });
    await world.lineUp(b, ["b1"]);
    await world.lineUp(a, ["a3"]);
    expect(world.places).toEqual(["a 1", "a 1", "b 1", "a 1"]);
    const [arrival, others] = [createGate(), createGate()];
    let looks = 0;
    a.hold = (message) => {
      if (!isConsistentLook(message) || world.table.row(lockAt(NAME)) !== undefined) return undefined;
      looks += 1;
      return looks === 1 ? arrival.released : undefined;
    };
    b.fate = () => others.released;
    await lock.unlock();
    await world.time.advanceUntil(() => looks > 0);
    controller.abort(new Error("enough"));
    await world.pass(5);
    arrival.release();
    await world.pass(200);
    others.release();
    await world.allServed();
    expect(world.order).toEqual(["b1", "a3"]);
    world.expectNothingLeft();
  });

  test("the one whose claim is refused by a free row: no second claim for one who asked after another host came", async () => {
    const { world, a, b, c } = processes();
    const [claim, others, controller] = [createGate(), createGate(), new AbortController()];
    world.ask(a, "a1", { signal: controller.signal });
    a.fate = (message) => (isTakeOfLock(message) ? claim.released : "answered");
    await world.time.advanceUntil(() => a.sent.some(isTakeOfLock));
    // The row remembers a tick that has run meanwhile.
    const tick = await c.mutex(NAME).tryLock({ once: 4 });
    await world.lineUp(b, ["b1"]);
    b.fate = () => others.released;
    await tick?.unlock();
    world.ask(a, "a2");
    // The caller has gone when the refusal comes.
    controller.abort(new Error("enough"));
    claim.release();
    await world.pass(200);
    others.release();
    await world.allServed();
    expect(world.order).toEqual(["b1", "a2"]);
  });

  test("a reader that was about to join others: one who asked after another host came does not join in its stead", async () => {
    const { world, a, b } = processes();
    const readers = { fair: true, ttlMs: 4_000, autoRenew: false };
    const { shared } = a.sharedMutex(NAME, readers);
    const first = await shared.lock();
    await world.pass(2_500);
    const [renewed, controller] = [createGate(), new AbortController()];
    let renewals = 0;
    a.hold = (message) => {
      if (message.kind !== "write" || message.write.kind !== "renew") return undefined;
      renewals += 1;
      return renewals === 1 ? renewed.released : undefined;
    };
    const gone = shared.lock({ signal: controller.signal });
    gone.catch(() => undefined);
    await world.pass(10);
    expect(renewals).toBe(1);
    const order: string[] = [];
    const writer = b.sharedMutex(NAME, { fair: true }).exclusive.run(async () => {
      order.push("writer");
      await world.time.clock().sleep(10);
    });
    await world.pass(200);
    const second = shared.run(() => order.push("reader"));
    controller.abort(new Error("enough"));
    await expect(gone).rejects.toThrow("enough");
    renewed.release();
    await world.pass(200);
    await first.unlock();
    await world.time.settle(Promise.all([writer, second]));
    expect(order).toEqual(["writer", "reader"]);
  });
});

describe("beside those who have no place: a busy process", () => {
  const HAND_OVER_MS = 300;
  const POLL = { minMs: 10, maxMs: 100 };

  /** Sections of 20 ms without end, of four callers that ask again at once. */
  function busy(world: World, host: MemoryHost): { stop(): Promise<void> } {
    const mutex = host.mutex(NAME, { fair: true, handOverMs: HAND_OVER_MS, poll: POLL });
    let isOver = false;
    const loops = Array.from({ length: 4 }, async () => {
      while (!isOver) await mutex.run(() => world.time.clock().sleep(20));
    });
    return {
      stop: async () => {
        isOver = true;
        await world.time.settle(Promise.all(loops));
        await Promise.all(loops);
      },
    };
  }

  test.each<readonly [string, (host: MemoryHost) => Promise<{ unlock(): Promise<void> }>]>([
    ["plain mutex", (host) => host.mutex(NAME, { handOverMs: HAND_OVER_MS, poll: POLL }).lock()],
    ["set", (host) => host.lockAll([NAME, "other"], { handOverMs: HAND_OVER_MS, poll: POLL })],
  ])("lets a %s in that marks the row", async (_, lock) => {
    const { world, a, b } = processes();
    const sections = busy(world, a);
    await world.pass(1_000);
    const locking = lock(b);
    const watched = watch(locking);
    await world.pass(HAND_OVER_MS + 500);
    expect(watched.settled).toBe(true);
    expect(b.sent.some((message) => message.kind === "write" && message.write.kind === "want")).toBe(true);
    await (await locking).unlock();
    await sections.stop();
    world.expectNothingLeft();
  });
});

test("a lease whose row was unlocked by force is not passed on: the next caller takes the row itself", async () => {
  const world = new World();
  const host = world.host("a");
  const mutex = host.mutex(NAME, { fair: true });
  const [first, second] = [mutex.lock(), mutex.lock()];
  await world.pass(1_000);
  const lock = await first;
  world.table.plant(lockAt(NAME), undefined);
  const unlocked = expect(lock.unlock()).rejects.toMatchObject({ code: "LOCK_LOST" });
  await world.pass(1_000);
  await unlocked;
  const next = await second;
  expect(next.uuid).not.toBe(lock.uuid);
  expect(world.table.row(lockAt(NAME))?.uuid).toBe(next.uuid);
});

test("a place is kept also where the margin takes more than half of the lease", async () => {
  const losses = hear("dynamutex:ticket-lost");
  const world = new World();
  const mutex = { ttlMs: 1_000, safetyMarginMs: 600, renewEveryMs: 200 };
  const gate = createGate();
  const holding = world
    .host("a")
    .mutex(NAME, { fair: true, ...mutex })
    .run(() => gate.released);
  await world.time.advance(10);
  const { locking } = world.ask(world.host("b"), "b", {}, mutex);
  await world.time.advance(10_000);
  expect(losses).toEqual([]);
  gate.release();
  await world.time.settle(Promise.all([holding, locking]));
  expect(world.order).toEqual(["b"]);
});
