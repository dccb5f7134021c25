import { randomUUID } from "node:crypto";
import { isDeepStrictEqual } from "node:util";
import { Module } from "@nestjs/common";
import { LockConfigError } from "../errors.js";
import { LockTable } from "../index.js";
import { AppLocks } from "./app-locks.js";
import { appLocksToken, getLocksToken, optionsToken } from "./tokens.js";
export class LockModule {
    static forRoot(options) {
        const { name, ...rest } = Object(options);
        return moduleOf(name, { useFactory: () => rest });
    }
    static forRootAsync(options) {
        const { name, imports = [], inject = [], useFactory } = options;
        return moduleOf(name, { inject, useFactory }, imports);
    }
}
Module({})(LockModule);
const ALL_OPTIONS = Symbol("dynamutex/nestjs: the options of all tables");
class SharedModule {
}
Module({ providers: [{ provide: ALL_OPTIONS, useFactory: () => new Map() }], exports: [ALL_OPTIONS] })(SharedModule);
function moduleOf(name, source, imports = []) {
    const [locks, options, app] = [getLocksToken(name), optionsToken(name), appLocksToken(name)];
    const providers = [
        { provide: options, ...source },
        {
            provide: locks,
            inject: [options],
            useFactory: (given) => new LockTable(split(given).table),
        },
        {
            provide: app,
            inject: [locks, options, ALL_OPTIONS],
            useFactory: (table, given, all) => {
                const first = all.get(locks) ?? given;
                all.set(locks, first);
                if (!isDeepStrictEqual(first, given))
                    throw new LockConfigError("name", name, TWO_TABLES);
                return new AppLocks(table, split(given).drainMs);
            },
        },
        { provide: randomUUID(), useFactory: () => true },
    ];
    return { module: LockModule, global: true, imports: [SharedModule, ...imports], providers, exports: [locks, app] };
}
const TWO_TABLES = "belongs to two LockModules whose options differ, and only one would be used: import LockModule.forRoot() once, in the root module, " +
    "or give each table a name of its own";
function split(given) {
    const { drainMs, ...table } = Object(given);
    return { table, drainMs };
}
