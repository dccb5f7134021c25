import { describe, expect, test } from "@jest/globals";
import { LockStoreError } from "../../../lib/errors.js";
import type { Mutex } from "../../../lib/mutex.js";
import type { MutexOptions } from "../../../lib/options/mutex.js";
import { LOCK_SORT, lockAt } from "../../../lib/protocol/addresses.js";
import { MemoryTable } from "../../../lib/testing/memory-table.js";
import type { Clock } from "../../../lib/time/clock.js";
import { takesOf } from "../../proof/simulation/message.js";
import { watch } from "../../support/eventually.js";
import { LibraryHost } from "../../support/library-host.js";
import { ManualTime } from "../../support/manual-time.js";
import type { Answer, Message } from "../../support/message.js";
import { MemoryStore } from "../../support/message-store.js";
import { placesIn } from "../../support/places.js";
import { seededRandom } from "../../support/seeded-random.js";

const NAME = "popular";
const SEED = Number(process.env.FAIR_SEED ?? Date.now() % 1_000_000);

/** What a request meets on its way: it may wait there, and fail. */
type Way = (message: Message) => Promise<void>;

/** A table in memory behind a network. */
class RemoteStore extends MemoryStore {
  readonly #there: Way;
  readonly #back: Way;

  constructor(table: MemoryTable, { there, back = async () => {} }: { readonly there: Way; readonly back?: Way }) {
    super(table);
    this.#there = there;
    this.#back = back;
  }

  protected override async send(message: Message, signal: AbortSignal): Promise<Answer> {
    await this.#there(message);
    const answer = await super.send(message, signal);
    await this.#back(message);
    return answer;
  }
}

const isTakeOfLock = (message: Message): boolean => takesOf(message).some(({ at }) => at.sort === LOCK_SORT);
const isConsistentQuery = (message: Message): boolean => message.kind === "query" && message.query.consistent;

/** Whether somebody takes the lock, as opposed to nobody within so long. */
async function within(time: ManualTime, ms: number, promise: Promise<unknown>): Promise<boolean> {
  const watched = watch(promise);
  for (const end = time.now + ms; !watched.settled && time.now < end; ) await time.advance(10);
  return watched.settled;
}

describe("a waiter whose row is there", () => {
  test("need not fear old looks: no copy of a claim leaves later than 3 s after the look that it relies on", async () => {
    const [time, table] = [new ManualTime(), new MemoryTable()];
    const clock = time.clock();
    const looks: number[] = [];
    const claims: number[] = [];
    let isThrottled = true;
    const mutexOf = (owner: string, there: Way): Mutex => {
      const store = new RemoteStore(table, { there });
      return new LibraryHost({ store, clock, owner }).mutex(NAME, { fair: true });
    };
    const first = mutexOf("first", async (message) => {
      if (isConsistentQuery(message)) looks.push(time.elapsed);
      if (!isTakeOfLock(message)) return;
      claims.push(time.elapsed);
      if (isThrottled) throw new LockStoreError("slow down", { transient: true, throttled: true });
    }).lock();
    await time.advance(10_000);
    isThrottled = false;
    expect(claims.length).toBeGreaterThan(5);
    for (const claim of claims) {
      const look = looks.findLast((at) => at <= claim) ?? Number.NaN;
      expect(claim - look).toBeLessThanOrEqual(3_000);
    }
    // It has looked again whenever its look was too old.
    expect(looks.length).toBeGreaterThanOrEqual(4);
    expect(await within(time, 5_000, first)).toBe(true);
    expect(placesIn(table, NAME)).toEqual([]);
    await (await first).unlock();
  });

  test("is not overtaken by a claim that did not get through while its look counted", async () => {
    const [time, table] = [new ManualTime(), new MemoryTable()];
    const clock = time.clock();
    const mutexOf = (owner: string, there: Way = async () => {}): Mutex => {
      const store = new RemoteStore(table, { there });
      return new LibraryHost({ store, clock, owner }).mutex(NAME, { fair: true });
    };
    let isDown = true;
    let hasClaimed = false;
    // It has found nobody waiting, and then its claims do not get through.
    const slow = mutexOf("slow", async (message) => {
      if (!isTakeOfLock(message)) return;
      hasClaimed = true;
      if (isDown) throw new LockStoreError("no way", { transient: true, answered: false });
    }).lock();
    while (!hasClaimed) await time.advance(1);
    const holder = await mutexOf("holder").lock();
    let isFrozen = false;
    const next = mutexOf("next", async () => {
      while (isFrozen) await clock.sleep(100);
    }).lock();
    while (placesIn(table, NAME).length === 0) await time.advance(10);
    await time.advance(3_000);

    // The lock is free, and nobody but the slow one could take it.
    isFrozen = true;
    isDown = false;
    await holder.unlock();
    expect(await within(time, 8_000, slow)).toBe(false);
    isFrozen = false;
    expect(await within(time, 5_000, next)).toBe(true);
    await (await next).unlock();
    expect(await within(time, 5_000, slow)).toBe(true);
    await (await slow).unlock();
  });
});

describe(`60 hosts that ask 50 ms apart, with seed ${SEED}`, () => {
  const HOSTS = 60;
  const APART_MS = 50;
  const STAY_MS = 80;

  interface Visit {
    readonly askedAt: number;
    readonly enteredAt: number;
    readonly leftAt: number;
  }

  /** Each way of a request takes 5 to 60 ms, and one in ten up to 250 ms: rows come in another order than tickets. */
  function network(clock: Clock, host: number): Way {
    const random = seededRandom(SEED, "network", host);
    return async () => await clock.sleep(random() < 0.1 ? 60 + 190 * random() : 5 + 55 * random());
  }

  /** How they fared, and how many tickets they drew. */
  async function storm(options: MutexOptions): Promise<{ visits: readonly Visit[]; draws: number }> {
    const [time, table] = [new ManualTime(), new MemoryTable()];
    let draws = 0;
    const visit = async (index: number): Promise<Visit> => {
      const clock = time.clock({ aheadMs: (index % 21) * 20 - 200, maxSkewMs: 200 });
      const way = network(clock, index);
      const there: Way = async (message) => {
        await way(message);
        if (message.kind === "write" && message.write.kind === "draw") draws += 1;
      };
      const store = new RemoteStore(table, { there, back: way });
      const random = seededRandom(SEED, "host", index);
      const mutex = new LibraryHost({ store, clock, owner: `host#${index}`, random }).mutex(NAME, options);
      await clock.sleep(index * APART_MS);
      const askedAt = time.elapsed;
      const lock = await mutex.lock();
      const enteredAt = time.elapsed;
      await clock.sleep(STAY_MS);
      const leftAt = time.elapsed;
      await lock.unlock();
      return { askedAt, enteredAt, leftAt };
    };
    const all = Promise.all(Array.from({ length: HOSTS }, (_, index) => visit(index)));
    expect(await within(time, 300_000, all)).toBe(true);
    expect(table.row(lockAt(NAME))).toBeUndefined();
    return { visits: [...(await all)].sort((one, other) => one.enteredAt - other.enteredAt), draws };
  }

  /** How many pairs that asked more than a second apart were served in the other order. */
  function overtakings(inOrder: readonly Visit[]): number {
    return inOrder.flatMap((early, index) =>
      inOrder.slice(index + 1).filter((late) => early.askedAt - late.askedAt > 1_000),
    ).length;
  }

  test("fair: they draw at most 1.1 tickets each, and none who asked a second later is served earlier", async () => {
    const { visits, draws } = await storm({ fair: true });
    expect(visits.filter(({ enteredAt }, index) => enteredAt < (visits[index - 1]?.leftAt ?? 0))).toEqual([]);
    expect(overtakings(visits)).toBe(0);
    expect(draws).toBeGreaterThan(HOSTS / 2);
    expect(draws / HOSTS).toBeLessThanOrEqual(1.1);
  });

  test("plain: the same count finds many who are served before those who asked a second earlier", async () => {
    const { visits, draws } = await storm({});
    expect(draws).toBe(0);
    expect(overtakings(visits)).toBeGreaterThan(20);
  });
});
