import { describe, expect, test } from "@jest/globals";
import {
  type BeforeApplicationShutdown,
  Inject,
  Injectable,
  type LoggerService,
  Module,
  type OnApplicationShutdown,
} from "@nestjs/common";
import { REQUEST } from "@nestjs/core";
import { Test } from "@nestjs/testing";
import { LockTable } from "../../lib/index.js";
import {
  getLocksToken,
  Locked,
  LockModule,
  type LockModuleAsyncOptions,
  type LockModuleOptionsFactory,
  type LockModuleRootOptions,
  OncePer,
} from "../../lib/nestjs/index.js";
import { TestTable } from "../../lib/testing/index.js";
import { eventually, turn, watch } from "../support/eventually.js";
import { startApplication } from "./application.js";

describe("LockModule", () => {
  test("makes the table of each name, for every module of the application", async () => {
    @Module({})
    class Elsewhere {}
    const application = await Test.createTestingModule({
      imports: [
        LockModule.forRoot({ tableName: "locks" }),
        LockModule.forRoot({ name: "europe", tableName: "locks-eu" }),
        Elsewhere,
      ],
    }).compile();
    const names = [undefined, "europe"].map((name) => {
      const locks = application.select(Elsewhere).get<LockTable>(getLocksToken(name), { strict: false });
      return locks instanceof LockTable && locks.tableName;
    });
    expect(names).toEqual(["locks", "locks-eu"]);
    await application.close();
  });

  test("takes options from a factory, which is given what it asks for", async () => {
    @Module({ providers: [{ provide: "TABLE", useValue: "from-config" }], exports: ["TABLE"] })
    class Config {}
    const application = await Test.createTestingModule({
      imports: [
        LockModule.forRootAsync({
          imports: [Config],
          inject: ["TABLE"],
          useFactory: async (tableName: string) => ({ tableName, drainMs: 1 }),
        }),
      ],
    }).compile();
    expect(application.get<LockTable>(getLocksToken()).tableName).toBe("from-config");
    await application.close();
  });

  test.each<[option: string, options: unknown]>([
    ["tableName", undefined],
    ["tableName", { tableName: "a" }],
    ["tableNam", { tableNam: "locks" }],
    ["drainMs", { tableName: "locks", drainMs: -1 }],
    ["name", { tableName: "locks", name: "" }],
    ["checkAtStart", { tableName: "locks", checkAtStart: "yes" }],
  ])("does not start with what cannot work: %s of %j", async (option, options) => {
    const start = async () =>
      await Test.createTestingModule({ imports: [LockModule.forRoot(options as LockModuleRootOptions)] }).compile();
    await expect(start()).rejects.toMatchObject({ code: "LOCK_CONFIG", option });
    const later = async () =>
      await Test.createTestingModule({
        imports: [LockModule.forRootAsync({ useFactory: async () => options as LockModuleRootOptions })],
      }).compile();
    if (option !== "name") await expect(later()).rejects.toMatchObject({ code: "LOCK_CONFIG", option });
  });
});

describe("options from a provider", () => {
  @Injectable()
  class LockConfig implements LockModuleOptionsFactory {
    readonly tableName: string;
    constructor(@Inject("TABLE") tableName: string) {
      this.tableName = tableName;
    }
    createLockModuleOptions() {
      return Promise.resolve({ tableName: this.tableName });
    }
  }
  const values = { providers: [{ provide: "TABLE", useValue: "from-config" }], exports: ["TABLE"] };
  @Module(values)
  class Values {}
  @Module({ providers: [...values.providers, LockConfig], exports: [LockConfig] })
  class WithConfig {}
  const start = async (options: LockModuleAsyncOptions) =>
    await Test.createTestingModule({ imports: [LockModule.forRootAsync(options)] }).compile();

  test.each<[string, LockModuleAsyncOptions]>([
    ["useClass makes it", { imports: [Values], useClass: LockConfig }],
    ["useExisting finds it", { imports: [WithConfig], useExisting: LockConfig }],
  ])("%s", async (_, options) => {
    const application = await start(options);
    expect(application.get<LockTable>(getLocksToken()).tableName).toBe("from-config");
    await application.close();
  });

  test("are refused where none or two ways are given, and where the provider makes none", async () => {
    for (const options of [{}, { useClass: LockConfig, useFactory: () => ({ tableName: "locks" }) }]) {
      expect(() => LockModule.forRootAsync(options)).toThrow(/one of useFactory, useClass and useExisting/);
    }
    await expect(start({ imports: [Values], useExisting: "TABLE" })).rejects.toThrow(/createLockModuleOptions\(\)/);
  });

  test("that depend on a request keep the application from starting: each request would make a table", async () => {
    const compiled = await start({
      inject: [REQUEST],
      useFactory: () => ({ tableName: "locks" }),
    });
    await expect(compiled.init()).rejects.toMatchObject({
      code: "LOCK_CONFIG",
      message: expect.stringMatching(/each request would make a LockTable: inject providers of the default scope/),
    });
  });
});

describe("checkAtStart", () => {
  const start = async (host: LockTable, checkAtStart?: boolean) => await startApplication(host, {}, { checkAtStart });

  test("lets the application start where locks work, and without it nothing is sent", async () => {
    const table = new TestTable();
    await (await start(table.host(), true)).close();
    table.silence();
    await (await start(table.host())).close();
  });

  test("keeps it from starting where they do not, and says why", async () => {
    const locks = new TestTable().host();
    const missing = { severity: "error", code: "missing", message: "table locks does not exist: create it" };
    const check = async () => ({ usable: false, problems: [missing] });
    await expect(start(Object.assign(locks, { check }), true)).rejects.toMatchObject({
      code: "LOCK_STORE",
      message: "table locks does not exist: create it",
    });
  });

  test("keeps it from starting where the table does not answer", async () => {
    const table = new TestTable({ time: "manual" });
    table.silence();
    const starting = start(table.host(), true);
    const watched = watch(starting);
    while (!watched.settled) await table.clock.advance(1_000);
    await expect(starting).rejects.toMatchObject({ code: "LOCK_STORE" });
  });
});

describe("a table that two modules make", () => {
  const start = (...options: readonly LockModuleRootOptions[]) =>
    Test.createTestingModule({ imports: options.map((each) => LockModule.forRoot(each)) }).compile();

  test.each([undefined, "europe"])("is refused if their options differ, with a remedy: %s", async (name) => {
    await expect(start({ name, tableName: "locks" }, { name, tableName: "locks-eu" })).rejects.toMatchObject({
      code: "LOCK_CONFIG",
      option: "name",
      value: name,
      message: expect.stringMatching(/two LockModules whose options differ.*once, in the root module/),
    });
  });

  test("is refused where the second is in a feature module, and from a factory", async () => {
    @Module({ imports: [LockModule.forRootAsync({ useFactory: async () => ({ tableName: "locks-eu" }) })] })
    class Feature {}
    const imports = [LockModule.forRoot({ tableName: "locks" }), Feature];
    await expect(Test.createTestingModule({ imports }).compile()).rejects.toMatchObject({ option: "name" });
  });

  test("may stay if their options are equal, or each is in an application of its own", async () => {
    const poll = () => ({ minMs: 10, maxMs: 20 });
    const equal = await start({ tableName: "locks", poll: poll() }, { tableName: "locks", poll: poll() });
    const other = await start({ tableName: "locks-eu" });
    const names = [equal, other].map((application) => application.get<LockTable>(getLocksToken()).tableName);
    expect(names).toEqual(["locks", "locks-eu"]);
    for (const application of [equal, other]) await application.close();
  });
});

/** What happened, in order. */
const told: string[] = [];

@Injectable()
class Service implements BeforeApplicationShutdown, OnApplicationShutdown {
  end = (): void => undefined;

  @OncePer(3_600_000, { name: "tick" })
  async tick(): Promise<void> {
    told.push("tick");
  }

  @Locked("request")
  async request(): Promise<void> {
    told.push("request");
  }

  @Locked("long")
  async long(): Promise<void> {
    told.push("long begins");
    await new Promise<void>((resolve) => {
      this.end = resolve;
    });
    told.push("long ends");
  }

  @OncePer(3_600_000, { name: "long-tick" })
  async longTick(): Promise<void> {
    told.push("long tick begins");
    await new Promise<void>((resolve) => {
      this.end = resolve;
    });
    await this.request();
  }

  /** Nest serves requests meanwhile: it closes its server after this hook. */
  async beforeApplicationShutdown(): Promise<void> {
    told.push("shutdown begins");
    await this.tick();
    await this.request();
  }

  onApplicationShutdown(): void {
    told.push("shutdown ends");
  }
}

describe("a shutdown of the application", () => {
  test("takes no new tick from its beginning on, still serves locks, and closes the table at its end", async () => {
    const table = new TestTable();
    const application = await startApplication(table.host(), { providers: [Service] });
    const service = application.get(Service);
    told.length = 0;
    await application.close();
    expect(told).toEqual(["shutdown begins", "request", "shutdown ends"]);
    await expect(service.request()).rejects.toMatchObject({ code: "LOCK_CLOSED" });
    // The tick is there for another host.
    const other = await startApplication(table.host(), { providers: [Service] });
    await other.get(Service).tick();
    expect(told.at(-1)).toBe("tick");
  });

  test("waits for a section that runs, which is renewed and ends as it would", async () => {
    const table = new TestTable();
    const application = await startApplication(table.host(), { providers: [Service] });
    const service = application.get(Service);
    const call = service.long();
    await eventually(() => table.held().length === 1 && told.at(-1) === "long begins");
    const closing = application.close();
    const watched = watch(closing);
    await eventually(() => told.at(-1) === "shutdown ends");
    expect(watched.settled).toBe(false);
    service.end();
    await Promise.all([call, closing]);
    expect(table.held()).toEqual([]);
  });

  test("ends a call that has no tick yet without an error, which the scheduler would log", async () => {
    class Job {
      @OncePer(3_600_000, { name: "tick" })
      async tick(): Promise<void> {
        told.push("tick");
      }
    }
    const table = new TestTable({ time: "manual" });
    const application = await startApplication(table.host(), { providers: [Job] });
    table.silence();
    told.length = 0;
    const call = application.get(Job).tick();
    await turn();
    const closing = watch(application.close());
    while (!closing.settled) await table.clock.advance(1_000);
    expect(await call).toBeUndefined();
    expect(told).not.toContain("tick");
  });

  test("hides no error of a tick that runs", async () => {
    const table = new TestTable();
    const application = await startApplication(table.host(), { providers: [Service] });
    const service = application.get(Service);
    const call = service.longTick();
    await eventually(() => told.at(-1) === "long tick begins");
    const closing = application.close();
    await eventually(() => told.at(-1) === "shutdown ends");
    service.end();
    await expect(call).rejects.toMatchObject({ code: "LOCK_CLOSED" });
    await closing;
  });

  test("tells of locks that it had to revoke, and lets the hooks of other modules run", async () => {
    const errors: unknown[] = [];
    const logger = { log: () => undefined, warn: () => undefined, error: (error: unknown) => errors.push(error) };
    const table = new TestTable({ releaseWithinMs: 1 });
    const application = await startApplication(table.host(), { providers: [Service] }, { drainMs: 0 });
    application.useLogger(logger as LoggerService);
    const service = application.get(Service);
    const call = service.long();
    await eventually(() => told.at(-1) === "long begins");
    await application.close();
    expect(errors).toEqual([expect.objectContaining({ name: "AggregateError" })]);
    expect(told).toContain("shutdown ends");
    service.end();
    await expect(call).rejects.toMatchObject({ code: "LOCK_LOST", reason: "closed" });
  });
});
