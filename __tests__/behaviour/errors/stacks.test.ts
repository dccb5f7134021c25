import { describe, expect, test } from "@jest/globals";
import type { Lock } from "../../../lib/index.js";
import { LockStoreError } from "../../../lib/index.js";
import { TestTable } from "../../../lib/testing/index.js";

function manual() {
  const table = new TestTable({ time: "manual" });
  return { table, one: table.host(), other: table.host() };
}

/** Code of a user, with a name to be found in a stack. */
async function theCaller(call: () => unknown): Promise<unknown> {
  return await call();
}

async function anotherCaller(call: () => unknown): Promise<unknown> {
  return await call();
}

/** What calls of two functions reject with, after so much time. */
async function rejections(table: TestTable, call: () => unknown, ms: number): Promise<readonly Error[]> {
  const calls = [theCaller(call), anotherCaller(call)].map((called) =>
    called.then(
      () => new Error("fulfilled"),
      (error: Error) => error,
    ),
  );
  await table.clock.advance(ms);
  return await Promise.all(calls);
}

function expectStacks(errors: readonly Error[], code: string): void {
  const [one, other] = errors;
  for (const error of errors) {
    expect(error).toMatchObject({ code });
    expect(error.stack).toContain(`${error.name}: ${error.message}`);
  }
  expect(one?.stack).toContain("theCaller");
  expect(one?.stack).not.toContain("anotherCaller");
  expect(other?.stack).toContain("anotherCaller");
}

describe("the stack of an error names the function that called:", () => {
  test("a timeout's", async () => {
    const { table, one, other } = manual();
    await one.lockAll(["m", "s"]);
    await one.semaphore("s", { permits: 1 }).lock();
    const mutex = other.mutex("m");
    for (const call of [
      () => mutex.lock({ waitMs: 1_000 }),
      () => mutex.lock({ waitMs: 0 }),
      () => mutex.run(() => 1, { waitMs: 1_000 }),
      () => other.mutex("m", { fair: true }).lock({ waitMs: 1_000 }),
      () => other.lockAll(["m", "n"], { waitMs: 1_000 }),
      () => other.semaphore("s", { permits: 1 }).lock({ waitMs: 1_000 }),
      () => mutex.singleFlight(() => 1, { waitMs: 1_000 }),
    ]) {
      expectStacks(await rejections(table, call, 1_000), "LOCK_TIMEOUT");
    }
  });

  test("a store's, of which the cause keeps its own", async () => {
    const { table, one } = manual();
    const cause = Object.assign(new Error("no"), { name: "AccessDeniedException", $fault: "client" });
    const { stack } = cause;
    table.fail(cause);
    const mutex = one.mutex("m");
    let names = 0;
    for (const call of [
      () => mutex.lock(),
      // Two tries of one name are one claim: the second is told that it is held.
      () => one.mutex(`m${++names}`).tryLock(),
      () => one.mutex(`m${++names}`).tryRun(() => 1),
      () => mutex.inspect(),
      () => mutex.forceUnlock("uuid"),
      () => mutex.singleFlight(() => 1),
      () => one.lockAll(["a", "b"]),
      () => one.semaphore("s", { permits: 1 }).inspect(),
      () => one.sharedMutex("s").inspect(),
      () => one.sharedMutex("s").forceUnlock("uuid"),
      () => one.create(),
    ]) {
      const errors = await rejections(table, call, 20_000);
      expectStacks(errors, "LOCK_STORE");
      for (const error of errors) expect(error).toMatchObject({ cause: { stack } });
    }
  });

  test("that of a table which is closed while they wait, and afterwards", async () => {
    const { table, one, other } = manual();
    await one.mutex("m").lock();
    const calls = rejections(table, () => other.mutex("m").lock(), 0);
    await other.close();
    expectStacks(await calls, "LOCK_CLOSED");
    expectStacks(await rejections(table, () => other.mutex("m").lock(), 0), "LOCK_CLOSED");
  });

  test("a loss's, which is one error for all, the first of them", async () => {
    const { table, one } = manual();
    for (const call of [
      (lock: Lock) => lock.unlock(),
      (lock: Lock) => lock.extend(),
      async (lock: Lock) => lock.assertHeld(),
      (lock: Lock) => lock.replaceData({ a: 1 }),
      (lock: Lock) => lock.guard(),
    ]) {
      const lock = await one.mutex("m").lock();
      table.lose("m");
      const error = await theCaller(() => call(lock)).catch((thrown: Error) => thrown);
      expect(error).toBe(lock.signal.reason);
      expect((error as Error).stack).toContain("theCaller");
      const again = await anotherCaller(() => lock.extend()).catch((thrown: Error) => thrown);
      expect(again).toBe(error);
      expect((again as Error).stack).not.toContain("anotherCaller");
    }
  });

  test("and an error of `fn` stays as it is", async () => {
    const { one } = manual();
    const error = new LockStoreError("of the function");
    const { stack } = error;
    const thrown = await theCaller(() => one.mutex("m").run(() => Promise.reject(error))).catch((it: Error) => it);
    expect(thrown).toBe(error);
    expect(error.stack).toBe(stack);
  });
});
