import { Inject } from "@nestjs/common";
import { LockConfigError } from "../errors.js";
import type { Lock } from "../index.js";
import type { AppLocks } from "./app-locks.js";
import { lockParameterOf } from "./held-lock.js";
import { appLocksToken } from "./tokens.js";

/** A call of a decorated method. */
export interface MethodCall {
  readonly app: AppLocks;
  readonly instance: object;
  /** The arguments as the caller gave them. */
  readonly args: readonly unknown[];
  /** Runs the method itself. */
  readonly section: (lock: Lock) => Promise<unknown>;
}

// biome-ignore lint/suspicious/noExplicitAny: a method of any class.
type Method = (this: any, ...args: any[]) => unknown;

/**
 * Puts a function in the place of a method, which runs it as `call` says. Nest sets the locks of the application as a property of the
 * instance, under the symbol of their token: so each instance has those of its own application, whatever its scope.
 *
 * @param decorator its name, for errors.
 */
export function wrapped(
  decorator: string,
  table: string | undefined,
  call: (call: MethodCall) => Promise<unknown>,
  // biome-ignore lint/suspicious/noExplicitAny: as above; the decorators say what method they are for.
): (target: object, key: string | symbol, descriptor: TypedPropertyDescriptor<any>) => void {
  const token = appLocksToken(table);
  return (target, key, descriptor) => {
    const original: Method | undefined = descriptor?.value;
    if (typeof original !== "function" || typeof target === "function") {
      const remedy = "must be on a method that is not static, and compiled with experimentalDecorators, as Nest is";
      throw new LockConfigError(`@${decorator}()`, String(key), remedy);
    }
    injectLocks(target, token);
    const lockAt = lockParameterOf(target, key);
    const title = `${target.constructor.name}.${String(key)}()`;
    const replacement = async function (this: object | undefined, ...args: unknown[]): Promise<unknown> {
      const app: AppLocks | undefined = Object(this)[token];
      if (app === undefined) throw new LockConfigError(title, undefined, NOT_FROM_NEST);
      const section = async (lock: Lock): Promise<unknown> => {
        const all = [...args];
        if (lockAt !== undefined) all[lockAt] = lock;
        return refuseLazy(await original.apply(this, all), title);
      };
      return await call({ app, instance: Object(this), args, section });
    };
    descriptor.value = alike(replacement, original);
  };
}

/** Has Nest set the property of each instance that it makes. */
function injectLocks(target: object, token: symbol): void {
  Inject(token)(target, token);
  Object.defineProperty(target, token, {
    configurable: true,
    set(this: object, value: AppLocks) {
      Object.defineProperty(this, token, { configurable: true, writable: true, value });
    },
  });
}

const NOT_FROM_NEST =
  "has no locks, because Nest did not make this object, or its constructor is still running: list the class itself among the " +
  "providers or controllers of a module, and neither call `new` nor use a factory";

/** Gives a function what decorators and Nest look for on the one that it replaces: its name, its properties, and its metadata. */
function alike(replacement: Method, original: Method): Method {
  Object.defineProperties(replacement, Object.getOwnPropertyDescriptors(original));
  for (const key of Reflect.getMetadataKeys(original)) {
    Reflect.defineMetadata(key, Reflect.getMetadata(key, original), replacement);
  }
  return replacement;
}

/** @throws `LockConfigError` for a result whose work begins when somebody reads it: the lock is released before. */
function refuseLazy(value: unknown, title: string): unknown {
  const { lift, subscribe } = Object(value);
  const isObservable = typeof lift === "function" && typeof subscribe === "function";
  const isGenerator = /Generator\]$/.test(Object.prototype.toString.call(value));
  if (!isObservable && !isGenerator) return value;
  const remedy = "must return a promise of its result, because the lock ends with the method: await lastValueFrom(…)";
  throw new LockConfigError(title, isObservable ? "an Observable" : "a generator", remedy);
}
