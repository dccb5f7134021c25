import { randomUUID } from "node:crypto";
import { isDeepStrictEqual } from "node:util";
import {
  type DynamicModule,
  type FactoryProvider,
  Module,
  type ModuleMetadata,
  type OnModuleInit,
  type Provider,
  type Type,
} from "@nestjs/common";
import { LockConfigError } from "../errors.js";
import { LockTable, type LockTableOptions } from "../index.js";
import { AppLocks, type AppSettings } from "./app-locks.js";
import { appLocksToken, getLocksToken, optionsToken } from "./tokens.js";

/** Options of a table, defaults for its mutexes, and how long its sections may run on when the application shuts down. */
export interface LockModuleOptions extends LockTableOptions {
  /** The `drainMs` of `close()`, in ms. Default 10 000. */
  readonly drainMs?: number | undefined;
  /**
   * Whether the application starts only if locks work on the table, as `check()` tells: it exists, its keys fit, and these credentials may
   * use it. Default false: the first lock tells. Warnings are logged.
   */
  readonly checkAtStart?: boolean | undefined;
}

/** A provider that makes the options: what `useClass` and `useExisting` of `LockModule.forRootAsync()` name. */
export interface LockModuleOptionsFactory {
  createLockModuleOptions(): LockModuleOptions | Promise<LockModuleOptions>;
}

/** What `LockModule.forRoot()` takes. */
export interface LockModuleRootOptions extends LockModuleOptions {
  /** The name by which `@InjectLocks()` and the decorators know the table, if an application has several. */
  readonly name?: string | undefined;
}

/** What `LockModule.forRootAsync()` takes. */
export interface LockModuleAsyncOptions {
  /** As for `forRoot()`. */
  readonly name?: string | undefined;
  /** Modules that export what `inject` names. */
  readonly imports?: ModuleMetadata["imports"];
  /** What `useFactory` is given. */
  readonly inject?: FactoryProvider["inject"];
  /** Makes the options, once per application. Give this, `useClass` or `useExisting`. */
  // biome-ignore lint/suspicious/noExplicitAny: Nest cannot type what it injects either.
  readonly useFactory?: ((...injected: any[]) => LockModuleOptions | Promise<LockModuleOptions>) | undefined;
  /** A class that makes the options: Nest makes one for this module, with what its constructor asks for from `imports`. */
  readonly useClass?: Type<LockModuleOptionsFactory> | undefined;
  /** A provider of one of the `imports`, or of a global module, that makes the options. */
  readonly useExisting?: FactoryProvider["provide"] | undefined;
}

/**
 * Makes the `LockTable` of an application, and closes it when the application shuts down. It is global: import it once for each table, in
 * the root module.
 *
 * From `beforeApplicationShutdown` on, methods with `@OncePer()` take no new tick. In `onApplicationShutdown`, when requests have been
 * served, the table is closed: sections that still run have `drainMs` to end. Locks that had to be revoked are logged as an error.
 *
 * @example
 * // import { LockModule } from "dynamutex/nestjs";
 * const imports = [LockModule.forRoot({ tableName: "locks" })]; // of your AppModule
 */
// biome-ignore lint/complexity/noStaticOnlyClass: a module of Nest is a class.
export class LockModule {
  /**
   * Nothing is sent, except for `checkAtStart`. What cannot work rejects the start of the application.
   *
   * @param options those of a `LockTable`, `name`, `drainMs` and `checkAtStart`.
   */
  static forRoot(options: LockModuleRootOptions): DynamicModule {
    const { name, ...rest } = Object(options) as LockModuleRootOptions;
    return moduleOf(name, { useFactory: () => rest });
  }

  /**
   * Makes the `LockTable` with options that a factory makes, a class of which Nest makes one, or a provider that is there.
   *
   * @example
   * // import { LockModule } from "dynamutex/nestjs";
   * LockModule.forRootAsync({
   *   useFactory: async () => ({ tableName: await Promise.resolve("locks") }),
   * });
   */
  static forRootAsync(options: LockModuleAsyncOptions): DynamicModule {
    const { name, imports = [], inject = [], useFactory, useClass, useExisting } = options;
    const given = [useFactory, useClass, useExisting].filter((way) => way !== undefined);
    if (given.length !== 1) throw new LockConfigError("forRootAsync()", `${given.length} of them`, ONE_WAY);
    if (useFactory !== undefined) return moduleOf(name, { inject, useFactory }, imports);
    const factory = useExisting ?? useClass ?? "";
    const made = useClass === undefined ? [] : [useClass];
    return moduleOf(name, { inject: [factory], useFactory: optionsOf }, imports, made);
  }
}

Module({})(LockModule);

const ONE_WAY = "must be given one of useFactory, useClass and useExisting, which makes the options";

function optionsOf(factory: LockModuleOptionsFactory): LockModuleOptions | Promise<LockModuleOptions> {
  if (typeof factory?.createLockModuleOptions === "function") return factory.createLockModuleOptions();
  throw new LockConfigError("forRootAsync()", factory, "must name a provider with a method createLockModuleOptions()");
}

/** The options of each name, in one application. */
type AllOptions = Map<symbol, LockModuleOptions>;
const ALL_OPTIONS = Symbol("dynamutex/nestjs: the options of all tables");

/** What the modules of an application share. It is not dynamic, so Nest makes it once for each application. */
class SharedModule {}
Module({ providers: [{ provide: ALL_OPTIONS, useFactory: () => new Map() }], exports: [ALL_OPTIONS] })(SharedModule);

function moduleOf(
  name: string | undefined,
  source: Pick<FactoryProvider, "inject" | "useFactory">,
  imports: ModuleMetadata["imports"] = [],
  made: readonly Provider[] = [],
): DynamicModule {
  const [locks, options, app] = [getLocksToken(name), optionsToken(name), appLocksToken(name)];
  const { inject = [], useFactory } = source;
  const start = Symbol("dynamutex/nestjs: the start of this module");
  const providers: Provider[] = [
    ...made,
    { provide: start, useFactory: () => new Start() },
    {
      provide: options,
      inject: [start, ...inject],
      useFactory: async (started: Start, ...injected: readonly unknown[]) => {
        started.hasOptions = true;
        return await useFactory(...injected);
      },
    },
    {
      provide: locks,
      inject: [options],
      useFactory: (given: LockModuleOptions) => new LockTable(split(given).table),
    },
    {
      provide: app,
      inject: [locks, options, ALL_OPTIONS],
      useFactory: (table: LockTable, given: LockModuleOptions, all: AllOptions) => {
        const first = all.get(locks) ?? given;
        all.set(locks, first);
        if (!isDeepStrictEqual(first, given)) throw new LockConfigError("name", name, TWO_TABLES);
        return new AppLocks(table, split(given).settings);
      },
    },
    // NestJS 10 takes two modules for one if their source looks alike: it would ignore the options of the second.
    { provide: randomUUID(), useFactory: () => true },
  ];
  return { module: LockModule, global: true, imports: [SharedModule, ...imports], providers, exports: [locks, app] };
}

const TWO_TABLES =
  "belongs to two LockModules whose options differ, and only one would be used: import LockModule.forRoot() once, in the root module, " +
  "or give each table a name of its own";

/** What Nest makes before it starts an application is made by then. */
class Start implements OnModuleInit {
  /** Whether the options were asked for. */
  hasOptions = false;

  /** @throws `LockConfigError` if the options are made for each request: each would have a `LockTable` of its own, which nobody closes. */
  onModuleInit(): void {
    if (!this.hasOptions) throw new LockConfigError("forRootAsync()", "a provider of request scope", OF_A_REQUEST);
  }
}

const OF_A_REQUEST =
  "must not inject what depends on a request, or each request would make a LockTable: inject providers of the default scope. For a table " +
  "for each tenant, import a module for each, with a name, and choose by that";

/** What a factory returns may be anything: `LockTable` says what is wrong with it. */
function split(given: LockModuleOptions): { readonly table: LockTableOptions; readonly settings: AppSettings } {
  const { drainMs, checkAtStart = false, ...table } = Object(given) as LockModuleOptions;
  if (typeof checkAtStart === "boolean") return { table, settings: { drainMs, checkAtStart } };
  throw new LockConfigError("checkAtStart", checkAtStart, "must be true or false");
}
