/**
 * Prints what the decorators do. versions.full.test.ts compiles it in a project of each version of NestJS, as an ES module or as CommonJS, against
 * the package as it is built.
 */
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { pathToFileURL } from "node:url";
import {
  type BeforeApplicationShutdown,
  type DynamicModule,
  Injectable,
  Scope,
  SetMetadata,
  type Type,
} from "@nestjs/common";
import { REQUEST, Reflector } from "@nestjs/core";
import { Cron } from "@nestjs/schedule";
import { Test, type TestingModule } from "@nestjs/testing";
import { type Lock, LockError, type LockTable } from "dynamutex";
import { getLocksToken, HeldLock, InjectLocks, Locked, LockModule, OncePer, TryLocked } from "dynamutex/nestjs";
import { TestTable } from "dynamutex/testing";

const table = new TestTable();

async function start(providers: Type[], owner: string, more: DynamicModule[] = []): Promise<TestingModule> {
  const imports = [LockModule.forRoot({ tableName: "locks" }), ...more];
  const builder = Test.createTestingModule({ imports, providers });
  builder.overrideProvider(getLocksToken()).useValue(table.host({ owner }));
  return await (await builder.compile()).init();
}

const inside: string[] = [];
let most = 0;

@Injectable()
class Shipping implements BeforeApplicationShutdown {
  readonly locks: LockTable;

  constructor(@InjectLocks() locks: LockTable) {
    this.locks = locks;
  }

  @Locked((order) => `order#${order}`)
  async ship(order: string, note = "none", @HeldLock() lock?: Lock): Promise<string> {
    inside.push(order);
    most = Math.max(most, inside.length);
    await sleep(5);
    inside.pop();
    return `${order} ${note} ${lock?.name} ${lock?.held}`;
  }

  @Cron("5 0 1 1 *")
  @SetMetadata("role", "admin")
  @OncePer(3_600_000, { name: "job" })
  async above(): Promise<void> {
    console.log("the job runs");
  }

  @OncePer(3_600_000, { name: "below" })
  @SetMetadata("role", "admin")
  @Cron("5 0 1 1 *")
  async below(): Promise<void> {}

  async beforeApplicationShutdown(): Promise<void> {
    await this.above();
    console.log(`the shutdown has begun: ${await this.ship("5")}`);
  }
}

@Injectable()
class LockConfig {
  createLockModuleOptions() {
    return { tableName: "locks-by-class" };
  }
}

@Injectable()
class Syncing {
  @TryLocked("sync")
  async sync(inside?: () => Promise<void>): Promise<void> {
    console.log("syncs");
    await inside?.();
  }
}

@Injectable({ scope: Scope.REQUEST })
class Scoped {
  @Locked("scoped")
  async owner(@HeldLock() lock?: Lock): Promise<string | undefined> {
    return lock?.owner;
  }
}

class Base {
  @OncePer(3_600_000, { name: "base" })
  async run(): Promise<void> {}
}

async function probe(): Promise<void> {
  const [one, other] = [await start([Shipping, Scoped], "one"), await start([Shipping, Scoped], "other")];
  const [first, second] = [one.get(Shipping), other.get(Shipping)];
  const shipped = await Promise.all([first.ship("1"), second.ship("1"), first.ship("1", "late"), second.ship("1")]);
  console.log(`${shipped.join(", ")}; at most ${most} at once`);
  const owners = [one, one, other].map(async (application) => await (await application.resolve(Scoped)).owner());
  console.log(`of request scope: ${(await Promise.all(owners)).join(" ")}`);
  const roles = [first.above, first.below].map((method) => new Reflector().get<string>("role", method));
  console.log(`metadata: ${roles.join(" ")}`);
  const syncing = await start([Syncing], "sync", [LockModule.forRootAsync({ name: "class", useClass: LockConfig })]);
  await syncing.get(Syncing).sync(() => syncing.get(Syncing).sync());
  console.log(`useClass: ${syncing.get<LockTable>(getLocksToken("class")).tableName}`);
  await one.close();
  await second.above();
  await second.above();
  const errors = [first.ship("1"), new Shipping(second.locks).ship("1")].map((call) => call.catch((error) => error));
  console.log((await Promise.all(errors)).map((error) => error instanceof LockError && error.code).join(" "));

  // A copy of the package that is another module, as a bundle may have one.
  const copy = join(process.cwd(), "node_modules", "dynamutex", "dist", "nestjs", "index.js");
  const elsewhere: typeof import("dynamutex/nestjs") = await import(pathToFileURL(copy).href);
  @Injectable()
  class Mixed {
    @elsewhere.Locked("mixed")
    async owner(@elsewhere.HeldLock() lock?: Lock): Promise<string | undefined> {
      return lock?.owner;
    }
  }
  const mixed = await start([Mixed], "mixed");
  console.log(`two copies: ${elsewhere.Locked !== Locked}, ${await mixed.get(Mixed).owner()}`);

  // What keeps an application from its start.
  const ofRequest = LockModule.forRootAsync({
    name: "eu",
    inject: [REQUEST],
    useFactory: () => ({ tableName: "locks" }),
  });
  const refused = [
    start([], "request", [ofRequest]),
    start([], "two", [LockModule.forRoot({ tableName: "locks-eu" })]),
  ];
  refused.push(Test.createTestingModule({ providers: [Base] }).compile());
  for (const error of await Promise.all(refused.map((starting) => starting.catch((reason) => reason)))) {
    const [message] =
      /two LockModules|each request would make a LockTable|LockModule\.forRoot\(\)/.exec(String(error)) ?? [];
    console.log(`does not start: ${message}`);
  }
}

void probe();
