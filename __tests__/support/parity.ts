import { isDeepStrictEqual } from "node:util";
import {
  type AttributeValue,
  BatchExecuteStatementCommand,
  BatchGetItemCommand,
  BatchWriteItemCommand,
  type DynamoDBClient,
  type TransactWriteItem,
  TransactWriteItemsCommand,
} from "@aws-sdk/client-dynamodb";
import { actionOf, type Item, itemKey, nameIn } from "../../lib/dynamodb/compile.js";
import { attributesOf } from "../../lib/dynamodb/items.js";
import { statedBy, statementOf } from "../../lib/dynamodb/statements.js";
import { requestOf } from "../../lib/dynamodb/store.js";
import { commandOf, type Reply } from "../../lib/dynamodb/transport.js";
import type { TableLayout } from "../../lib/options/table.js";
import { apply } from "../../lib/protocol/apply.js";
import type { Attributes } from "../../lib/protocol/row.js";
import { countOf, drawnBy } from "../../lib/protocol/rules.js";
import type { Renew, Write } from "../../lib/protocol/writes.js";
import type { Pair } from "./generated-writes.js";

/** What DynamoDB did with a request. */
export interface EngineResult {
  readonly kind: "applied" | "refused" | "invalid";
  /** The item that refused, or what the reply shows of the item that was there before. */
  readonly shown: Item | undefined;
  /** Whether the request was an action of a transaction, whose reply shows nothing where it is applied. */
  readonly transacted: boolean;
  readonly after: Item | undefined;
}

/** The part of a request that a defect may spoil. */
export interface Expressions {
  ConditionExpression?: string | undefined;
  /** Of a renewal in a batch, which has no other. */
  Statement?: string | undefined;
  UpdateExpression?: string | undefined;
  ExpressionAttributeNames?: Record<string, string> | undefined;
  ExpressionAttributeValues?: Record<string, AttributeValue> | undefined;
  ReturnValues?: string | undefined;
}

/** The writes whose reply shows the whole item that was there before. */
const SHOW_ALL: ReadonlySet<Write["kind"]> = new Set(["take", "transfer", "vacate", "renew"]);

const AT_ONCE = 16;
const MOST_PUTS = 25;
const MOST_GETS = 100;

/** Plants the items, sends the writes as they are compiled, with nothing of the store in between, and reads all back. */
export async function engineResults(
  client: DynamoDBClient,
  layout: TableLayout,
  pairs: readonly Pair[],
  spoil: (expressions: Expressions) => void = () => {},
): Promise<readonly EngineResult[]> {
  await inBatches(pairs, MOST_PUTS, (batch) => plant(client, layout, batch));
  const replies = await inBatches(pairs, 1, (batch) =>
    Promise.all(
      batch.map(({ write, as }) => {
        if (as === "statement") return state(client, layout, write as Renew, spoil);
        return send(client, layout, write, as === "transaction", spoil);
      }),
    ),
  );
  const items = new Map<string, Item>();
  await inBatches(pairs, MOST_GETS, async (batch) => {
    for (const item of await get(client, layout, batch)) items.set(keyText(layout, item), item);
    return [];
  });
  return replies.map((reply, index) => {
    const at = pairs[index]?.at ?? { name: "", sort: "" };
    return { ...reply, after: items.get(keyText(layout, itemKey(layout, at))) };
  });
}

/** Whether a defect changes what is sent for a pair. */
export function isSpoiled(layout: TableLayout, pair: Pair, spoil: (expressions: Expressions) => void): boolean {
  const spoiled = sentFor(layout, pair);
  spoil(spoiled);
  return !isDeepStrictEqual(spoiled, sentFor(layout, pair));
}

function sentFor(layout: TableLayout, { write, as }: Pair): Expressions {
  if (as === "statement") return { Statement: statementOf(layout, write as Renew).Statement };
  return as === "transaction" ? expressionsIn(actionOf(layout, write)) : (requestOf(layout, write)[1] as Expressions);
}

function expressionsIn({ Put, Update, Delete, ConditionCheck }: TransactWriteItem): Expressions {
  return Put ?? Update ?? Delete ?? ConditionCheck ?? {};
}

/** How what the engine did differs from what the table in memory does; undefined if it does not. */
export function difference(layout: TableLayout, { planted, write }: Pair, engine: EngineResult): object | undefined {
  const item = planted && attributesOf(layout, inTable(layout, planted));
  const memory = apply(item, write);
  const shown = engine.shown && attributesOf(layout, engine.shown);
  const after = engine.after && attributesOf(layout, engine.after);
  const expected =
    memory.kind === "refused"
      ? { kind: memory.kind, shown: memory.by, after: item }
      : { kind: memory.kind, ...shownBy(engine, memory.before), after: memory.after };
  const found: typeof expected =
    engine.kind === "applied"
      ? { kind: engine.kind, ...shownBy(engine, shown), after }
      : { kind: engine.kind as "refused", shown, after };
  return isDeepStrictEqual(normal(found), normal(expected)) ? undefined : { item, write, found, expected };

  function shownBy({ transacted }: EngineResult, before: Attributes | undefined): object {
    if (transacted) return {};
    const counter = countOf(write)?.attribute;
    const drawn = counter === undefined ? {} : { drawn: drawnBy(write, before), counted: whole(after?.[counter]) };
    return SHOW_ALL.has(write.kind) ? { shown: before, ...drawn } : drawn;
  }
}

/** What is drawn is what is written: undefined where that is not a whole number above 0. */
function whole(value: unknown): bigint | undefined {
  const token = typeof value === "bigint" || Number.isSafeInteger(value) ? BigInt(value as number | bigint) : undefined;
  return token !== undefined && token > 0n ? token : undefined;
}

/** A number and a bigint of the same value are one number to DynamoDB. */
function normal(value: unknown): unknown {
  if (Number.isSafeInteger(value)) return BigInt(value as number);
  if (Array.isArray(value)) return value.map(normal);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, normal(member)]));
}

async function plant(client: DynamoDBClient, layout: TableLayout, pairs: readonly Pair[]): Promise<never[]> {
  const requests = pairs.map(({ at, planted }) => {
    const Key = itemKey(layout, at);
    if (planted === undefined) return { DeleteRequest: { Key } };
    return { PutRequest: { Item: { ...inTable(layout, planted), ...Key } } };
  });
  await client.send(new BatchWriteItemCommand({ RequestItems: { [layout.tableName]: requests } }));
  return [];
}

async function get(client: DynamoDBClient, { ...layout }: TableLayout, pairs: readonly Pair[]): Promise<Item[]> {
  const request = { Keys: pairs.map(({ at }) => itemKey(layout, at)), ConsistentRead: true };
  const reply = await client.send(new BatchGetItemCommand({ RequestItems: { [layout.tableName]: request } }));
  return reply.Responses?.[layout.tableName] ?? [];
}

async function send(
  client: DynamoDBClient,
  layout: TableLayout,
  write: Write,
  transacted: boolean,
  spoil: (expressions: Expressions) => void,
): Promise<Omit<EngineResult, "after">> {
  try {
    if (transacted) {
      const action = actionOf(layout, write);
      spoil(expressionsIn(action));
      await client.send(new TransactWriteItemsCommand({ TransactItems: [action] }));
      return { kind: "applied", shown: undefined, transacted };
    }
    const command = commandOf(requestOf(layout, write));
    spoil(command.input);
    const reply: Reply = await client.send(command);
    return { kind: "applied", shown: reply?.Attributes, transacted };
  } catch (error) {
    const { name, Item: item, CancellationReasons: [reason] = [] } = error as Refusal;
    if (name === "ConditionalCheckFailedException") return { kind: "refused", shown: item, transacted };
    if (reason?.Code === "ConditionalCheckFailed") return { kind: "refused", shown: reason.Item, transacted };
    if (name === "ValidationException" || reason?.Code === "ValidationError") {
      return { kind: "invalid", shown: undefined, transacted };
    }
    throw error;
  }
}

/** A renewal as one statement of a batch. */
async function state(
  client: DynamoDBClient,
  layout: TableLayout,
  renewal: Renew,
  spoil: (expressions: Expressions) => void,
): Promise<Omit<EngineResult, "after">> {
  const statement = statementOf(layout, renewal);
  const expressions: Expressions = { Statement: statement.Statement };
  spoil(expressions);
  const Statements = [{ ...statement, Statement: expressions.Statement }];
  const { Responses } = await client.send(new BatchExecuteStatementCommand({ Statements }));
  const stated = statedBy(Responses?.[0], layout.tableName);
  if (stated.kind === "failed" && stated.error.transient) throw stated.error;
  if (stated.kind === "failed") return { kind: "invalid", shown: undefined, transacted: false };
  return { kind: stated.kind, shown: stated.item, transacted: false };
}

interface Refusal {
  readonly name?: string;
  readonly Item?: Item;
  readonly CancellationReasons?: readonly { readonly Code?: string; readonly Item?: Item }[];
}

/** An item with the names that its attributes have in this table. */
function inTable(layout: TableLayout, item: Item): Item {
  return Object.fromEntries(Object.entries(item).map(([name, value]) => [nameIn(layout, name), value]));
}

function keyText({ partition, sort = "" }: TableLayout, item: Item): string {
  return `${item[partition]?.S} ${item[sort]?.S}`;
}

/** Does something with all members, a few batches at once; gives the results in the members' order. */
async function inBatches<Member, Result>(
  members: readonly Member[],
  size: number,
  work: (batch: readonly Member[], from: number) => Promise<readonly Result[]>,
): Promise<Result[]> {
  const results: (readonly Result[])[] = [];
  let next = 0;
  const worker = async () => {
    for (let batch = next++; batch * size < members.length; batch = next++) {
      results[batch] = await work(members.slice(batch * size, (batch + 1) * size), batch * size);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  return results.flat();
}
