import { describe, expect, test } from "@jest/globals";
import { type Lock, type LockLostError, LockTable, type LossReason } from "../../lib/index.js";
import { type TestHostOptions, TestTable, type TestTableOptions } from "../../lib/testing/index.js";
import { watch } from "../support/eventually.js";

const HOUR_MS = 3_600_000;

/** A table whose time stands still, but for `advance()`. */
function manual(options: TestTableOptions = {}): TestTable {
  return new TestTable({ time: "manual", ...options });
}

/** What an unlock came to. */
async function endOf(lock: Lock): Promise<string> {
  return await lock.unlock().then(
    () => "released",
    ({ reason }: LockLostError) => reason,
  );
}

describe("time that is turned by hand", () => {
  test("stands still, but for advance()", async () => {
    const table = manual({ startAt: new Date("2030-01-01T00:00:00Z") });
    const lock = await table.host().mutex("report").lock();
    expect([lock.acquired.toISOString(), lock.remainingMs]).toEqual(["2030-01-01T00:00:00.000Z", 27_000]);
    await table.clock.advance(1_000);
    expect([table.clock.now.toISOString(), lock.remainingMs]).toEqual(["2030-01-01T00:00:01.000Z", 26_000]);
  });

  test("renews what is held for as long as it is held, at the moments at which that falls due", async () => {
    const table = manual({ ttlMs: 30_000 });
    const lock = await table.host().mutex("report").lock();
    const start = table.clock.now.getTime();
    await table.clock.advance(HOUR_MS);
    expect(lock.held).toBe(true);
    expect(lock.expires.getTime() - start).toBeGreaterThan(HOUR_MS);
    expect(await endOf(lock)).toBe("released");
    expect(table.held()).toEqual([]);
  });

  test("ends a wait at its moment and not before", async () => {
    const table = manual();
    await table.host().mutex("report").lock();
    const waiting = table.host().mutex("report").lock({ waitMs: 5_000 });
    let outcome = "waits";
    waiting.catch(({ code, waitedMs }) => {
      outcome = `${code} after ${waitedMs} ms`;
    });
    await table.clock.advance(4_999);
    expect(outcome).toBe("waits");
    await table.clock.advance(1);
    expect(outcome).toBe("LOCK_TIMEOUT after 5000 ms");
  });

  test("advance(0) waits until what is settled has had its effect", async () => {
    const table = manual();
    const order: string[] = [];
    const running = table
      .host()
      .mutex("report")
      .run(() => order.push("section"));
    await table.clock.advance(0);
    order.push("advanced");
    await running;
    expect(order).toEqual(["section", "advanced"]);
  });

  test.each([[-1], [Number.NaN], [Number.POSITIVE_INFINITY], ["1" as never]])("advance(%p) is refused", async (ms) => {
    await expect(manual().clock.advance(ms)).rejects.toMatchObject({ code: "LOCK_CONFIG", option: "ms" });
  });
});

test("time that passes by itself is what Date shows, unless a test says otherwise", () => {
  const before = Date.now();
  const shown = new TestTable().clock.now.getTime();
  expect(shown >= before && shown <= Date.now()).toBe(true);
  const { now } = new TestTable({ startAt: new Date(HOUR_MS) }).clock;
  expect(Math.floor(now.getTime() / HOUR_MS)).toBe(1);
});

describe("hosts", () => {
  test("are LockTables, with names of their own, and share nothing but the table", async () => {
    const table = manual();
    const [one, other, named] = [table.host(), table.host(), table.host({ owner: "cron" })];
    const takesLockTables = (...tables: LockTable[]) => tables.map(({ tableName }) => tableName);
    expect(takesLockTables(one, other, named)).toEqual(["locks", "locks", "locks"]);
    // On DynamoDB, and so on no table in memory.
    expect(one instanceof LockTable).toBe(false);
    const owners = [];
    for (const locks of [one, other, named])
      owners.push(await locks.mutex(`of-${owners.length}`).run((lock) => lock.owner));
    expect(owners).toEqual(["host-1", "host-2", "cron"]);
  });

  test("have the table's defaults, and their own before those", async () => {
    const table = manual({ ttlMs: 10_000, tableName: "app", keyPrefix: "lock#" });
    const [one, other] = [table.host(), table.host({ ttlMs: 20_000 })];
    await one.mutex("a").lock();
    await other.mutex("b").lock();
    expect(table.held().map(({ name, ttlMs }) => `${name} ${ttlMs}`)).toEqual(["a 10000", "b 20000"]);
    expect(one.tableName).toBe("app");
  });

  test("have the table's margin and period with its ttlMs alone; an option that is undefined is not given", () => {
    const table = manual({ ttlMs: 10_000, renewEveryMs: 6_000, safetyMarginMs: 2_000 });
    const held = async (options: TestHostOptions) =>
      (
        await table
          .host(options)
          .mutex(`ttl-${options.ttlMs ?? "of-the-table"}`)
          .lock()
      ).remainingMs;
    return expect(Promise.all([held({ ttlMs: undefined }), held({ ttlMs: 5_000 })])).resolves.toEqual([8_000, 4_500]);
  });

  test("of a table without a sort key have mutexes alone", () => {
    const locks = manual({ keys: { sort: null } }).host();
    expect(() => locks.semaphore("api", { permits: 2 })).toThrow(/^keys\.sort: /);
    expect(() => locks.mutex("m", { fair: true })).toThrow(/^fair: /);
  });

  test.each<[string, () => unknown, string]>([
    ["a client", () => new TestTable({ client: {} } as never), "client"],
    ["a clock", () => new TestTable({ clock: {} } as never), "clock"],
    ["an owner for all", () => new TestTable({ owner: "me" } as never), "owner"],
    ["another time", () => new TestTable({ time: "fake" } as never), "time"],
    ["a date that is none", () => new TestTable({ startAt: new Date("noon") }), "startAt"],
    ["a time that is no date", () => new TestTable({ startAt: HOUR_MS as never }), "startAt"],
    ["the time before which no lease ends", () => new TestTable({ startAt: new Date(0) }), "startAt"],
    ["something to call that is no function", () => new TestTable({ onTransactWrite: [] } as never), "onTransactWrite"],
    ["a misspelt option", () => new TestTable({ ttl: 5 } as never), "ttl"],
    ["what is no object", () => new TestTable("locks" as never), "options"],
    ["a table's option for a host", () => new TestTable().host({ keyPrefix: "a" } as never), "keyPrefix"],
    ["a clock for a host", () => new TestTable().host({ clock: {} } as never), "clock"],
    ["a host's option of another type", () => new TestTable().host({ poll: 5 } as never), "poll"],
    ["an owner without a name", () => new TestTable().host({ owner: "" }), "owner"],
    ["a host of another table", () => new TestTable().silence(new TestTable().host()), "host"],
    ["a lock that nobody holds", () => new TestTable().lose("report"), "which"],
    ["a guard that is none", () => new TestTable().admits({ Put: { TableName: "t", Item: {} } }), "guard"],
  ])("refuse %s", (_, make, option) => {
    expect(make).toThrow(expect.objectContaining({ code: "LOCK_CONFIG", option }));
  });
});

describe("a lock that is lost", () => {
  /** Who gets the lock next, at once and after a whole lease. */
  const NEXT: readonly (readonly [LossReason, "free" | "taken", "free" | "taken"])[] = [
    ["expired", "free", "free"],
    ["stolen", "taken", "free"],
    ["deleted", "free", "free"],
    ["forced", "taken", "free"],
    ["max-hold", "taken", "free"],
    ["closed", "taken", "free"],
  ];

  test.each(NEXT)(
    "as %s: its holder hears of it at once, and the lock is %s, and %s later",
    async (reason, now, later) => {
      const table = manual();
      const [one, other] = [table.host(), table.host()];
      const lock = await one.mutex("report").lock();
      const heard: unknown[] = [];
      lock.signal.addEventListener("abort", () => heard.push(lock.signal.reason.reason));
      table.lose("report", reason);
      expect([heard, lock.held]).toEqual([[reason], false]);
      const tryIt = async () => ((await other.mutex("report").tryRun(() => "ran")).ran ? "free" : "taken");
      expect(await tryIt()).toBe(now);
      await table.clock.advance(60_000);
      expect(await tryIt()).toBe(later);
      expect(await endOf(lock)).toBe(reason);
    },
  );

  test("is told to run(), whose section goes on until it looks at its signal", async () => {
    const table = manual();
    const running = table
      .host()
      .mutex("report")
      .run(async ({ signal }) => {
        table.lose("report");
        return signal.aborted;
      });
    await expect(running).rejects.toMatchObject({ code: "LOCK_LOST", reason: "expired" });
  });

  test("may be one of several: a permit, a member of a set, by its uuid", async () => {
    const table = manual();
    const locks = table.host();
    const semaphore = locks.semaphore("api", { permits: 2 });
    const [first, second] = [await semaphore.lock(), await semaphore.lock()];
    table.lose(second, "deleted");
    expect([first.held, second.held]).toEqual([true, false]);
    const set = await locks.lockAll(["a", "b"]);
    table.lose("b");
    expect([set.held, set.signal.reason.lockName]).toEqual([false, "b"]);
    const [listed] = table.held().filter(({ name }) => name === "api");
    table.lose(listed ?? "none");
    expect(first.held).toBe(false);
  });

  test("as stolen leaves the next fencing token to the next holder", async () => {
    const table = manual();
    const fenced = table.host().mutex("f", { fencing: true });
    const { fencingToken } = await fenced.lock();
    table.lose("f", "stolen");
    await table.clock.advance(60_000);
    expect(
      await table
        .host()
        .mutex("f", { fencing: true })
        .run((lock) => lock.fencingToken),
    ).toBeGreaterThan(fencingToken + 1n);
  });
});

describe("a table that does not answer", () => {
  test("applies nothing, lets a lock() fail after 10 s, and a lock be lost when its lease is over", async () => {
    const table = manual();
    const locks = table.host();
    const lock = await locks.mutex("held").lock();
    table.silence();
    const failed = expect(locks.mutex("wanted").lock()).rejects.toMatchObject({ code: "LOCK_STORE", answered: false });
    await Promise.all([failed, table.clock.advance(10_000)]);
    expect(table.held()).toMatchObject([{ name: "held" }]);
    expect(lock.held).toBe(true);
    await table.clock.advance(20_000);
    expect(lock.signal.reason).toMatchObject({ code: "LOCK_LOST", reason: "expired" });
  });

  test("for one host is a host that has died: another takes its lock over when the lease is over", async () => {
    const table = manual({ ttlMs: 10_000 });
    const [dead, other] = [table.host(), table.host()];
    await dead.mutex("report").lock();
    table.silence(dead);
    const waiting = other.mutex("report").lock();
    await table.clock.advance(9_000);
    expect(table.held()).toMatchObject([{ owner: "host-1" }]);
    await table.clock.advance(3_000);
    expect(await waiting).toMatchObject({ owner: "host-2", held: true });
  });

  test("keeps create(), check(), inspect(), list() and close() within their bounds", async () => {
    const table = manual();
    table.silence();
    const locks = table.host();
    const controller = new AbortController();
    const aborted = expect(locks.check({ signal: controller.signal })).rejects.toThrow("enough");
    controller.abort(new Error("enough"));
    await aborted;
    const inspecting = locks.mutex("m").inspect();
    const calls = [locks.create({ timeoutMs: 3_000 }), locks.check(), inspecting];
    const [outcomes, watched] = [Promise.allSettled(calls), watch(inspecting)];
    await table.clock.advance(9_999);
    expect(watched.settled).toBe(false);
    await table.clock.advance(1);
    expect(await outcomes).toMatchObject(calls.map(() => ({ reason: { code: "LOCK_STORE", answered: false } })));
    const list = (async () => {
      for await (const _ of locks.list()) return;
    })();
    await Promise.all([expect(list).rejects.toMatchObject({ code: "LOCK_STORE" }), table.clock.advance(10_000)]);
    await locks.close();
  });

  test("fails with an error as production does: what may pass is tried again, what may not is thrown at once", async () => {
    const table = manual();
    const locks = table.host();
    table.fail(Object.assign(new Error("slow down"), { name: "ThrottlingException" }));
    const waiting = locks.mutex("report").lock();
    await table.clock.advance(1_000);
    table.answer();
    await table.clock.advance(2_000);
    expect((await waiting).held).toBe(true);
    const denied = Object.assign(new Error("no"), { name: "AccessDeniedException", $fault: "client" });
    table.fail(denied, locks);
    await expect(locks.mutex("other").lock()).rejects.toMatchObject({ code: "LOCK_STORE", cause: denied });
    expect((await table.host().mutex("other").lock()).held).toBe(true);
  });
});

describe("guarded writes", () => {
  const items = [{ Put: { TableName: "orders", Item: { id: { S: "17" } } } }];

  test("are told once, with their items, if the lock is held", async () => {
    const told: unknown[] = [];
    const table = manual({ onTransactWrite: (given) => void told.push(given) });
    const lock = await table.host().mutex("order").lock();
    await lock.transactWrite(items);
    expect([told, table.transactions]).toEqual([[items], [items]]);
    table.lose(lock);
    await expect(lock.transactWrite(items)).rejects.toMatchObject({ code: "LOCK_LOST" });
    expect(told).toEqual([items]);
  });

  test("are one instant: nobody takes the lock between the guard and the writes", async () => {
    const table: TestTable = manual({
      // Types alone do not keep anybody from it.
      onTransactWrite: (async () => {
        await table.clock.advance(0);
      }) as unknown as () => void,
    });
    const lock = await table.host().mutex("order").lock();
    await expect(lock.transactWrite(items)).rejects.toMatchObject({ code: "LOCK_CONFIG", option: "onTransactWrite" });
    expect([lock.held, table.transactions]).toEqual([true, []]);
  });

  test("that a test refuses are refused with its own error, and the lock is still held", async () => {
    const refusal = Object.assign(new Error("no"), { name: "TransactionCanceledException" });
    const table = manual({
      onTransactWrite: () => {
        throw refusal;
      },
    });
    const lock = await table.host().mutex("order").lock();
    await expect(lock.transactWrite(items)).rejects.toBe(refusal);
    expect([lock.held, table.transactions]).toEqual([true, []]);
  });

  test("by a guard of their own are admitted while the lock is held", async () => {
    const keys = { partition: "pk", sort: "sk" };
    const table = manual({ keys, keyPrefix: "lock#" });
    const lock = await table.host().mutex("order", { fencing: true }).lock();
    const guards = [await lock.guard(), await lock.guard({ document: true })];
    expect(guards.map((guard) => table.admits(guard))).toEqual([true, true]);
    expect(guards[1]?.ConditionCheck?.Key).toEqual({ pk: "lock#order", sk: "lock" });
    table.lose(lock, "stolen");
    expect(guards.map((guard) => table.admits(guard))).toEqual([false, false]);
    const copied = structuredClone(guards[0]);
    expect(table.admits(copied ?? {})).toBe(false);
  });
});
