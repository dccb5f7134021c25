import { describe, expect, test } from "@jest/globals";
import { Injectable, Scope, SetMetadata } from "@nestjs/common";
import { Cron } from "@nestjs/schedule";
import { Test } from "@nestjs/testing";
import { of } from "rxjs";
import type { Lock, LockTable } from "../../lib/index.js";
import { HeldLock, InjectLocks, Locked, type LockedOptions, LockModule, TryLocked } from "../../lib/nestjs/index.js";
import { TestTable } from "../../lib/testing/index.js";
import { eventually } from "../support/eventually.js";
import { startApplication } from "./application.js";

/** A section that ends when it is told to. */
class Gate {
  isEntered = false;
  open = (): void => undefined;

  async pass(): Promise<void> {
    this.isEntered = true;
    await new Promise<void>((resolve) => {
      this.open = resolve;
    });
  }
}

@Injectable()
class Shipping {
  readonly locks: LockTable;

  constructor(@InjectLocks() locks: LockTable) {
    this.locks = locks;
  }

  @Locked((order) => `order#${order}`)
  async ship(order: string, gate: Gate): Promise<string> {
    await gate.pass();
    return `shipped ${order}`;
  }

  @Locked("tried", { waitMs: 0, data: { by: "tryShip" } })
  async tryShip(gate: Gate): Promise<void> {
    await gate.pass();
  }

  @Locked("failing")
  async failing(): Promise<never> {
    throw new Error(`failed in ${this.constructor.name}`);
  }

  @Locked("defaults")
  async withDefaults(order: string, note = "none", @HeldLock() lock?: Lock): Promise<unknown> {
    return { order, note, held: lock?.held, name: lock?.name };
  }

  @Locked("scheduled")
  async scheduled(@HeldLock() lock?: Lock): Promise<unknown> {
    return lock?.held;
  }

  @Locked("without")
  async without(...args: unknown[]): Promise<unknown> {
    return args;
  }
}

/** That many applications of as many hosts of one table. */
async function shippings(count: number): Promise<readonly [TestTable, ...Shipping[]]> {
  const table = new TestTable();
  const hosts = Array.from({ length: count }, () => table.host());
  const applications = await Promise.all(hosts.map((host) => startApplication(host, { providers: [Shipping] })));
  return [table, ...applications.map((application) => application.get(Shipping))];
}

describe("a method with @Locked()", () => {
  test("excludes itself across two applications, by the name that its arguments make", async () => {
    const [, one, other] = await shippings(2);
    const [first, second, third] = [new Gate(), new Gate(), new Gate()];
    const calls = [one?.ship("1", first)];
    await eventually(() => first.isEntered);
    calls.push(other?.ship("1", second), other?.ship("2", third));
    await eventually(() => third.isEntered);
    expect(second.isEntered).toBe(false);
    first.open();
    await eventually(() => second.isEntered);
    second.open();
    third.open();
    expect(await Promise.all(calls)).toEqual(["shipped 1", "shipped 1", "shipped 2"]);
  });

  test("takes the options of run(): here it does not wait, and writes data", async () => {
    const [table, one, other] = await shippings(2);
    const gate = new Gate();
    const first = one?.tryShip(gate);
    await eventually(() => gate.isEntered);
    expect((await table.host().mutex("tried").inspect())?.data).toEqual({ by: "tryShip" });
    await expect(other?.tryShip(gate)).rejects.toMatchObject({ code: "LOCK_TIMEOUT", lockName: "tried" });
    gate.open();
    await first;
  });

  test("has its own `this`, and rejects with its own error, when the lock is released", async () => {
    const [table, shipping] = await shippings(1);
    await expect(shipping?.failing()).rejects.toThrow("failed in Shipping");
    expect(await table.host().mutex("failing").inspect()).toBeNull();
  });

  test("hands the lock to the parameter with @HeldLock(), whatever its caller passes", async () => {
    const [, shipping] = await shippings(1);
    for (const args of [["7"], ["7", undefined], ["7", undefined, "no lock"]]) {
      const told = await Reflect.apply(Shipping.prototype.withDefaults, shipping, args);
      expect(told).toEqual({ order: "7", note: "none", held: true, name: "defaults" });
    }
    expect(await Reflect.apply(Shipping.prototype.scheduled, shipping, [undefined, "more"])).toBe(true);
    expect(await shipping?.without("a", undefined)).toEqual(["a", undefined]);
  });

  test("rejects with the loss if its lock was lost, although it has succeeded", async () => {
    const [table, shipping] = await shippings(1);
    const gate = new Gate();
    const call = shipping?.ship("1", gate);
    await eventually(() => gate.isEntered);
    table.lose("order#1", "stolen");
    gate.open();
    await expect(call).rejects.toMatchObject({ code: "LOCK_LOST" });
  });
});

test("the function for the name gets the types of the method's parameters, or may declare them, wider or fewer", async () => {
  interface Order {
    readonly id: number;
    readonly text: string;
  }
  @Injectable()
  class Typed {
    @Locked(({ id }) => `order#${id.toFixed()}`)
    async inferred(_order: Order, @HeldLock() lock?: Lock): Promise<string | undefined> {
      return lock?.name;
    }
    @Locked((order: { readonly id: number | string }) => `order#${order.id}`)
    async wider(_order: Order, _note = "none", @HeldLock() lock?: Lock): Promise<string | undefined> {
      return lock?.name;
    }
    @Locked(({ id }: Order, note?: string) => `order#${id}#${note ?? "none"}`)
    async optional(_order: Order, _note?: string, @HeldLock() lock?: Lock): Promise<string | undefined> {
      return lock?.name;
    }
    @Locked((...all: readonly unknown[]) => `${all.length} orders`)
    async rest(...orders: readonly Order[]): Promise<number> {
      return orders.length;
    }
  }
  const typed = (await startApplication(new TestTable().host(), { providers: [Typed] })).get(Typed);
  const order = { id: 7, text: "" };
  expect([await typed.inferred(order), await typed.wider(order), await typed.optional(order)]).toEqual([
    "order#7",
    "order#7",
    "order#7#none",
  ]);
  expect(await typed.rest(order, order)).toBe(2);
});

test("several tables are told apart by their names, in one class and in its subclass", async () => {
  class Base {
    @Locked("a")
    async here(@HeldLock() lock?: Lock): Promise<string | undefined> {
      return lock?.owner;
    }
  }
  @Injectable()
  class Both extends Base {
    @Locked("a", { table: "europe" })
    async there(@HeldLock() lock?: Lock): Promise<string | undefined> {
      return lock?.owner;
    }
  }
  const [home, europe] = [new TestTable(), new TestTable()];
  const both = await startApplication(
    { default: home.host({ owner: "home" }), europe: europe.host({ owner: "away" }) },
    {
      providers: [Both],
    },
  );
  expect(await both.get(Both).here()).toBe("home");
  expect(await both.get(Both).there()).toBe("away");
});

test("instances of request scope have the locks of their own application", async () => {
  @Injectable({ scope: Scope.REQUEST })
  class Scoped {
    @Locked("scoped")
    async owner(@HeldLock() lock?: Lock): Promise<string | undefined> {
      return lock?.owner;
    }
  }
  const table = new TestTable();
  const one = await startApplication(table.host({ owner: "one" }), { providers: [Scoped] });
  const other = await startApplication(table.host({ owner: "other" }), { providers: [Scoped] });
  const instances = [await one.resolve(Scoped), await one.resolve(Scoped), await other.resolve(Scoped)];
  expect(new Set(instances).size).toBe(3);
  const owners = await Promise.all(instances.map((instance) => instance.owner()));
  expect(owners).toEqual(["one", "one", "other"]);
});

describe("metadata of other decorators", () => {
  const own = Object.assign(() => undefined, { mark: 1 });
  const Mark: MethodDecorator = (_target, _key, descriptor) =>
    void Object.assign(descriptor.value as object, { mark: own.mark });

  class Ordered {
    @SetMetadata("role", "admin")
    @Cron("5 * * * *")
    @Mark
    @Locked("above")
    async above(_one: string, _two: string): Promise<void> {}

    @Locked("below")
    @Mark
    @Cron("5 * * * *")
    @SetMetadata("role", "admin")
    async below(_one: string, _two: string): Promise<void> {}

    @SetMetadata("role", "admin")
    @Cron("5 * * * *")
    @Mark
    async plain(_one: string, _two: string): Promise<void> {}
  }

  const told = (method: "above" | "below" | "plain") => {
    const fn = Ordered.prototype[method];
    const keys = Reflect.getMetadataKeys(fn).map(String).sort();
    return {
      keys,
      cron: Reflect.getMetadata("SCHEDULE_CRON_OPTIONS", fn),
      length: fn.length,
      mark: Reflect.get(fn, "mark"),
    };
  };

  test.each(["above", "below"] as const)("is on the method whatever their order: %s", (method) => {
    expect(told(method)).toEqual(told("plain"));
    expect(told(method).keys).toContain("role");
    expect(Ordered.prototype[method].name).toBe(method);
  });
});

describe("what is read after the lock has gone is refused", () => {
  class Lazy {
    @Locked("lazy")
    async observable(): Promise<unknown> {
      return of(1);
    }
    @Locked("lazy")
    generator(): Promise<unknown> {
      async function* numbers(): AsyncGenerator<number> {
        yield 1;
      }
      return numbers() as never;
    }
  }

  test.each(["observable", "generator"] as const)("%s", async (method) => {
    const table = new TestTable();
    const application = await startApplication(table.host(), { providers: [Lazy] });
    const refused = expect.objectContaining({ code: "LOCK_CONFIG", option: `Lazy.${method}()` });
    await expect(application.get(Lazy)[method]()).rejects.toEqual(refused);
    expect(await table.host().mutex("lazy").inspect()).toBeNull();
  });
});

describe("an instance that Nest has not injected says why it cannot lock", () => {
  const refused = expect.objectContaining({
    code: "LOCK_CONFIG",
    message: expect.stringMatching(/^Bare\.work\(\): has no locks, because Nest did not make this object/),
  });

  class Bare {
    @Locked("bare")
    async work(): Promise<void> {}
  }

  test("one that was made by new", async () => {
    await expect(new Bare().work()).rejects.toEqual(refused);
  });

  test("one that a factory has made", async () => {
    const bare = { provide: Bare, useFactory: () => new Bare() };
    const application = await startApplication(new TestTable().host(), { providers: [bare] });
    await expect(application.get(Bare).work()).rejects.toEqual(refused);
  });

  test("a method without its instance", async () => {
    const { work } = Bare.prototype;
    await expect(work()).rejects.toEqual(refused);
  });

  test("in an application without the module: it does not start, and says which is missing", async () => {
    const building = Test.createTestingModule({ providers: [Bare] }).compile();
    await expect(building).rejects.toThrow(
      /dependencies of the Bare[\s\S]*dynamutex\/nestjs: locks of LockModule\.forRoot\(\)/,
    );
  });

  test("a table that no LockModule has: the application does not start", async () => {
    class Elsewhere {
      @Locked("a", { table: "nowhere" })
      async work(): Promise<void> {}
    }
    const building = Test.createTestingModule({
      imports: [LockModule.forRoot({ tableName: "locks" })],
      providers: [Elsewhere],
    }).compile();
    await expect(building).rejects.toThrow(
      /dependencies of the Elsewhere[\s\S]*dynamutex\/nestjs: locks of LockModule\.forRoot\(\{ name: "nowhere" \}\)/,
    );
  });
});

describe("what cannot work is refused where the class is declared", () => {
  const declare = (name: unknown, options?: unknown) => () => Locked(name as string, options as LockedOptions);

  test.each<[option: string, make: () => unknown]>([
    ["name", declare("")],
    ["name", declare(undefined)],
    ["options", declare("a", null)],
    ["ttlMs", declare("a", { ttlMs: 1 })],
    ["waitMs", declare("a", { waitMs: -1 })],
    ["ttl", declare("a", { ttl: 1_000 })],
    ["signal", declare("a", { signal: new AbortController().signal })],
    ["table", declare("a", { table: 1 })],
    ["table", declare("a", { table: "" })],
    ["name", () => InjectLocks("")],
    ["@Locked()", () => Locked("a")(Shipping, "of", { value: async () => undefined })],
    ["@Locked()", () => Locked("a")(Shipping.prototype, "of", undefined as never)],
    ["@HeldLock()", () => HeldLock()(Shipping, undefined, 0)],
  ])("%s", (option, make) => {
    expect(make).toThrow(expect.objectContaining({ code: "LOCK_CONFIG", option }));
  });

  test("a method without a promise, by its type", () => {
    class Typed {
      // @ts-expect-error Its callers would get a promise, and not the text.
      @Locked("a")
      sync(): string {
        return "";
      }
    }
    expect(Typed.name).toBe("Typed");
  });

  test("a function for the name that cannot take the method's arguments, by its type", () => {
    class Typed {
      // @ts-expect-error
      @Locked((order: number) => `order#${order}`)
      async other(order: string): Promise<string> {
        return order;
      }
      // @ts-expect-error
      @Locked((order: string) => order)
      async optional(order?: string): Promise<void> {
        await order;
      }
      // @ts-expect-error
      @Locked((order: string, more: string) => order + more)
      async fewer(order: string): Promise<string> {
        return order;
      }
      // @ts-expect-error
      @Locked((...all: string[]) => all.join())
      async rest(order: string, count: number): Promise<string> {
        return order.repeat(count);
      }
      // @ts-expect-error A function without types gets those of the method.
      @Locked((order) => order.name)
      async inferred(order: { readonly id: string }): Promise<unknown> {
        return order;
      }
    }
    expect(Typed.name).toBe("Typed");
  });

  test("a name that the arguments do not make", async () => {
    class Nameless {
      @Locked((order?: string) => order as string)
      async ship(_order?: string): Promise<void> {}
    }
    const application = await startApplication(new TestTable().host(), { providers: [Nameless] });
    await expect(application.get(Nameless).ship()).rejects.toMatchObject({ code: "LOCK_CONFIG", option: "name" });
  });
});

describe("a method with @TryLocked()", () => {
  @Injectable()
  class Syncing {
    @TryLocked((tenant) => `sync#${tenant}`, { data: { by: "sync" }, holdAtLeastMs: 1 })
    async sync(_tenant: string, gate: Gate): Promise<void> {
      await gate.pass();
    }
  }

  test("runs where its lock is free, and is skipped where it is held, on every host", async () => {
    const table = new TestTable();
    const [a, b] = await Promise.all(
      [1, 2].map(async () => (await startApplication(table.host(), { providers: [Syncing] })).get(Syncing)),
    );
    const [first, skipped, other] = [new Gate(), new Gate(), new Gate()];
    const running = a?.sync("1", first);
    await eventually(() => first.isEntered);
    expect(await b?.sync("1", skipped)).toBeUndefined();
    expect(skipped.isEntered).toBe(false);
    const beside = b?.sync("2", other);
    await eventually(() => other.isEntered);
    for (const gate of [first, other]) gate.open();
    await Promise.all([running, beside]);
  });

  test("rejects with what the method throws", async () => {
    const locks = new TestTable().host();
    class Failing {
      @TryLocked("failing")
      async run(): Promise<void> {
        throw new Error("its own");
      }
    }
    const failing = (await startApplication(locks, { providers: [Failing] })).get(Failing);
    await expect(failing.run()).rejects.toThrow("its own");
  });

  test.each<[string, unknown, object]>([
    ["name", "", {}],
    ["waitMs", "sync", { waitMs: 1 }],
    ["everyMs", "sync", { everyMs: 3_600_000 }],
  ])("is refused what cannot work: %s", (option, name, options) => {
    expect(() => TryLocked(name as string, options)).toThrow(expect.objectContaining({ code: "LOCK_CONFIG", option }));
  });
});
