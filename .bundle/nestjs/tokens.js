import { Inject } from "@nestjs/common";
import { LockConfigError } from "../errors.js";
const DEFAULT = "default";
function token(what, table) {
    const options = table === DEFAULT ? "" : `{ name: ${JSON.stringify(table)} }`;
    return Symbol.for(`dynamutex/nestjs: ${what} of LockModule.forRoot(${options})`);
}
export function getLocksToken(table = DEFAULT) {
    if (typeof table === "string" && table !== "")
        return token("LockTable", table);
    throw new LockConfigError("name", table, "must be the non-empty name of a table of LockModule");
}
export const optionsToken = (table = DEFAULT) => token("options", table);
export const appLocksToken = (table = DEFAULT) => token("locks", table);
export function InjectLocks(table) {
    return Inject(getLocksToken(table));
}
