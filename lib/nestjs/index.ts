/**
 * Locks in an application of NestJS: a module, and decorators for methods. `@nestjs/common`, from 10 to 12, is an optional peer
 * dependency of the package.
 *
 * @packageDocumentation
 */

export { type AsyncMethodDecorator, Locked, Once, OncePer, TryLocked } from "./decorators.js";
export { HeldLock } from "./held-lock.js";
export {
  LockModule,
  type LockModuleAsyncOptions,
  type LockModuleOptions,
  type LockModuleOptionsFactory,
  type LockModuleRootOptions,
} from "./lock-module.js";
export type { LockedOptions, OncePerOptions, TryLockedOptions } from "./options.js";
export { getLocksToken, InjectLocks } from "./tokens.js";
