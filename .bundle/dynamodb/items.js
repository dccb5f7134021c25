import { LockStoreError } from "../errors.js";
import { kindOf, LOCK_SORT, PERMITS, READERS, WRITER_SORT } from "../protocol/addresses.js";
import { FORMAT, parseRow } from "../protocol/row.js";
import { BadRow, sorted } from "../store.js";
import { itemKey, storedValue } from "./compile.js";
import { unmarshalledData } from "./data.js";
const MAX_SHOWN = 500;
const PAGE_ITEMS = 250;
export function addressOf(layout, item) {
    const name = (item[layout.partition]?.S ?? "").slice(layout.keyPrefix.length);
    return { name, sort: layout.sort === undefined ? LOCK_SORT : (item[layout.sort]?.S ?? "") };
}
export function attributesOf(layout, item) {
    const all = Object.entries(unmarshalledData(item));
    const others = all.filter(([name]) => name !== layout.partition && name !== layout.sort);
    return Object.fromEntries(others.map(([name, value]) => [name === layout.ttl ? "purge" : name, value]));
}
export function rowOf(layout, address, item) {
    const parsed = parseRow(address, attributesOf(layout, item));
    if ("row" in parsed)
        return parsed.row;
    throw new BadRow(messageOf(layout, item, parsed.problem), address, {
        isDamaged: parsed.isDamaged,
        owner: item.owner?.S,
    });
}
export function foreign(layout, item, because) {
    return new LockStoreError(messageOf(layout, item, because));
}
function messageOf({ tableName, partition, sort }, item, because) {
    const names = [partition, sort].flatMap((name) => name ?? []);
    const key = JSON.stringify(Object.fromEntries(names.map((name) => [name, item[name]])));
    return (`Table ${tableName} has an item under this lock's key that is not a lock: ${because}. It was left as it is. ` +
        "Give the locks a table of their own, or a keyPrefix that nothing else uses, or remove the item if it is not " +
        `needed, with \`aws dynamodb delete-item --table-name ${tableName} --key '${key.replaceAll("'", "'\\''")}'\`: ${show(item)}`);
}
function show(item) {
    const json = JSON.stringify(item, (_key, value) => value instanceof Uint8Array ? Buffer.from(value).toString("base64") : value);
    return json.length > MAX_SHOWN ? `${json.slice(0, MAX_SHOWN)}…` : json;
}
export function queryOf(layout, query) {
    const { tableName, keyPrefix, partition, sort } = layout;
    if (sort === undefined) {
        throw new LockStoreError(`Table ${tableName} has no sort key, and so no rows of lock ${query.name} beside its own`);
    }
    return {
        TableName: tableName,
        KeyConditionExpression: "#name = :name AND #sort BETWEEN :first AND :last",
        ExpressionAttributeNames: { "#name": partition, "#sort": sort },
        ExpressionAttributeValues: {
            ":name": storedValue(keyPrefix + query.name),
            ":first": storedValue(query.first),
            ":last": storedValue(query.last),
        },
        Limit: query.limit,
        ConsistentRead: query.consistent,
        ...(query.after !== undefined && { ExclusiveStartKey: itemKey(layout, { name: query.name, sort: query.after }) }),
    };
}
export function rangePageOf(layout, reply) {
    const { Items = [], LastEvaluatedKey } = reply ?? {};
    const next = LastEvaluatedKey && addressOf(layout, LastEvaluatedKey).sort;
    return { ...sorted(Items, (item) => ourRow(layout, item)), next };
}
export function scanOf(layout, prefix, after) {
    const begin = layout.keyPrefix + prefix;
    const names = { "#format": "format" };
    const values = { ":format": storedValue(FORMAT) };
    const filters = ["#format = :format"];
    if (layout.sort !== undefined) {
        names["#sort"] = layout.sort;
        values[":lock"] = storedValue(LOCK_SORT);
        values[":writer"] = storedValue(WRITER_SORT);
        values[":permits"] = storedValue(PERMITS.first.slice(0, -4));
        values[":readers"] = storedValue(READERS.first);
        filters.push("(#sort IN (:lock, :writer) OR begins_with(#sort, :permits) OR begins_with(#sort, :readers))");
    }
    if (begin !== "") {
        names["#name"] = layout.partition;
        values[":begin"] = storedValue(begin);
        filters.push("begins_with(#name, :begin)");
    }
    return {
        TableName: layout.tableName,
        FilterExpression: filters.join(" AND "),
        ExpressionAttributeNames: names,
        ExpressionAttributeValues: values,
        Limit: PAGE_ITEMS,
        ExclusiveStartKey: after,
    };
}
export function scanPageOf(layout, reply) {
    const { Items = [], LastEvaluatedKey } = reply ?? {};
    const { rows, bad } = sorted(Items, (item) => ourRow(layout, item));
    return { rows, bad: bad.filter(({ isDamaged }) => isDamaged), next: LastEvaluatedKey };
}
function ourRow(layout, item) {
    const address = addressOf(layout, item);
    return kindOf(address.sort) === undefined ? undefined : rowOf(layout, address, item);
}
