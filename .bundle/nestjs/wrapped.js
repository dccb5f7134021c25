import { Inject } from "@nestjs/common";
import { LockConfigError } from "../errors.js";
import { lockParameterOf } from "./held-lock.js";
import { appLocksToken } from "./tokens.js";
export function wrapped(decorator, table, call, check = () => undefined) {
    const token = appLocksToken(table);
    return (target, key, descriptor) => {
        const original = descriptor?.value;
        if (typeof original !== "function" || typeof target === "function") {
            const remedy = "must be on a method that is not static, and compiled with experimentalDecorators, as Nest is";
            throw new LockConfigError(`@${decorator}()`, String(key), remedy);
        }
        const method = String(key);
        injectLocks(target, token, (app, instance) => check(app, instance, method));
        const lockAt = lockParameterOf(target, key);
        const title = `${target.constructor.name}.${method}()`;
        const replacement = async function (...args) {
            const app = Object(this)[token];
            if (app === undefined)
                throw new LockConfigError(title, undefined, NOT_FROM_NEST);
            const section = async (lock) => {
                const all = [...args];
                if (lockAt !== undefined)
                    all[lockAt] = lock;
                return refuseLazy(await original.apply(this, all), title);
            };
            return await call({ app, instance: Object(this), args, section }, method);
        };
        descriptor.value = alike(replacement, original);
    };
}
function injectLocks(target, token, onSet) {
    const all = [...(Reflect.getMetadata(token, target) ?? []), onSet];
    Reflect.defineMetadata(token, all, target);
    Inject(token)(target, token);
    Object.defineProperty(target, token, {
        configurable: true,
        set(app) {
            Object.defineProperty(this, token, { configurable: true, writable: true, value: app });
            for (const each of all)
                each(app, this);
        },
    });
}
const NOT_FROM_NEST = "has no locks, because Nest did not make this object, or its constructor is still running: list the class itself among the " +
    "providers or controllers of a module, and neither call `new` nor use a factory";
function alike(replacement, original) {
    Object.defineProperties(replacement, Object.getOwnPropertyDescriptors(original));
    for (const key of Reflect.getMetadataKeys(original)) {
        Reflect.defineMetadata(key, Reflect.getMetadata(key, original), replacement);
    }
    return replacement;
}
function refuseLazy(value, title) {
    const { lift, subscribe } = Object(value);
    const isObservable = typeof lift === "function" && typeof subscribe === "function";
    const isGenerator = /Generator\]$/.test(Object.prototype.toString.call(value));
    if (!isObservable && !isGenerator)
        return value;
    const remedy = "must return a promise of its result, because the lock ends with the method: await lastValueFrom(…)";
    throw new LockConfigError(title, isObservable ? "an Observable" : "a generator", remedy);
}
