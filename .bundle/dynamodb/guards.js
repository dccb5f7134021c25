import { LockConfigError } from "../errors.js";
import { checkOf, itemKey } from "./compile.js";
import { unmarshalledData } from "./data.js";
import { isCancellation, isPassingCancellation, isRefusedItem, storeFailure } from "./failures.js";
const MOST_ITEMS = 100;
export function documentGuard(layout, check) {
    const { Key, ExpressionAttributeValues, ...rest } = checkOf(layout, check);
    const plain = { Key: unmarshalledData(Key), ExpressionAttributeValues: unmarshalledData(ExpressionAttributeValues) };
    return { ConditionCheck: { ...rest, ...plain } };
}
export function admitItems(layout, at, items) {
    if (!Array.isArray(items))
        throw new LockConfigError("items", items, "must be an array of TransactWriteItems");
    if (items.length >= MOST_ITEMS) {
        const remedy = `must be at most ${MOST_ITEMS - 1}: a transaction has ${MOST_ITEMS}, and the guard is one of them`;
        throw new LockConfigError("items", `${items.length} items`, remedy);
    }
    const own = itemKey(layout, at);
    for (const [index, item] of items.entries()) {
        if (typeof item !== "object" || item === null) {
            throw new LockConfigError(`items.${index}`, item, "must be a TransactWriteItem");
        }
        if (containsItself(item))
            throw new LockConfigError(`items.${index}`, item, "must not contain itself");
        if (!isOn(layout.tableName, own, item))
            continue;
        const remedy = "must not be on the lock's own row, on which the guard is: DynamoDB takes one action for each item";
        throw new LockConfigError(`items.${index}`, item, remedy);
    }
}
function containsItself(value, around = []) {
    if (typeof value !== "object" || value === null || value instanceof Uint8Array)
        return false;
    const path = [...around, value];
    const members = value instanceof Set ? [...value] : Object.values(value);
    return around.includes(value) || members.some((member) => containsItself(member, path));
}
export function refusalOfGuard(error, index, tableName) {
    const reasons = isCancellation(error) ? (error.CancellationReasons ?? []) : undefined;
    const reason = reasons?.[index];
    if (reason !== undefined && isRefusedItem(reason))
        return reason;
    const failure = storeFailure(error, { action: "TransactWriteItems", tableName });
    if (failure === error)
        throw error;
    if (reasons === undefined ? failure.transient : isPassingCancellation(reasons))
        throw failure;
    return undefined;
}
function isOn(tableName, key, { Put, Update, Delete, ConditionCheck }) {
    const { TableName, Key } = Update ?? Delete ?? ConditionCheck ?? { TableName: Put?.TableName, Key: Put?.Item };
    return nameOf(TableName) === nameOf(tableName) && Object.entries(key).every(([name, { S }]) => Key?.[name]?.S === S);
}
function nameOf(table) {
    return table?.split(":table/")[1] ?? table;
}
