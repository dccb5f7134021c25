import { describe, expect, test } from "@jest/globals";
import { Injectable, type Type } from "@nestjs/common";
import type { Lock } from "../../lib/index.js";
import { HeldLock, Locked, OncePer, type OncePerOptions } from "../../lib/nestjs/index.js";
import { TestTable, type TestTableOptions } from "../../lib/testing/index.js";
import { startApplication } from "./application.js";

const HOUR_MS = 3_600_000;
const AT: TestTableOptions = { time: "manual", startAt: new Date("2026-11-02T06:05:00Z") };

/** What has run, in order. */
const runs: string[] = [];

@Injectable()
class Invoices {
  @OncePer(HOUR_MS, { name: "send-invoices" })
  async send(from: string, @HeldLock() lock?: Lock): Promise<void> {
    runs.push(`${from}: ${new Date(lock?.tick ?? 0).toISOString()}`);
  }

  @OncePer(HOUR_MS, { untilSuccess: { maxAttempts: 3 } })
  async retried(outcome: "fails" | "works", @HeldLock() lock?: Lock): Promise<void> {
    runs.push(`attempt ${lock?.attempt} ${outcome}`);
    if (outcome === "fails") throw new Error("try again");
  }

  @OncePer(HOUR_MS)
  @Locked("both")
  async both(@HeldLock() lock?: Lock): Promise<void> {
    runs.push(`under ${lock?.name}`);
  }
}

const start = async (table: TestTable) =>
  (await startApplication(table.host(), { providers: [Invoices] })).get(Invoices);

describe("a method with @OncePer()", () => {
  test("runs once in each period, on one of three applications, and the calls of the others resolve", async () => {
    const table = new TestTable(AT);
    const [a, b, c] = [await start(table), await start(table), await start(table)];
    runs.length = 0;
    await a.send("a");
    for (const [host, service] of Object.entries({ a, b, c })) expect(await service.send(host)).toBeUndefined();
    await table.clock.advance(HOUR_MS);
    await Promise.all([b.send("b"), a.send("b"), c.send("b")]);
    expect(runs).toEqual(["a: 2026-11-02T06:00:00.000Z", "b: 2026-11-02T07:00:00.000Z"]);
  });

  test("with untilSuccess runs again where a call in the same period has failed, and not after a success", async () => {
    const table = new TestTable(AT);
    const [a, b] = [await start(table), await start(table)];
    runs.length = 0;
    await expect(a.retried("fails")).rejects.toThrow("try again");
    await b.retried("works");
    await a.retried("works");
    expect(runs).toEqual(["attempt 1 fails", "attempt 2 works"]);
  });

  test("takes no more than maxAttempts", async () => {
    const service = await start(new TestTable(AT));
    for (let call = 0; call < 3; call += 1) await expect(service.retried("fails")).rejects.toThrow("try again");
    expect(await service.retried("works")).toBeUndefined();
  });

  test("may have @Locked() below it, whose lock it then gets", async () => {
    const service = await start(new TestTable(AT));
    runs.length = 0;
    await service.both();
    await service.both();
    expect(runs).toEqual(["under both"]);
  });
});

describe("the mutex of a method without a name", () => {
  abstract class Job {
    @OncePer(HOUR_MS)
    async run(): Promise<void> {
      runs.push(this.constructor.name);
    }
  }
  @Injectable()
  class Daily extends Job {}
  @Injectable()
  class Weekly extends Job {}

  test("is that of the instance's class: two jobs with one base class do not share their ticks", async () => {
    const table = new TestTable(AT);
    const application = await startApplication(table.host(), { providers: [Daily, Weekly] });
    runs.length = 0;
    for (const job of [Daily, Weekly, Daily]) await application.get<Job>(job).run();
    expect(runs).toEqual(["Daily", "Weekly"]);
    const names: string[] = [];
    for await (const { name } of table.host().list({ kept: true })) names.push(name);
    expect(names.sort()).toEqual(["Daily.run", "Weekly.run"]);
  });

  test.each<[what: string, other: Type]>([
    ["a second class of the same name, which would never run", { Daily: class Daily extends Job {} }.Daily],
    ["a class without a name", (() => class extends Job {})()],
  ])("is refused to %s: the application does not start", async (_, other) => {
    const starting = startApplication(new TestTable(AT).host(), {
      providers: [Daily, { provide: "other", useClass: other }],
    });
    const refused = { code: "LOCK_CONFIG", option: "name", value: `${other.name}.run` };
    await expect(starting).rejects.toMatchObject(refused);
  });

  test("is refused to a second class of the same name where a method of its own is decorated too", async () => {
    class Own extends Job {
      @OncePer(HOUR_MS, { name: "named" })
      async named(): Promise<void> {}
    }
    const OtherOwn = { Own: class Own extends Job {} }.Own;
    const starting = startApplication(new TestTable(AT).host(), { providers: [OtherOwn, Own] });
    await expect(starting).rejects.toMatchObject({ code: "LOCK_CONFIG", value: "Own.run" });
  });

  test("may be that of a class of the same name whose methods have names, and of a second instance", async () => {
    class Own extends Job {
      @OncePer(HOUR_MS, { name: "another" })
      override async run(): Promise<void> {
        runs.push("Own");
      }
    }
    const Plain = { Own: class Own {} }.Own;
    const again = { provide: "again", useClass: Daily };
    const application = await startApplication(new TestTable(AT).host(), { providers: [Daily, again, Own, Plain] });
    runs.length = 0;
    for (const job of [Daily, "again", Own]) await application.get<Job>(job).run();
    expect(runs).toEqual(["Daily", "Own"]);
  });
});

describe("what cannot work is refused where the class is declared", () => {
  test.each<[option: string, everyMs: unknown, options: unknown]>([
    ["everyMs", 999, undefined],
    ["everyMs", undefined, undefined],
    ["everyMs", "1h", undefined],
    ["options", HOUR_MS, 1],
    ["name", HOUR_MS, { name: "" }],
    ["table", HOUR_MS, { table: "" }],
    ["once", HOUR_MS, { once: 1 }],
    ["waitMs", HOUR_MS, { waitMs: 1 }],
    ["untilSuccess", HOUR_MS, { untilSuccess: 3 }],
    ["ttlMs", HOUR_MS, { ttlMs: 0 }],
  ])("%s: %j %j", (option, everyMs, options) => {
    const make = () => OncePer(everyMs as number, options as OncePerOptions);
    expect(make).toThrow(expect.objectContaining({ code: "LOCK_CONFIG", option }));
  });

  test("a method with a result, by its type: a call that is skipped has none", () => {
    class Typed {
      // @ts-expect-error
      @OncePer(HOUR_MS)
      async count(): Promise<number> {
        return 1;
      }
    }
    expect(Typed.name).toBe("Typed");
  });
});
