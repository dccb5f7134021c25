import { afterEach, beforeEach, describe, expect, jest, test } from "@jest/globals";
import { TestTable } from "../../lib/testing/index.js";

afterEach(() => void jest.useRealTimers());

describe.each<[string, "Date" | "performance" | undefined]>([
  ["", undefined],
  [", with the time of day left alone", "Date"],
  [", with the stopwatch left alone", "performance"],
])("with the fake timers of Jest%s", (_, real) => {
  beforeEach(() => void jest.useFakeTimers(real === undefined ? {} : { doNotFake: [real] }));

  test("what needs no time needs nobody who turns it", async () => {
    const table = new TestTable();
    const [one, other] = [table.host(), table.host()];
    expect(await one.mutex("report").run(({ held }) => held)).toBe(true);
    const lock = await one.mutex("report").lock();
    expect(await other.mutex("report").tryLock()).toBeNull();
    // The sections of one host pass a lock on.
    const next = one.mutex("report").run(() => "next");
    await lock.unlock();
    expect(await next).toBe("next");
    await one.semaphore("api", { permits: 2 }).run(() => undefined);
    await one.sharedMutex("data").shared.run(() => undefined);
    await (await one.lockAll(["a", "b"])).unlock();
    for await (const held of one.list()) expect(held).toBeUndefined();
    expect((await one.check()).usable).toBe(true);
    await one.close();
  });

  test("time that passes on them passes for the locks", async () => {
    const table = new TestTable();
    const [one, other] = [table.host(), table.host()];
    const lock = await one.mutex("report").lock();
    const late = other.mutex("report").lock({ waitMs: 5_000 });
    const refused = expect(late).rejects.toMatchObject({ code: "LOCK_TIMEOUT" });
    await jest.advanceTimersByTimeAsync(6_000);
    await refused;
    await jest.advanceTimersByTimeAsync(120_000);
    expect(lock.held).toBe(true);
    table.silence(one);
    const waiting = other.mutex("report").lock();
    await jest.advanceTimersByTimeAsync(60_000);
    expect([lock.signal.aborted, (await waiting).held]).toEqual([true, true]);
  });

  test("advance() lets time pass for the locks alone", async () => {
    const table = new TestTable();
    let rang = false;
    setTimeout(() => {
      rang = true;
    }, 5_000);
    await table.host().mutex("report").lock();
    const waiting = table.host().mutex("report").lock({ waitMs: 5_000 });
    const refused = expect(waiting).rejects.toMatchObject({ code: "LOCK_TIMEOUT" });
    await table.clock.advance(60_000);
    await refused;
    expect(rang).toBe(false);
  });

  test("a table whose time is turned by hand does not notice them", async () => {
    const table = new TestTable({ time: "manual" });
    const lock = await table.host().mutex("report").lock();
    const { remainingMs } = lock;
    await jest.advanceTimersByTimeAsync(60_000);
    expect(lock.remainingMs).toBe(remainingMs);
    await table.clock.advance(60_000);
    expect(lock.held).toBe(true);
  });
});

test("a time of day that is set back moves no lock, and one that is set forward ends its lease", async () => {
  jest.useFakeTimers({ now: Date.UTC(2030, 0, 1) });
  const lock = await new TestTable().host().mutex("report").lock();
  jest.setSystemTime(Date.UTC(2020, 0, 1));
  expect([lock.held, lock.remainingMs]).toEqual([true, 27_000]);
  await jest.advanceTimersByTimeAsync(60_000);
  expect(lock.held).toBe(true);
  jest.setSystemTime(Date.UTC(2040, 0, 1));
  expect(lock.held).toBe(false);
});
