import { describe, expect, test } from "@jest/globals";
import { PERMITS, permitOf, READERS } from "../../../lib/protocol/addresses.js";
import type { Take } from "../../../lib/protocol/writes.js";
import { hosts, type MemoryHost } from "../../support/memory-host.js";

const NAME = "wanted";
const TTL_MS = 10_000;

/** Two hosts of one table, and what delivers a take of the first once more, as the network may at any later time. */
function twoHosts() {
  const { time, one, other } = hosts();
  const deliverTakesAgain = (): void => {
    const takes = one.sent.flatMap((message) =>
      message.kind === "write" && message.write.kind === "take" ? [message.write as Take] : [],
    );
    for (const take of takes) one.table.apply(take);
  };
  return { time, one, other, deliverTakesAgain };
}

const rowsIn = ({ table }: MemoryHost, { first, last }: { readonly first: string; readonly last: string }) =>
  table.rows.filter(({ sort }) => sort >= first && sort <= last);

describe("a late copy of a take, after the release", () => {
  test("trap 38: of a permit brings back a row that nobody holds: the permit is missing until its lease is over", async () => {
    const { time, one, other, deliverTakesAgain } = twoHosts();
    const permit = await one.semaphore(NAME, { permits: 2, ttlMs: TTL_MS }).lock();
    await permit.unlock();
    deliverTakesAgain();
    expect(rowsIn(one, PERMITS).map(({ sort }) => permitOf(sort))).toEqual([permit.permit]);
    expect(permit.held).toBe(false);
    const theirs = other.semaphore(NAME, { permits: 2, ttlMs: TTL_MS });
    await using first = await theirs.tryLock();
    expect(first?.permit).toBe(1 - permit.permit);
    expect(await theirs.tryLock()).toBeNull();
    await time.advance(TTL_MS + 1);
    await using second = await theirs.tryLock();
    expect(second?.permit).toBe(permit.permit);
  });

  test("trap 38: of a reader keeps a writer waiting until its lease is over, and is removed then", async () => {
    const { time, one, other, deliverTakesAgain } = twoHosts();
    const reader = await one.sharedMutex(NAME, { ttlMs: TTL_MS }).shared.lock();
    await reader.unlock();
    deliverTakesAgain();
    expect(rowsIn(one, READERS)).toHaveLength(1);
    const { exclusive } = other.sharedMutex(NAME, { ttlMs: TTL_MS });
    expect(await exclusive.tryLock()).toBeNull();
    await time.advance(TTL_MS + 1);
    await using writer = await exclusive.tryLock();
    expect(writer?.held).toBe(true);
    expect(rowsIn(one, READERS)).toEqual([]);
  });

  test("trap 38: of a writer keeps readers out until its lease is over, and its guard passes beside nobody", async () => {
    const { time, one, other, deliverTakesAgain } = twoHosts();
    const writer = await one.sharedMutex(NAME, { ttlMs: TTL_MS }).exclusive.lock();
    await writer.unlock();
    deliverTakesAgain();
    const { shared } = other.sharedMutex(NAME, { ttlMs: TTL_MS });
    expect(await shared.tryLock()).toBeNull();
    await time.advance(TTL_MS + 1);
    await using reader = await shared.tryLock();
    expect(reader?.held).toBe(true);
    // What was brought back is gone: no guard of that uuid passes while the reader is in.
    expect(one.table.rows.map(({ uuid }) => uuid)).toEqual([reader?.uuid]);
  });

  test("trap 38: of the locks of a set brings back all of them, and holds none", async () => {
    const { time, one, other } = twoHosts();
    const set = await one.lockAll(["a", "b"], { ttlMs: TTL_MS });
    await set.unlock();
    const taken = one.sent.find((message) => message.kind === "writeAll");
    if (taken?.kind === "writeAll") one.table.applyAll(taken.takes);
    expect(set.held).toBe(false);
    expect(await other.mutex("a", { ttlMs: TTL_MS }).tryLock()).toBeNull();
    await time.advance(TTL_MS + 1);
    await using lock = await other.mutex("b", { ttlMs: TTL_MS }).tryLock();
    expect(lock?.held).toBe(true);
  });
});
