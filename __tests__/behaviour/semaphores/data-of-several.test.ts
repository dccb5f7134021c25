import { describe, expect, test } from "@jest/globals";
import { TestTable } from "../../../lib/testing/index.js";

/** Fits into one item, and not twelve times into the 4 MB of a transaction. */
const DATA = { text: "x".repeat(380 * 1_024) };

const TOO_MUCH = {
  code: "LOCK_CONFIG",
  message: expect.stringMatching(
    /^data: .*must be at most \d+ bytes where 12 rows store it: a transaction carries 4 MB/,
  ),
};

describe("data of several rows that one transaction takes", () => {
  test("is refused by name where a transaction cannot carry it: of permits, and of a set", async () => {
    await using locks = new TestTable().host();
    const semaphore = locks.semaphore("a", { permits: 12 });
    const names = Array.from({ length: 12 }, (_, index) => `lock-${index}`);
    await expect(semaphore.lock({ permits: 12, data: DATA })).rejects.toMatchObject(TOO_MUCH);
    await expect(semaphore.tryLock({ permits: 12, data: DATA })).rejects.toMatchObject(TOO_MUCH);
    await expect(locks.lockAll(names, { data: DATA })).rejects.toMatchObject(TOO_MUCH);
  });

  test("is stored with one row, and with as many as a transaction carries", async () => {
    await using locks = new TestTable().host();
    const semaphore = locks.semaphore("a", { permits: 12 });
    await (await semaphore.lock({ data: DATA })).unlock();
    await (await semaphore.lock({ permits: 10, data: DATA })).unlock();
  });
});
