import { describe, expect, test } from "@jest/globals";
import { listWaiters } from "../../../lib/operations/inspect.js";
import {
  type Address,
  MUTEX_QUEUE,
  permitAt,
  placeAt,
  placesOf,
  readerAt,
  SEMAPHORE_QUEUE,
  SHARED_MUTEX_QUEUE,
  writerAt,
} from "../../../lib/protocol/addresses.js";
import { ManualTime } from "../../support/manual-time.js";
import { MemoryHost } from "../../support/memory-host.js";

const NAME = "name";
const TTL_MS = 30_000;

/** Rows of other kinds of locks under the same name, held and waited for, and more of them than one page shows. */
const OTHERS: readonly Address[] = [
  ...Array.from({ length: 150 }, (_, permit) => permitAt(NAME, permit)),
  ...[1n, 2n, 3n].map((ticket) => placeAt(NAME, ticket, SEMAPHORE_QUEUE)),
  readerAt(NAME, "0a000000-0000-4000-8000-000000000000"),
  writerAt(NAME),
  placeAt(NAME, 1n, SHARED_MUTEX_QUEUE),
];

function plant({ table }: MemoryHost, expires: number): void {
  for (const [index, at] of OTHERS.entries()) {
    const row = {
      format: 1,
      uuid: `other ${index}`,
      owner: "other",
      expires,
      ttlMs: TTL_MS,
      acquired: expires - TTL_MS,
    };
    table.plant(at, row);
  }
}

const sortsOf = ({ table }: MemoryHost): readonly string[] => table.rows.map(({ sort }) => sort).sort();

describe("the queue of a mutex, among the rows of other kinds of locks", () => {
  test.each([
    ["that are held", 30_000],
    ["whose leases are over", -1],
  ])("%s, has no place but its own, and leaves them alone", async (_case, leftMs) => {
    const time = new ManualTime();
    const host = new MemoryHost(time);
    plant(host, time.now + leftMs);
    const others = sortsOf(host);
    const mutex = host.mutex(NAME, { fair: true });
    const lock = await mutex.tryLock();
    expect(lock).not.toBeNull();
    expect(await listWaiters(host.session, NAME, MUTEX_QUEUE)).toEqual([]);
    await lock?.unlock();
    await time.advance(100);
    expect(sortsOf(host)).toEqual(others);
  });

  test("lets its waiters in by their own tickets", async () => {
    const time = new ManualTime();
    const holder = new MemoryHost(time, { owner: "holder" });
    const waiter = new MemoryHost(time, { owner: "waiter", table: holder.table });
    plant(holder, time.now + 600_000);
    const lock = await holder.mutex(NAME, { fair: true }).tryLock();
    expect(lock).not.toBeNull();
    let isIn = false;
    const waiting = waiter.mutex(NAME, { fair: true }).lock();
    void waiting.then(() => {
      isIn = true;
    });
    await time.advance(2_000);
    const { first, last } = placesOf(MUTEX_QUEUE);
    expect(sortsOf(holder).filter((sort) => first <= sort && sort <= last)).toHaveLength(1);
    await lock?.unlock();
    await time.advance(2_000);
    expect(isIn).toBe(true);
    await (await waiting).unlock();
  });
});
