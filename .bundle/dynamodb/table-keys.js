import { tableLayout } from "../options/table.js";
export function keyIn({ KeySchema, AttributeDefinitions }, part) {
    const keyType = part === "partition" ? "HASH" : "RANGE";
    const name = KeySchema?.find((element) => element.KeyType === keyType)?.AttributeName;
    const type = AttributeDefinitions?.find(({ AttributeName }) => AttributeName === name)?.AttributeType;
    return name === undefined ? undefined : { name, type };
}
export function keyAdvice(table, layout) {
    const differences = ["partition", "sort"].flatMap((part) => partDiffers(part, layout[part], table) ?? []);
    if (differences.length === 0)
        return undefined;
    const remedy = `${keysRemedy(table, layout)}use a table that \`await locks.create()\` makes`;
    return `table ${layout.tableName} does not fit: ${differences.join("; ")}. To mend it, ${remedy}`;
}
function partDiffers(part, wanted, table) {
    const key = keyIn(table, part);
    if (key?.name !== wanted) {
        const has = key === undefined ? `it has no ${part} key` : `its ${part} key is ${key.name} (${key.type})`;
        return `${has}, and the option keys.${part} says ${wanted ?? "null, which is none"}`;
    }
    if (key === undefined || key.type === "S")
        return undefined;
    return `its ${part} key ${key.name} is of type ${key.type}, and locks need S, a string`;
}
function keysRemedy(table, { tableName, ttl }) {
    const [partition, sort] = [keyIn(table, "partition"), keyIn(table, "sort")];
    if (partition?.type !== "S" || (sort !== undefined && sort.type !== "S"))
        return "";
    const keys = { partition: partition.name, sort: sort?.name ?? null, ttl };
    try {
        tableLayout({ tableName, keys });
    }
    catch {
        return "";
    }
    const defaults = tableLayout({ tableName });
    const parts = ["partition", "sort", "ttl"].filter((part) => keys[part] !== defaults[part]);
    const given = parts.map((part) => `${part}: ${JSON.stringify(keys[part])}`);
    const change = given.length === 0 ? "leave the option keys out" : `set keys: { ${given.join(", ")} }`;
    const limit = sort === undefined ? ", with which only mutexes that are not fair work" : "";
    return `${change} on every host${limit}, or `;
}
export const isStrong = ({ MultiRegionConsistency }) => MultiRegionConsistency === "STRONG";
