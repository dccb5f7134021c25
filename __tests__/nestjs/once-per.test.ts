import { describe, expect, test } from "@jest/globals";
import { Injectable } from "@nestjs/common";
import type { Lock } from "../../lib/index.js";
import { HeldLock, Locked, Once, OncePer, type OncePerOptions } from "../../lib/nestjs/index.js";
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

  @OncePer(HOUR_MS, { name: "retried", untilSuccess: { maxAttempts: 3 } })
  async retried(outcome: "fails" | "works", @HeldLock() lock?: Lock): Promise<void> {
    runs.push(`attempt ${lock?.attempt} ${outcome}`);
    if (outcome === "fails") throw new Error("try again");
  }

  @OncePer(HOUR_MS, { name: "once" })
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

@Injectable()
class Nightly {
  @Once((now) => now.setUTCHours(0, 0, 0, 0), { name: "nightly", earlyMs: 1_000 })
  async run(from: string, @HeldLock() lock?: Lock): Promise<void> {
    runs.push(`${from}: ${new Date(lock?.tick ?? 0).toISOString()}`);
  }
}

describe("a method with @Once()", () => {
  test("runs once for each tick that the function names of the table's time, on one of two applications", async () => {
    const table = new TestTable({ ...AT, startAt: new Date("2026-11-02T23:59:58Z") });
    const [a, b] = await Promise.all([0, 1].map((_) => startApplication(table.host(), { providers: [Nightly] })));
    runs.length = 0;
    await a?.get(Nightly).run("a");
    await b?.get(Nightly).run("b");
    await table.clock.advance(2_000);
    await b?.get(Nightly).run("b");
    await a?.get(Nightly).run("a");
    expect(runs).toEqual(["a: 2026-11-02T00:00:00.000Z", "b: 2026-11-03T00:00:00.000Z"]);
  });

  test("needs a function", () => {
    expect(() => Once(new Date() as never, { name: "nightly" })).toThrow(/once: must be a function/);
  });
});

describe("the name of a job", () => {
  test("may be made of the instance: two providers of one class are two jobs", async () => {
    const tenants = ["ann", "bob"];
    @Injectable()
    class Billing {
      readonly tenant = tenants.shift();
      @OncePer(HOUR_MS, { name: (job: Billing) => `billing#${job.tenant}` })
      async run(@HeldLock() lock?: Lock): Promise<void> {
        runs.push(`${lock?.name}`);
      }
    }
    const providers = ["one", "other"].map((provide) => ({ provide, useClass: Billing }));
    const application = await startApplication(new TestTable(AT).host(), { providers });
    runs.length = 0;
    for (const provide of ["one", "other", "one"]) await application.get<Billing>(provide).run();
    expect(runs).toEqual(["billing#ann", "billing#bob"]);
  });

  test("has no default: a minifier may give two classes one name, and one of their jobs would never run", () => {
    for (const options of [undefined, {}, { untilSuccess: true }]) {
      expect(() => OncePer(HOUR_MS, options as unknown as OncePerOptions)).toThrow(
        /^name: is required, and must be the name of the job, .*whatever has the same name shares its ticks/,
      );
    }
    // @ts-expect-error: the compiler says so as well.
    expect(() => OncePer(HOUR_MS)).toThrow();
  });
});

describe("what cannot work is refused where the class is declared", () => {
  test.each<[option: string, everyMs: unknown, options: unknown]>([
    ["everyMs", 999, undefined],
    ["everyMs", undefined, undefined],
    ["everyMs", "1h", undefined],
    ["options", HOUR_MS, 1],
    ["name", HOUR_MS, { name: "" }],
    ["name", HOUR_MS, { name: 7 }],
    ["name", HOUR_MS, { name: "billing#undefined" }],
    ["table", HOUR_MS, { table: "" }],
    ["once", HOUR_MS, { once: 1 }],
    ["waitMs", HOUR_MS, { waitMs: 1 }],
    ["untilSuccess", HOUR_MS, { untilSuccess: 3 }],
    ["ttlMs", HOUR_MS, { ttlMs: 0 }],
  ])("%s: %j %j", (option, everyMs, options) => {
    const named =
      Object(options) === options && !("name" in Object(options)) ? { name: "job", ...Object(options) } : options;
    const make = () => OncePer(everyMs as number, (named ?? { name: "job" }) as OncePerOptions);
    expect(make).toThrow(expect.objectContaining({ code: "LOCK_CONFIG", option }));
  });

  test("a method with a result, by its type: a call that is skipped has none", () => {
    class Typed {
      // @ts-expect-error
      @OncePer(HOUR_MS, { name: "count" })
      async count(): Promise<number> {
        return 1;
      }
    }
    expect(Typed.name).toBe("Typed");
  });
});
