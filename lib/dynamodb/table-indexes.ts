import type { TableDescription } from "@aws-sdk/client-dynamodb";
import type { TableLayout } from "../options/table.js";
import { keyAdvice } from "./table-keys.js";

/** What every row of a lock has, besides its key and its purge date, and what only some rows have. */
const EVERY_ROW = { format: "N", uuid: "S", expires: "N", ttlMs: "N", owner: "S", acquired: "N" } as const;
const SOME_ROWS = {
  ...{ data: "M", wanted: "N", fence: "N", tick: "N", due: "N", attempt: "N", permits: "N", n: "N" },
  ...{ handOff: "M", result: "M", ran: "M" },
} as const;

/** An index whose key has an attribute of our rows as another type: DynamoDB refuses every row that has this attribute. */
export interface IndexConflict {
  /** Whether no lock can be taken at all. */
  readonly isFatal: boolean;
  readonly message: string;
}

export function indexConflicts(table: TableDescription, { tableName, ttl }: TableLayout): IndexConflict[] {
  const typeOfKey = new Map(table.AttributeDefinitions?.map((each) => [each.AttributeName, each.AttributeType]));
  const needed: Readonly<Record<string, string>> = { ...EVERY_ROW, [ttl]: "N" };
  const ours: Readonly<Record<string, string>> = { ...needed, ...SOME_ROWS };
  const indexes = [...(table.GlobalSecondaryIndexes ?? []), ...(table.LocalSecondaryIndexes ?? [])];
  return indexes.flatMap(({ IndexName, KeySchema = [] }) =>
    KeySchema.flatMap(({ AttributeName: attribute = "" }) => {
      const [type, wanted] = [typeOfKey.get(attribute), ours[attribute]];
      if (wanted === undefined || type === wanted) return [];
      const isFatal = attribute in needed;
      const refused = isFatal ? "every lock" : `every row of a lock that has ${attribute}`;
      const written = wanted === "M" ? "a map, which no index can have in its key" : `a value of type ${wanted}`;
      const message =
        `table ${tableName} does not fit: the key of its index ${IndexName} has ${attribute} (${type}), and locks write ` +
        `${written}: DynamoDB refuses ${refused}. Rename the attribute in the index, or use another table for locks`;
      return { isFatal, message };
    }),
  );
}

/** Why no lock can be taken on a table, and what to do about it; undefined if its key and its indexes allow locks. */
export function tableAdvice(table: TableDescription, layout: TableLayout): string | undefined {
  return keyAdvice(table, layout) ?? indexConflicts(table, layout).find(({ isFatal }) => isFatal)?.message;
}
