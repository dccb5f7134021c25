import type { AttributeValue, BatchStatementRequest, BatchStatementResponse } from "@aws-sdk/client-dynamodb";
import type { LockStoreError } from "../errors.js";
import type { TableLayout } from "../options/table.js";
import type { Condition, Values } from "../protocol/conditions.js";
import { askedBy, leftBy } from "../protocol/rules.js";
import type { Renew } from "../protocol/writes.js";
import { COMPARISONS, keyOf, nameIn, storedValue, TYPES } from "./compile.js";
import { statementFailure } from "./failures.js";
import type { Item } from "./items.js";

/** What the table says of one statement: applied, with the item as it was; refused by an item, or by there being none; neither. */
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
  const key = Object.entries(keyOf(layout, renewal.at)).map(([name, value]) => `${quoted(name)} = ${parameter(value)}`);
  const { condition, values } = askedBy(renewal);
  const where = [...key, conditionOf(condition, values, wordOf, parameter)].join(" AND ");
  return {
    Statement: `UPDATE ${quoted(layout.tableName)} ${[...set, ...remove].join(" ")} WHERE ${where} RETURNING ALL OLD *`,
    Parameters: parameters,
    ReturnValuesOnConditionCheckFailure: "ALL_OLD",
  };
}

/** What a reply says of one statement; of one that it leaves out, that there was no answer. */
export function statedBy(response: BatchStatementResponse | undefined, tableName: string): Stated {
  if (response === undefined) return { kind: "failed", error: statementFailure({}, tableName) };
  const { Error: error, Item: item } = response;
  if (error === undefined) return { kind: "applied", item };
  if (error.Code === "ConditionalCheckFailed") return { kind: "refused", item: error.Item };
  return { kind: "failed", error: statementFailure(error, tableName) };
}

/** Names are quoted always: some of ours, and any of an application's, may be reserved words. */
const quoted = (name: string): string => `"${name.replaceAll('"', '""')}"`;

function conditionOf(
  condition: Condition,
  values: Values,
  wordOf: (attribute: string) => string,
  parameter: (value: AttributeValue) => string,
): string {
  const inside = (part: Condition): string => conditionOf(part, values, wordOf, parameter);
  switch (condition.kind) {
    case "noItem":
      return `${wordOf("name")} IS MISSING`;
    case "missing":
      return `${wordOf(condition.attribute)} IS MISSING`;
    case "type":
      return `attribute_type(${wordOf(condition.attribute)}, '${TYPES[condition.type].S}')`;
    case "equal":
    case "less":
    case "greater": {
      const { kind, attribute, to } = condition;
      const value = typeof to === "object" ? values[to.value] : to;
      return `${wordOf(attribute)} ${COMPARISONS[kind]} ${parameter(storedValue(value))}`;
    }
    case "within": {
      const { attribute, range } = condition;
      const [least, most] = [range.least, range.most].map((bound) => parameter(storedValue(bound)));
      return `${wordOf(attribute)} BETWEEN ${least} AND ${most}`;
    }
    case "all":
      return `(${condition.of.map(inside).join(" AND ")})`;
    case "any":
      return `(${condition.of.map(inside).join(" OR ")})`;
    default:
      return condition satisfies never;
  }
}
