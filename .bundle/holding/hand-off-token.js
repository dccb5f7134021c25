import { createHash } from "node:crypto";
import { LockConfigError } from "../errors.js";
const PREFIX = "dynamutex-2.";
const MOST_CHARACTERS = 32_768;
export function uuidOf(secret) {
    return createHash("sha256").update(secret).digest("hex");
}
function secretFor(secret, { sort }, rows) {
    return rows.length === 1 ? secret : [secret, sort, ...rows.map((row) => row.sort)].join("/");
}
export function handOffUuid(secret, at, rows) {
    return uuidOf(secretFor(secret, at, rows));
}
export function tokenOf({ tableName, keyPrefix }, rows, secret) {
    const [{ name, sort }, ...others] = rows;
    const parts = [plainName(tableName), keyPrefix, name, sort, secret, ...others.map((other) => other.sort)];
    return PREFIX + Buffer.from(JSON.stringify(parts)).toString("base64url");
}
export function parseToken(token, table, isOurs) {
    const [tableName, keyPrefix, name, sort, secret, ...others] = decoded(token);
    const where = `a token for ${JSON.stringify(name)} in table ${tableName}`;
    if (tableName !== plainName(table.tableName)) {
        throw new LockConfigError("token", where, `must be of this table, which is ${plainName(table.tableName)}`);
    }
    if (keyPrefix !== table.keyPrefix) {
        throw new LockConfigError("token", where, `must have the key prefix of this table, ${JSON.stringify(table.keyPrefix)}`);
    }
    const rows = [sort, ...others].map((one) => ({ name, sort: one }));
    if (!rows.every(isOurs) || new Set([sort, ...others]).size < rows.length)
        throw new LockConfigError("token", where, "must be of this lock: resume it on the one that it names");
    const handed = rows.map((at) => ({ at, uuid: handOffUuid(secret, at, rows) }));
    return handed;
}
function decoded(token) {
    if (typeof token === "string" && token.startsWith(PREFIX) && token.length <= MOST_CHARACTERS) {
        try {
            const parts = JSON.parse(Buffer.from(token.slice(PREFIX.length), "base64url").toString());
            if (Array.isArray(parts) && parts.length >= 5 && parts.every((part) => typeof part === "string")) {
                return parts;
            }
        }
        catch {
        }
    }
    throw new LockConfigError("token", shown(token), "must be a token that handOff() has returned, whole and unchanged");
}
function shown(token) {
    return typeof token === "string" ? `${token.slice(0, PREFIX.length)}…` : typeof token;
}
function plainName(tableName) {
    return tableName.split(":table/")[1] ?? tableName;
}
