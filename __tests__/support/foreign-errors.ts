import { isNativeError } from "node:util/types";

// Jest runs tests in a realm of their own, where the errors of Node itself (a socket that was reset, an abort)
// are no `instanceof Error`. The SDK then wraps them, loses their name and code, and does not retry. With this, what is under test meets network errors as it does everywhere else.
Object.defineProperty(Error, Symbol.hasInstance, {
  configurable: true,
  value(this: unknown, value: unknown): boolean {
    if (this === Error && (isNativeError(value) || value instanceof DOMException)) return true;
    // Classes of errors inherit this method.
    return Function.prototype[Symbol.hasInstance].call(this as never, value);
  },
});
