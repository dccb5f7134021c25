import { keyAdvice } from "./table-keys.js";
const EVERY_ROW = { format: "N", uuid: "S", expires: "N", ttlMs: "N", owner: "S", acquired: "N" };
const SOME_ROWS = {
    ...{ data: "M", wanted: "N", fence: "N", tick: "N", due: "N", attempt: "N", permits: "N", n: "N" },
    ...{ handOff: "M", result: "M", ran: "M" },
};
export function indexConflicts(table, { tableName, ttl }) {
    const typeOfKey = new Map(table.AttributeDefinitions?.map((each) => [each.AttributeName, each.AttributeType]));
    const needed = { ...EVERY_ROW, [ttl]: "N" };
    const ours = { ...needed, ...SOME_ROWS };
    const indexes = [...(table.GlobalSecondaryIndexes ?? []), ...(table.LocalSecondaryIndexes ?? [])];
    return indexes.flatMap(({ IndexName, KeySchema = [] }) => KeySchema.flatMap(({ AttributeName: attribute = "" }) => {
        const [type, wanted] = [typeOfKey.get(attribute), ours[attribute]];
        if (wanted === undefined || type === wanted)
            return [];
        const isFatal = attribute in needed;
        const refused = isFatal ? "every lock" : `every row of a lock that has ${attribute}`;
        const written = wanted === "M" ? "a map, which no index can have in its key" : `a value of type ${wanted}`;
        const message = `table ${tableName} does not fit: the key of its index ${IndexName} has ${attribute} (${type}), and locks write ` +
            `${written}: DynamoDB refuses ${refused}. Rename the attribute in the index, or use another table for locks`;
        return { isFatal, message };
    }));
}
export function tableAdvice(table, layout) {
    return keyAdvice(table, layout) ?? indexConflicts(table, layout).find(({ isFatal }) => isFatal)?.message;
}
