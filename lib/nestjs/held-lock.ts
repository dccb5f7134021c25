import { LockConfigError } from "../errors.js";

/** Where a class notes which parameter of a method is to get the lock. */
const LOCK_PARAMETER = Symbol.for("dynamutex.nestjs.lock-parameter");

/**
 * Marks the parameter that gets the lock, in a method with `@Locked()`, `@TryLocked()` or `@OncePer()`. What its caller passes there is replaced.
 *
 * @example
 * // import { HeldLock } from "dynamutex/nestjs";
 * // In a provider: async ship(order: string, @HeldLock() lock?: Lock) {}
 * const parameter: ParameterDecorator = HeldLock();
 */
export function HeldLock(): ParameterDecorator {
  return (target, key, index) => {
    if (key === undefined)
      throw new LockConfigError("@HeldLock()", "constructor", "must be on a parameter of a method");
    Reflect.defineMetadata(LOCK_PARAMETER, index, target, key);
  };
}

/** The number of that parameter. An overridden method of a base class does not count. */
export function lockParameterOf(target: object, key: string | symbol): number | undefined {
  return Reflect.getOwnMetadata(LOCK_PARAMETER, target, key);
}
