import * as z from "zod/mini";
import { LockConfigError } from "../errors.js";
import { duration, exactly, isWellFormed, NOT_WELL_FORMED, objectOf, optionsCheck, signal, strings, text, withMethods, } from "./check.js";
import { mutexShape } from "./mutex.js";
const ROW_ATTRIBUTES = "format uuid expires ttlMs owner acquired data wanted fence tick due attempt ran permits handOff result n".split(" ");
const MAX_NAME_BYTES = 2_048;
const TABLE = /^([a-zA-Z0-9_.-]{3,255}|arn:.{1,1020})$/;
const shortText = (most, why) => text().check(z.refine(({ length }) => length >= 1 && length <= most, `must have 1 to ${most} characters${why}`));
const attributeName = () => shortText(255, ", DynamoDB's limit for a key's name");
export const tableOptions = optionsCheck(["new LockTable()"], () => ({
    ...mutexShape(),
    tableName: z.custom((value) => typeof value === "string" && TABLE.test(value), "must be a table's ARN, or its name: 3 to 255 of a-z, A-Z, 0-9, '_', '-' and '.'"),
    client: z.optional(withMethods("a DynamoDBClient of @aws-sdk/client-dynamodb", ["send", "destroy"])),
    keys: z.optional(objectOf(exactly()({
        partition: z.optional(attributeName()),
        sort: z.optional(z.nullable(attributeName())),
        ttl: z.optional(attributeName()),
    }))),
    keyPrefix: z.optional(text()),
    owner: z.optional(shortText(1_024, ": it is written with every lock")),
    clock: z.optional(withMethods("a Clock", ["wall", "atLeast", "atMost", "sleep", "alarm"])),
}), { fencing: "is an option of each mutex: locks.mutex(name, { fencing: true })" });
export const createOptions = optionsCheck(["create()"], () => ({
    signal: signal(),
    timeoutMs: z.optional(duration(1)),
    tags: z.optional(strings()),
}));
export function tableLayout(options) {
    const keys = options.keys ?? {};
    const layout = {
        tableName: options.tableName,
        keyPrefix: options.keyPrefix ?? "",
        partition: keys.partition ?? "name",
        sort: keys.sort === null ? undefined : (keys.sort ?? "sort"),
        ttl: keys.ttl ?? "purge",
    };
    const used = new Set(ROW_ATTRIBUTES);
    for (const part of ["partition", "sort", "ttl"]) {
        const attribute = layout[part];
        if (attribute === undefined)
            continue;
        if (used.has(attribute)) {
            throw new LockConfigError(`keys.${part}`, attribute, "is already the name of another attribute of a lock's row");
        }
        used.add(attribute);
    }
    return layout;
}
export function checkFits({ fair }, { sort }) {
    if (!fair || sort !== undefined)
        return;
    throw new LockConfigError("fair", fair, "needs a table with a sort key, because every waiter has a row of its own beside the lock's, and keys.sort is null: " +
        "use a table that has one, or leave `fair` out");
}
export function checkName(name, keyPrefix, option = "name") {
    if (typeof name !== "string" || name === "")
        throw new LockConfigError(option, name, "must be a non-empty string");
    if (!isWellFormed(name))
        throw new LockConfigError(option, name, NOT_WELL_FORMED);
    const bytes = Buffer.byteLength(keyPrefix + name);
    if (bytes > MAX_NAME_BYTES) {
        const remedy = `must be at most ${MAX_NAME_BYTES} bytes with the key prefix, DynamoDB's limit for a key; it is ${bytes}`;
        throw new LockConfigError(option, name, remedy);
    }
}
export function checkHasSort(what, { sort }) {
    if (sort !== undefined)
        return;
    throw new LockConfigError("keys.sort", null, `must be the name of a sort key for ${what}, which has several rows under its name: use a table that has one`);
}
