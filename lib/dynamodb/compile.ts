import {
  type AttributeValue,
  DeleteItemCommand,
  PutItemCommand,
  type ReturnValue,
  type TransactWriteItem,
  UpdateItemCommand,
} from "@aws-sdk/client-dynamodb";
import type { TableLayout } from "../options/table.js";
import type { Condition } from "../protocol/conditions.js";
import type { Address } from "../protocol/row.js";
import { askedBy, type Check, type Count, countOf, type Effect, leftBy, type Write } from "../protocol/writes.js";
import { type Item, keyOf, nameIn, storedValue } from "./items.js";

const COMPARISONS = { equal: "=", less: "<", greater: ">" } as const;
const TYPES = { string: { S: "S" }, number: { S: "N" } } as const;
const ONE: AttributeValue = { N: "1" };

/** What every action of a transaction has, with nothing left out. */
interface Conditional {
  readonly TableName: string;
  readonly ConditionExpression: string;
  readonly ExpressionAttributeNames: Record<string, string>;
  readonly ExpressionAttributeValues: Item;
  /** The refusal shows the item that refused, so no read is needed to learn who holds. */
  readonly ReturnValuesOnConditionCheckFailure: "ALL_OLD";
}

/** A write as a request of its own. */
export function commandOf(layout: TableLayout, write: Write): PutItemCommand | UpdateItemCommand | DeleteItemCommand {
  const { Put, Update, Delete, ConditionCheck } = actionOf(layout, write);
  if (Put !== undefined) return new PutItemCommand({ ...Put, ReturnValues: returnedBy(write) });
  if (Delete !== undefined) return new DeleteItemCommand(Delete);
  if (Update !== undefined) return new UpdateItemCommand({ ...Update, ReturnValues: returnedBy(write) });
  // A check by itself is an update that changes nothing.
  return new UpdateItemCommand({ TableName: layout.tableName, Key: keyOf(layout, write.at), ...ConditionCheck });
}

/** A write as an action of a transaction. */
export function actionOf(layout: TableLayout, write: Write): TransactWriteItem {
  const words = new Words(layout);
  const conditional = conditionalOf(layout, askedBy(write), words);
  const effect = leftBy(write);
  switch (effect.kind) {
    case "put":
      return { Put: { ...conditional, Item: itemOf(layout, write.at, effect) } };
    case "update":
      return { Update: { ...conditional, Key: keyOf(layout, write.at), UpdateExpression: updateOf(effect, words) } };
    case "delete":
      return { Delete: { ...conditional, Key: keyOf(layout, write.at) } };
    case "nothing":
      return { ConditionCheck: { ...conditional, Key: keyOf(layout, write.at) } };
    default:
      return effect satisfies never;
  }
}

/** A check with nothing left out. */
export function checkOf(layout: TableLayout, check: Check): Conditional & { readonly Key: Item } {
  return { ...conditionalOf(layout, askedBy(check), new Words(layout)), Key: keyOf(layout, check.at) };
}

/** What the reply shows: of a take the row that it replaced, and of what else counts the attributes that it changed. */
function returnedBy(write: Write): ReturnValue | undefined {
  if (write.kind === "take") return "ALL_OLD";
  return countOf(write) === undefined ? undefined : "UPDATED_OLD";
}

function conditionalOf(layout: TableLayout, condition: Condition, words: Words): Conditional {
  return {
    TableName: layout.tableName,
    ConditionExpression: expressionOf(condition, words),
    ExpressionAttributeNames: words.names,
    ExpressionAttributeValues: words.values,
    ReturnValuesOnConditionCheckFailure: "ALL_OLD",
  };
}

function expressionOf(condition: Condition, words: Words): string {
  switch (condition.kind) {
    case "noItem":
      // Every item has its partition key, whoever wrote it.
      return `attribute_not_exists(${words.partitionKey()})`;
    case "missing":
      return `attribute_not_exists(${words.attribute(condition.attribute)})`;
    case "type": {
      const { attribute, type } = condition;
      return `attribute_type(${words.attribute(attribute)}, ${words.value(type, TYPES[type])})`;
    }
    case "equal":
    case "less":
    case "greater": {
      const { kind, attribute, to } = condition;
      return `${words.attribute(attribute)} ${COMPARISONS[kind]} ${words.value(attribute, storedValue(to))}`;
    }
    case "all":
    case "any":
      return condition.of
        .map((part) => within(condition, part, words))
        .join(condition.kind === "all" ? " AND " : " OR ");
    default:
      return condition satisfies never;
  }
}

/** A part of several: in parentheses where it has several parts itself, and the parts are joined otherwise. */
function within(whole: Condition, part: Condition, words: Words): string {
  const expression = expressionOf(part, words);
  const isJoined = (part.kind === "all" || part.kind === "any") && part.of.length > 1;
  return isJoined && part.kind !== whole.kind ? `(${expression})` : expression;
}

function itemOf(layout: TableLayout, at: Address, { attributes }: Extract<Effect, { kind: "put" }>): Item {
  const item = keyOf(layout, at);
  for (const [attribute, value] of Object.entries(attributes)) {
    if (value !== undefined) item[nameIn(layout, attribute)] = storedValue(value);
  }
  return item;
}

function updateOf({ set, remove, count }: Extract<Effect, { kind: "update" }>, words: Words): string {
  const setting = Object.entries(set)
    .filter(([, value]) => value !== undefined)
    .map(([attribute, value]) => `${words.attribute(attribute)} = ${words.value(attribute, storedValue(value))}`);
  if (count !== undefined) setting.push(countingOf(count, words));
  const removing = remove.map((attribute) => words.attribute(attribute));
  const actions = setting.length === 0 ? [] : [`SET ${setting.join(", ")}`];
  if (removing.length > 0) actions.push(`REMOVE ${removing.join(", ")}`);
  return actions.join(" ");
}

function countingOf({ attribute, seed }: Count, words: Words): string {
  const counter = words.attribute(attribute);
  const last = seed === undefined ? counter : `if_not_exists(${counter}, ${words.value("seed", storedValue(seed))})`;
  return `${counter} = ${last} + ${words.value("one", ONE)}`;
}

/** The words of a request's expressions, and what they stand for. DynamoDB refuses words that no expression uses. */
class Words {
  readonly names: Record<string, string> = {};
  readonly values: Item = {};
  readonly #layout: TableLayout;

  constructor(layout: TableLayout) {
    this.#layout = layout;
  }

  partitionKey(): string {
    this.names["#name"] = this.#layout.partition;
    return "#name";
  }

  attribute(attribute: string): string {
    const word = `#${attribute}`;
    this.names[word] = nameIn(this.#layout, attribute);
    return word;
  }

  /** The word for a value: the same for equal values, and with a number behind it for another of the same name. */
  value(name: string, value: AttributeValue): string {
    for (let suffix = 1; ; suffix += 1) {
      const word = suffix === 1 ? `:${name}` : `:${name}${suffix}`;
      const { [word]: present } = this.values;
      if (present !== undefined && (present.S !== value.S || present.N !== value.N)) continue;
      this.values[word] = value;
      return word;
    }
  }
}
