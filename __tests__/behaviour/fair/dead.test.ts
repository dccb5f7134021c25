import { describe, expect, test } from "@jest/globals";
import type { Mutex } from "../../../lib/mutex.js";
import type { MutexOptions } from "../../../lib/options/mutex.js";
import { lockAt, MUTEX_QUEUE, placeAt } from "../../../lib/protocol/addresses.js";
import type { Row } from "../../../lib/protocol/row.js";
import { Sweeper } from "../../../lib/queues/sweeper.js";
import type { Session } from "../../../lib/session/session.js";
import { MemoryTable } from "../../../lib/testing/memory-table.js";
import { watch } from "../../support/eventually.js";
import { LibraryHost } from "../../support/library-host.js";
import { type ManualClockOptions, ManualTime } from "../../support/manual-time.js";
import { MemoryStore } from "../../support/message-store.js";
import { placesIn } from "../../support/places.js";

const NAME = "name";
const LONGEST_POLL_MS = 500;

/** A table in memory, and a time that passes when a test says so. */
class World {
  readonly time = new ManualTime();
  readonly table = new MemoryTable();

  host(owner: string, clock: ManualClockOptions = {}): Session {
    return this.#host(owner, clock).session;
  }

  fair(owner: string, options: MutexOptions = {}, clock: ManualClockOptions = {}): Mutex {
    return this.#host(owner, clock).mutex(NAME, { fair: true, ...options });
  }

  #host(owner: string, clock: ManualClockOptions): LibraryHost {
    return new LibraryHost({ store: new MemoryStore(this.table), clock: this.time.clock(clock), owner });
  }

  /** The row of a waiter who died just after he wrote it, and the last ticket that was drawn. */
  plantDead(ticket: bigint, ttlMs: number, expires = this.time.now + ttlMs): void {
    this.table.plant({ name: NAME, sort: MUTEX_QUEUE.counter }, { format: 1, n: ticket });
    const [uuid, owner] = [`uuid ${ticket}`, `dead ${ticket}`];
    const row = { format: 1, uuid, owner, expires, ttlMs, acquired: this.time.now };
    this.table.plant(placeAt(NAME, ticket), row);
  }

  /** For how long a lock was waited for, to the nearest 10 ms. */
  async waited(locking: Promise<unknown>): Promise<number> {
    const startedAt = this.time.now;
    const watched = watch(locking);
    while (!watched.settled) await this.time.advance(10);
    return this.time.now - startedAt;
  }
}

describe("a waiter that has died", () => {
  test("and is shown by a look that was under way when the table closed, is left to others", async () => {
    const world = new World();
    world.plantDead(1n, 1_000);
    const session = world.host("a");
    await session.close();
    const at = placeAt(NAME, 1n);
    // It comes back at all: nothing here waits, so nothing else could end it.
    new Sweeper(session, 30_000).add([world.table.row(at) as Row]);
    expect(world.table.row(at)).toBeDefined();
  });

  test.each([1_000, 10_000, 60_000])(
    "with a lease of %i ms delays those behind it by that and a poll at most",
    async (ttlMs) => {
      const world = new World();
      world.plantDead(1n, ttlMs);
      const waited = await world.waited(world.fair("a").lock());
      expect(waited).toBeGreaterThanOrEqual(ttlMs);
      expect(waited).toBeLessThanOrEqual(ttlMs + LONGEST_POLL_MS);
    },
  );

  test("and whose row has no holder is removed, each of several with the same stamp", async () => {
    const world = new World();
    const row = { format: 1, owner: "dead", expires: world.time.now - 1, ttlMs: 1_000, acquired: world.time.now };
    for (const ticket of [1n, 2n, 3n]) world.table.plant(placeAt(NAME, ticket), row);
    const lock = await world.fair("a").lock();
    await world.time.advance(100);
    expect(placesIn(world.table, NAME)).toEqual([]);
    await lock.unlock();
  });

  test("with a clock that ran ahead is skipped once its row has not changed for its lease", async () => {
    const world = new World();
    world.plantDead(1n, 5_000, world.time.now + 3_600_000);
    const waited = await world.waited(world.fair("a").lock());
    expect(waited).toBeGreaterThanOrEqual(5_000);
    expect(waited).toBeLessThanOrEqual(5_000 + LONGEST_POLL_MS);
  });

  test("is remembered from try to try, for those who never wait", async () => {
    const world = new World();
    world.plantDead(1n, 5_000);
    const mutex = world.fair("a", { takeover: "unchanged" });
    expect(await mutex.tryLock()).toBeNull();
    await world.time.advance(4_999);
    expect(await mutex.tryLock()).toBeNull();
    await world.time.advance(1);
    expect(await mutex.tryLock()).not.toBeNull();
  });

  test("between taking the lock and removing its ticket delays the next by what is left of either", async () => {
    const world = new World();
    const ttlMs = 5_000;
    const row = { uuid: "uuid 1", owner: "dead 1", expires: world.time.now + ttlMs, ttlMs, acquired: world.time.now };
    world.plantDead(1n, ttlMs);
    world.table.plant(lockAt(NAME), { format: 1, ...row });
    const waited = await world.waited(world.fair("a").lock());
    expect(waited).toBeGreaterThanOrEqual(ttlMs);
    // A poll for the ticket, and one for the lock.
    expect(waited).toBeLessThanOrEqual(ttlMs + 2 * LONGEST_POLL_MS);
  });
});

describe("a waiter that lives", () => {
  test("is never skipped, however long it waits, by hosts whose clocks differ as much as is allowed", async () => {
    const world = new World();
    const [ahead, behind] = [
      { aheadMs: 500, maxSkewMs: 500 },
      { aheadMs: -500, maxSkewMs: 500 },
    ];
    const ttlMs = 4_000;
    const holder = await world.fair("holder", { ttlMs }).lock();
    const first = world.fair("first", { ttlMs }, behind).lock();
    await world.time.advance(100);
    const second = world.fair("second", { ttlMs }, ahead).lock();
    const entered = watch(second);
    await world.time.advance(60_000);
    expect(placesIn(world.table, NAME).map(({ owner }) => owner)).toEqual(["first", "second"]);
    await holder.unlock();
    await world.waited(first);
    await world.time.advance(20_000);
    expect(entered.settled).toBe(false);
    await (await first).unlock();
    await world.waited(second);
  });
});
