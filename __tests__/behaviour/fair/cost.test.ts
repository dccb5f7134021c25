import { describe, expect, test } from "@jest/globals";
import type { Lock } from "../../../lib/lock.js";
import type { Mutex } from "../../../lib/mutex.js";
import type { MutexOptions } from "../../../lib/options/mutex.js";
import type { Session } from "../../../lib/session/session.js";
import { MemoryTable } from "../../../lib/testing/memory-table.js";
import { watch } from "../../support/eventually.js";
import { LibraryHost } from "../../support/library-host.js";
import { ManualTime } from "../../support/manual-time.js";
import { MemoryStore } from "../../support/message-store.js";
import { placesIn } from "../../support/places.js";
import { seededRandom } from "../../support/seeded-random.js";
import { Meter } from "./metered.js";

const NAME = "popular";

/** By so much is a unit of writing dearer than one of reading. */
const WRITE_PRICE = 5;

/** A waiter on a host of its own, and what its requests cost. */
interface Waiter {
  readonly meter: Meter;
  readonly session: Session;
  readonly locking: Promise<Lock>;
}

/** A lock that somebody holds, and a queue of hosts for it, in their order. */
class Queue {
  readonly time = new ManualTime();
  readonly table = new MemoryTable();
  readonly waiters: Waiter[] = [];
  holder: Lock | undefined;

  host(owner: string, options: MutexOptions = {}): { meter: Meter; session: Session; mutex: Mutex } {
    const meter = new Meter();
    const store = meter.on(new MemoryStore(this.table));
    const host = new LibraryHost({ store, clock: this.time.clock(), owner, random: seededRandom(7, owner) });
    return { meter, session: host.session, mutex: host.mutex(NAME, { fair: true, ...options }) };
  }

  async fill(waiters: number, options: MutexOptions = {}): Promise<void> {
    this.holder = await this.host("holder", options).mutex.lock();
    for (let place = 1; place <= waiters; place += 1) {
      const { mutex, ...host } = this.host(`host-${place}`, options);
      const locking = mutex.lock();
      locking.catch(() => undefined);
      this.waiters.push({ ...host, locking });
      await this.time.advanceUntil(() => placesIn(this.table, NAME).length === place);
    }
  }

  async empty(): Promise<void> {
    const closing = Promise.all(this.waiters.map(({ session }) => session.close()));
    await this.holder?.unlock();
    await closing;
    expect(placesIn(this.table, NAME)).toEqual([]);
  }
}

describe("a queue that stands still", () => {
  const WINDOW_MS = 30_000;

  /** What a second of waiting costs each of so many, when the holder has had the lock for half a minute. */
  async function costOf(waiters: number): Promise<{ looks: number; read: number; write: number }> {
    const queue = new Queue();
    await queue.fill(waiters);
    await queue.time.advance(WINDOW_MS);
    for (const { meter } of queue.waiters) meter.reset();
    await queue.time.advance(WINDOW_MS);
    const seconds = (waiters * WINDOW_MS) / 1_000;
    const [looks, read, write] = (["looks", "read", "write"] as const).map(
      (part) => queue.waiters.reduce((sum, { meter }) => sum + meter[part], 0) / seconds,
    ) as [number, number, number];
    await queue.empty();
    return { looks, read, write };
  }

  test("costs each waiter the less the more there are, and then little more than the renewals of the places", async () => {
    const [one, five, fifty, most] = [await costOf(1), await costOf(5), await costOf(50), await costOf(100)];
    // Only the next in line looks often, and nobody needs consistent reads by now.
    expect(one.looks).toBeLessThan(3);
    expect(one.read).toBeCloseTo(one.looks / 2, 5);
    expect(five.looks / one.looks).toBeLessThan(0.5);
    expect(fifty.looks / five.looks).toBeLessThan(0.5);
    expect(most.looks).toBeLessThan(fifty.looks);
    // A look every 5 s, as nobody pauses for longer.
    expect(most.looks).toBeLessThan(0.25);
    // Each renews its place twice a lease, of 30 s.
    for (const { write } of [fifty, most]) expect(write).toBeCloseTo(1 / 15, 2);
    for (const { read, write } of [fifty, most]) expect(read).toBeLessThan(0.5 * WRITE_PRICE * write);
  });
});

describe("a queue that moves", () => {
  const SECTION_MS = 400;

  /** How often those in the second half of a queue have looked, from when they had a place until they had the lock. */
  async function looksOf(waiters: number): Promise<number> {
    const queue = new Queue();
    await queue.fill(waiters);
    const { time } = queue;
    for (const { meter } of queue.waiters) meter.reset();
    const looks: number[] = [];
    const sections = queue.waiters.map(async ({ locking, meter }, index) => {
      const lock = await locking;
      looks[index] = meter.looks;
      await time.clock().sleep(SECTION_MS);
      await lock.unlock();
    });
    const served = watch(Promise.all(sections));
    await queue.holder?.unlock();
    await time.advanceUntil(() => served.settled, { stepMs: 10, withinMs: 300_000 });
    await Promise.all(sections);
    const second = looks.slice(waiters / 2);
    return second.reduce((sum, count) => sum + count, 0) / second.length;
  }

  test("takes a waiter looks like the logarithm of its place", async () => {
    const [four, sixteen, sixtyFour] = [await looksOf(4), await looksOf(16), await looksOf(64)];
    // As next in line it looks about five times in a section, and some more on its way there.
    expect(four).toBeGreaterThan(4);
    expect(four).toBeLessThan(20);
    // Where each looked as often in each section before its own, these would be 4 and 16 times as many.
    expect(sixteen / four).toBeLessThan(1.6);
    expect(sixtyFour / four).toBeLessThan(2.2);
  });
});
