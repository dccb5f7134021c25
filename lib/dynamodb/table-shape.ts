import type { TableDescription } from "@aws-sdk/client-dynamodb";
import type { TableLayout } from "../options/table.js";

/** Says how a table's key differs from the options, for an error message; undefined if it does not. */
export function keyMismatch(table: TableDescription, layout: TableLayout): string | undefined {
  const differences = [
    partDiffers("partition key", "HASH", "keys.partition", layout.partition, table),
    partDiffers("sort key", "RANGE", "keys.sort", layout.sort, table),
  ].filter((difference) => difference !== undefined);
  return differences.length === 0 ? undefined : `table ${layout.tableName} does not fit: ${differences.join("; ")}`;
}

function partDiffers(
  part: string,
  keyType: "HASH" | "RANGE",
  option: string,
  wanted: string | undefined,
  { KeySchema, AttributeDefinitions }: TableDescription,
): string | undefined {
  const name = KeySchema?.find((element) => element.KeyType === keyType)?.AttributeName;
  const type = AttributeDefinitions?.find(({ AttributeName }) => AttributeName === name)?.AttributeType;
  if (name !== wanted) {
    const has = name === undefined ? `it has no ${part}` : `its ${part} is ${name} (${type})`;
    return `${has}, and the option ${option} says ${wanted === undefined ? "null, which is none" : wanted}`;
  }
  if (name === undefined || type === "S") return undefined;
  return `its ${part} ${name} is of type ${type}, and locks need S, a string`;
}
