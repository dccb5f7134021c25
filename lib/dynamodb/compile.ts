import type { AttributeValue, ConditionCheck, TransactWriteItem } from "@aws-sdk/client-dynamodb";
import { LockStoreError } from "../errors.js";
import type { LockData } from "../lock-info.js";
import type { TableLayout } from "../options/table.js";
import { type Address, LOCK_SORT } from "../protocol/addresses.js";
import type { Condition, Operand } from "../protocol/conditions.js";
import { isMark } from "../protocol/mark.js";
import { FORMAT } from "../protocol/row.js";
import { askedBy, leftBy, type RowCondition } from "../protocol/rules.js";
import type { Check, Count, Effect, Write } from "../protocol/writes.js";
import { marshalledData } from "./data.js";

export type Item = Record<string, AttributeValue>;

const COMPARISONS = { equal: "=", less: "<", greater: ">" } as const;
export const TYPES = { string: { S: "S" }, number: { S: "N" }, map: { S: "M" } } as const;
const ONE: AttributeValue = { N: "1" };

/** What every action of a transaction has, with nothing left out. */
type Conditional = { readonly [Name in keyof ConditionCheck]-?: NonNullable<ConditionCheck[Name]> } & {
  /** The refusal shows the item that refused, so no read is needed to learn who holds the lock. */
  readonly ReturnValuesOnConditionCheckFailure: "ALL_OLD";
};

/** A write as an action of a transaction. */
export function actionOf(layout: TableLayout, write: Write): TransactWriteItem {
  const conditional = conditionalOf(layout, write.at, askedBy(write));
  const effect = leftBy(write);
  switch (effect.kind) {
    case "put": {
      const { Key, ...rest } = conditional;
      return { Put: { ...rest, Item: { ...Key, ...valuesOf(layout, effect.attributes) } } };
    }
    case "update":
      return { Update: { ...conditional, UpdateExpression: updateOf(layout, effect, conditional) } };
    case "delete":
      return { Delete: conditional };
    case "nothing":
      return { ConditionCheck: conditional };
    default:
      return effect satisfies never;
  }
}

/** A check with nothing left out. */
export function checkOf(layout: TableLayout, check: Check): Conditional {
  return conditionalOf(layout, check.at, askedBy(check));
}

/** @throws {@link LockStoreError} for another row than a lock's own, in a table that has no sort key. */
export function itemKey(layout: TableLayout, { name, sort }: Address): Item {
  const key: Item = { [layout.partition]: { S: layout.keyPrefix + name } };
  if (layout.sort !== undefined) key[layout.sort] = { S: sort };
  else if (sort !== LOCK_SORT) {
    throw new LockStoreError(`Table ${layout.tableName} has no sort key, and so no row ${sort} of lock ${name}`);
  }
  return key;
}

/**
 * A value as DynamoDB stores it.
 *
 * @throws RangeError for a number that would not parse when the row is read.
 * @throws {@link LockConfigError} for data that cannot be stored.
 */
export function storedValue(value: unknown): AttributeValue {
  if (typeof value === "string") return { S: value };
  if (typeof value === "bigint" || Number.isSafeInteger(value)) return { N: `${value}` };
  if (typeof value === "number") throw new RangeError(`A row holds whole numbers only, not ${value}`);
  return marshalledData(value as LockData);
}

/** The value of one of our attributes. Only a mark has a fraction. */
function attributeValue(attribute: string, value: unknown): AttributeValue {
  return attribute === "wanted" && isMark(value) ? { N: `${value}` } : storedValue(value);
}

/** A value that a condition compares with. A stamp that was seen may have a fraction, although this library writes none. */
function comparedValue(value: Operand | undefined): AttributeValue {
  return typeof value === "number" && Number.isFinite(value) ? { N: `${value}` } : storedValue(value);
}

/** A condition as an expression. The expression is the same for every write that asks for the condition, so it is made once. */
interface Plan {
  readonly expression: string;
  /** The attributes that the expression names; `name` is the partition key. */
  readonly attributes: ReadonlySet<string>;
  readonly literals: Readonly<Record<string, AttributeValue>>;
  /** The names of the values that each write supplies. */
  readonly named: ReadonlySet<string>;
}

const plans = new WeakMap<Condition, Plan>();

function conditionalOf(layout: TableLayout, at: Address, { condition, values }: RowCondition): Conditional {
  const plan = plans.get(condition) ?? planOf(condition);
  plans.set(condition, plan);
  // DynamoDB refuses names and values that no expression uses.
  const names: Record<string, string> = {};
  for (const attribute of plan.attributes) names[`#${attribute}`] = nameIn(layout, attribute);
  const used: Item = { ...plan.literals };
  for (const value of plan.named) used[`:if_${value}`] = comparedValue(values[value]);
  return {
    TableName: layout.tableName,
    Key: itemKey(layout, at),
    ConditionExpression: plan.expression,
    ExpressionAttributeNames: names,
    ExpressionAttributeValues: used,
    ReturnValuesOnConditionCheckFailure: "ALL_OLD",
  };
}

function planOf(condition: Condition): Plan {
  const plan = { attributes: new Set<string>(), literals: {} as Item, named: new Set<string>() };
  const literalOf = (name: string, value: AttributeValue): string => {
    plan.literals[`:${name}`] = value;
    return `:${name}`;
  };
  const expression = conditionIn(condition, {
    wordOf: (path) => {
      const attributes = path.split(".");
      for (const attribute of attributes) plan.attributes.add(attribute);
      return attributes.map((attribute) => `#${attribute}`).join(".");
    },
    isMissing: (word) => `attribute_not_exists(${word})`,
    hasType: (word, type) => `attribute_type(${word}, ${literalOf(type, TYPES[type])})`,
    literal: (name, value) => literalOf(name, storedValue(value)),
    named: (value) => {
      plan.named.add(value);
      return `:if_${value}`;
    },
  });
  return { ...plan, expression };
}

/** The syntax of one of DynamoDB's languages, expressions and PartiQL, where the two differ. */
interface Language {
  wordOf(attribute: string): string;
  isMissing(word: string): string;
  hasType(word: string, type: keyof typeof TYPES): string;
  /** @param name tells the literals of one condition apart. */
  literal(name: string, value: Operand): string;
  /** A value that each write supplies. */
  named(value: string): string;
}

/** A condition in one of DynamoDB's languages. */
export function conditionIn(condition: Condition, language: Language): string {
  const { wordOf, isMissing, hasType, literal, named } = language;
  const inside = (part: Condition): string => {
    const text = conditionIn(part, language);
    // DynamoDB refuses brackets round brackets.
    return (part.kind === "all" || part.kind === "any") && part.kind !== condition.kind ? `(${text})` : text;
  };
  switch (condition.kind) {
    case "noItem":
      // Every item has its partition key, whoever wrote it.
      return isMissing(wordOf("name"));
    case "missing":
      return isMissing(wordOf(condition.attribute));
    case "type":
      return hasType(wordOf(condition.attribute), condition.type);
    case "equal":
    case "less":
    case "greater": {
      const { kind, attribute, to } = condition;
      const value = typeof to === "object" ? named(to.value) : literal(attribute, to);
      return `${wordOf(attribute)} ${COMPARISONS[kind]} ${value}`;
    }
    case "within": {
      const { name, least, most } = condition.range;
      const [from, to] = [literal(`least_${name}`, least), literal(`most_${name}`, most)];
      return `${wordOf(condition.attribute)} BETWEEN ${from} AND ${to}`;
    }
    case "all":
      return condition.of.map(inside).join(" AND ");
    case "any":
      return condition.of.map(inside).join(" OR ");
    default:
      return condition satisfies never;
  }
}

/** Adds what the update names and sets to the names and values of its condition. */
function updateOf(
  layout: TableLayout,
  { set, remove, count }: Extract<Effect, { kind: "update" }>,
  { ExpressionAttributeNames: names, ExpressionAttributeValues: values }: Conditional,
): string {
  const wordOf = (attribute: string): string => {
    names[`#${attribute}`] = nameIn(layout, attribute);
    return `#${attribute}`;
  };
  const setting: string[] = [];
  for (const [attribute, value] of Object.entries(set)) {
    if (value === undefined) continue;
    values[`:${attribute}`] = attributeValue(attribute, value);
    setting.push(`${wordOf(attribute)} = :${attribute}`);
  }
  if (count !== undefined) setting.push(countingOf(count, wordOf, values));
  const actions = setting.length === 0 ? [] : [`SET ${setting.join(", ")}`];
  if (remove.length > 0) actions.push(`REMOVE ${remove.map(wordOf).join(", ")}`);
  return actions.join(" ");
}

function countingOf(
  { attribute, seed, least = 0, isBehind }: Count,
  wordOf: (attribute: string) => string,
  values: Item,
): string {
  const word = wordOf(attribute);
  if (!isBehind) {
    values[":one"] = ONE;
    values[":seed"] = storedValue(seed);
    return `${word} = if_not_exists(${word}, :seed) + :one`;
  }
  // Each of our rows has this format before the write, so the sum is `least` there, and one more than the seed where there is none.
  const rest = least - FORMAT;
  values[":rest"] = storedValue(rest);
  values[":seed"] = storedValue(seed + 1 - rest);
  return `${word} = if_not_exists(${wordOf("format")}, :seed) + :rest`;
}

function valuesOf(layout: TableLayout, attributes: Readonly<Record<string, unknown>>): Item {
  const item: Item = {};
  for (const [attribute, value] of Object.entries(attributes)) {
    if (value !== undefined) item[nameIn(layout, attribute)] = attributeValue(attribute, value);
  }
  return item;
}

/** The name that one of our attributes has in this table. */
export function nameIn(layout: TableLayout, attribute: string): string {
  if (attribute === "name") return layout.partition;
  return attribute === "purge" ? layout.ttl : attribute;
}
