import type { AttributeValue, BatchStatementRequest, BatchStatementResponse } from "@aws-sdk/client-dynamodb";
import type { LockStoreError } from "../errors.js";
import type { TableLayout } from "../options/table.js";
import { askedBy, leftBy } from "../protocol/rules.js";
import type { Renew } from "../protocol/writes.js";
import { conditionIn, type Item, itemKey, nameIn, storedValue, TYPES } from "./compile.js";
import { statementFailure } from "./failures.js";

/**
 * The table's answer to one statement: applied, with the item as it was; refused by an item, or because there is none; or failed.
 */
export type Stated =
  | { readonly kind: "applied" | "refused"; readonly item: Item | undefined }
  | { readonly kind: "failed"; readonly error: LockStoreError };

/** A renewal as a statement of a batch: the same condition and effect as those of its `UpdateItem`. */
export function statementOf(layout: TableLayout, renewal: Renew): BatchStatementRequest {
  const effect = leftBy(renewal);
  if (effect.kind !== "update") throw new TypeError(`A renewal leaves an update, not a ${effect.kind}`);
  const parameters: AttributeValue[] = [];
  const parameter = (value: AttributeValue): string => {
    parameters.push(value);
    return "?";
  };
  const wordOf = (attribute: string): string => quoted(nameIn(layout, attribute));
  const set = Object.entries(effect.set).flatMap(([attribute, value]) =>
    value === undefined ? [] : [`SET ${wordOf(attribute)} = ${parameter(storedValue(value))}`],
  );
  const remove = effect.remove.map((attribute) => `REMOVE ${wordOf(attribute)}`);
  const key = Object.entries(itemKey(layout, renewal.at)).map(
    ([name, value]) => `${quoted(name)} = ${parameter(value)}`,
  );
  const { condition, values } = askedBy(renewal);
  const held = conditionIn(condition, {
    wordOf,
    isMissing: (word) => `${word} IS MISSING`,
    hasType: (word, type) => `attribute_type(${word}, '${TYPES[type].S}')`,
    literal: (_name, value) => parameter(storedValue(value)),
    named: (value) => parameter(storedValue(values[value])),
  });
  const where = [...key, `(${held})`].join(" AND ");
  return {
    Statement: `UPDATE ${quoted(layout.tableName)} ${[...set, ...remove].join(" ")} WHERE ${where} RETURNING ALL OLD *`,
    Parameters: parameters,
    ReturnValuesOnConditionCheckFailure: "ALL_OLD",
  };
}

/** The answer to one statement of a reply. A statement that the reply leaves out got no answer. */
export function statedBy(response: BatchStatementResponse | undefined, tableName: string): Stated {
  if (response === undefined) return { kind: "failed", error: statementFailure({}, tableName) };
  const { Error: error, Item: item } = response;
  if (error === undefined) return { kind: "applied", item };
  if (error.Code === "ConditionalCheckFailed") return { kind: "refused", item: error.Item };
  return { kind: "failed", error: statementFailure(error, tableName) };
}

/** Names are quoted always: some of ours, and any of an application's, may be reserved words. */
const quoted = (name: string): string => `"${name.replaceAll('"', '""')}"`;
