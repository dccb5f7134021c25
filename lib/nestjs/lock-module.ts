import { randomUUID } from "node:crypto";
import { isDeepStrictEqual } from "node:util";
import { type DynamicModule, type FactoryProvider, Module, type ModuleMetadata } from "@nestjs/common";
import { LockConfigError } from "../errors.js";
import { LockTable, type LockTableOptions } from "../index.js";
import { AppLocks } from "./app-locks.js";
import { appLocksToken, getLocksToken, optionsToken } from "./tokens.js";

/** Options of a table, defaults for its mutexes, and how long its sections may run on when the application shuts down. */
export interface LockModuleOptions extends LockTableOptions {
  /** The `drainMs` of `close()`, in ms. Default 10 000. */
  readonly drainMs?: number | undefined;
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
  /** Makes the options, once per application. */
  // biome-ignore lint/suspicious/noExplicitAny: Nest cannot type what it injects either.
  readonly useFactory: (...injected: any[]) => LockModuleOptions | Promise<LockModuleOptions>;
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
   * Nothing is sent. What cannot work rejects the start of the application.
   *
   * @param options those of a `LockTable`, `name` and `drainMs`.
   */
  static forRoot(options: LockModuleRootOptions): DynamicModule {
    const { name, ...rest } = Object(options) as LockModuleRootOptions;
    return moduleOf(name, { useFactory: () => rest });
  }

  /**
   * The same with options that a factory makes.
   *
   * @example
   * // import { LockModule } from "dynamutex/nestjs";
   * LockModule.forRootAsync({
   *   useFactory: async () => ({ tableName: await Promise.resolve("locks") }),
   * });
   */
  static forRootAsync(options: LockModuleAsyncOptions): DynamicModule {
    const { name, imports = [], inject = [], useFactory } = options;
    return moduleOf(name, { inject, useFactory }, imports);
  }
}

Module({})(LockModule);

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
): DynamicModule {
  const [locks, options, app] = [getLocksToken(name), optionsToken(name), appLocksToken(name)];
  const providers: FactoryProvider[] = [
    { provide: options, ...source },
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
        return new AppLocks(table, split(given).drainMs);
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

/** What a factory returns may be anything: `LockTable` says what is wrong with it. */
function split(given: LockModuleOptions): { readonly table: LockTableOptions; readonly drainMs: number | undefined } {
  const { drainMs, ...table } = Object(given) as LockModuleOptions;
  return { table, drainMs };
}
