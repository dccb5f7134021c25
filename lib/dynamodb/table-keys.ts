import type { TableDescription } from "@aws-sdk/client-dynamodb";
import { type TableLayout, tableLayout } from "../options/table.js";

type Part = "partition" | "sort";

/** One part of a table's key; undefined where the table has none. */
export function keyIn(
  { KeySchema, AttributeDefinitions }: TableDescription,
  part: Part,
): { readonly name: string; readonly type: string | undefined } | undefined {
  const keyType = part === "partition" ? "HASH" : "RANGE";
  const name = KeySchema?.find((element) => element.KeyType === keyType)?.AttributeName;
  const type = AttributeDefinitions?.find(({ AttributeName }) => AttributeName === name)?.AttributeType;
  return name === undefined ? undefined : { name, type };
}

/** How a table's key differs from the options, and what to do about it; undefined if it does not. */
export function keyAdvice(table: TableDescription, layout: TableLayout): string | undefined {
  const differences = (["partition", "sort"] as const).flatMap((part) => partDiffers(part, layout[part], table) ?? []);
  if (differences.length === 0) return undefined;
  const remedy = `${keysRemedy(table, layout)}use a table that \`await locks.create()\` makes`;
  return `table ${layout.tableName} does not fit: ${differences.join("; ")}. To mend it, ${remedy}`;
}

function partDiffers(part: Part, wanted: string | undefined, table: TableDescription): string | undefined {
  const key = keyIn(table, part);
  if (key?.name !== wanted) {
    const has = key === undefined ? `it has no ${part} key` : `its ${part} key is ${key.name} (${key.type})`;
    return `${has}, and the option keys.${part} says ${wanted ?? "null, which is none"}`;
  }
  if (key === undefined || key.type === "S") return undefined;
  return `its ${part} key ${key.name} is of type ${key.type}, and locks need S, a string`;
}

/** What to do so that the options fit a table's own key, as the first half of a choice: nothing if its key cannot be one of locks. */
function keysRemedy(table: TableDescription, { tableName, ttl }: TableLayout): string {
  const [partition, sort] = [keyIn(table, "partition"), keyIn(table, "sort")];
  if (partition?.type !== "S" || (sort !== undefined && sort.type !== "S")) return "";
  const keys = { partition: partition.name, sort: sort?.name ?? null, ttl };
  try {
    tableLayout({ tableName, keys });
  } catch {
    return ""; // It is the name of one of the row's own attributes.
  }
  const defaults = tableLayout({ tableName });
  const parts = (["partition", "sort", "ttl"] as const).filter((part) => keys[part] !== defaults[part]);
  const given = parts.map((part) => `${part}: ${JSON.stringify(keys[part])}`);
  const change = given.length === 0 ? "leave the option keys out" : `set keys: { ${given.join(", ")} }`;
  const limit = sort === undefined ? ", with which only mutexes that are not fair work" : "";
  return `${change} on every host${limit}, or `;
}

/** Whether it is a global table with multi-Region strong consistency: one without transactions and TTL. */
export const isStrong = ({ MultiRegionConsistency }: TableDescription): boolean => MultiRegionConsistency === "STRONG";
