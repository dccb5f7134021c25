import { Inject } from "@nestjs/common";
import { LockConfigError } from "../errors.js";

/** The name of a table that was given none. */
const DEFAULT = "default";

// Registered symbols: a copy of this package that `require()` has loaded and one that `import` has loaded agree on them. Nest shows the text
// where a provider is missing, so it says what provides it.
function token(what: string, table: string): symbol {
  const options = table === DEFAULT ? "" : `{ name: ${JSON.stringify(table)} }`;
  return Symbol.for(`dynamutex/nestjs: ${what} of LockModule.forRoot(${options})`);
}

/**
 * The token under which Nest has the `LockTable`: for `overrideProvider()` in a test, or `inject` of a factory.
 *
 * @param table the name that `forRoot()` was given. Default: that of a table without one.
 * @throws `LockConfigError` if the name cannot work.
 */
export function getLocksToken(table: string = DEFAULT): symbol {
  if (typeof table === "string" && table !== "") return token("LockTable", table);
  throw new LockConfigError("name", table, "must be the non-empty name of a table of LockModule");
}

/** The token of the options of a table. */
export const optionsToken = (table: string = DEFAULT): symbol => token("options", table);

/** The token of the {@link AppLocks} of a table, which is also the property under which an instance has them. */
export const appLocksToken = (table: string = DEFAULT): symbol => token("locks", table);

/**
 * Injects the `LockTable` into a parameter of a constructor, or into a property.
 *
 * @param table the name that `forRoot()` was given. Default: that of a table without one.
 * @throws `LockConfigError` if the name cannot work.
 *
 * @example
 * // import { InjectLocks } from "dynamutex/nestjs";
 * // In a provider: constructor(@InjectLocks() private readonly locks: LockTable) {}
 * const inject: PropertyDecorator & ParameterDecorator = InjectLocks();
 */
export function InjectLocks(table?: string): PropertyDecorator & ParameterDecorator {
  return Inject(getLocksToken(table));
}
