import type {
  DeleteItemCommandInput,
  GetItemCommandInput,
  PutItemCommandInput,
  QueryCommandInput,
  UpdateItemCommandInput,
} from "@aws-sdk/client-dynamodb";
import { FORMAT, purgeAt } from "../protocol/row.js";
import type { PageRequest, Place, Waiter } from "../ticket-store.js";
import { IS_COUNTER, IS_EXACTLY, IS_MINE, IS_MINE_AND_EARLIER, NO_ROW } from "./conditions.js";
import { LOCK_SORT, number } from "./items.js";
import {
  counterKeyOf,
  FIRST_SORT,
  LAST_SORT,
  type QueueLayout,
  sortOf,
  waiterItemOf,
  waiterKeyOf,
} from "./ticket-items.js";

const DRAW = "SET #n = if_not_exists(#n, :seed) + :one, #format = :format, #purge = :purge";
const RENEW = "SET #expires = :expires, #purge = :purge";
const IN_RANGE = "#name = :name AND #sort BETWEEN :from AND :to";

const FORMAT_VALUE = number(FORMAT);

/**
 * What is sent for the queue, on a table of this layout.
 *
 * Late copies do no harm. Of a draw: a ticket is left out. Of a waiter's row: its key may be free again, and then it is
 * a place without anybody behind it, which ends at its first stamp. Of a renewal: it is refused by the later stamp, or by
 * there being no row. Of a removal: it names one place, which nobody takes a second time.
 */
export class TicketRequests {
  readonly #layout: QueueLayout;

  constructor(layout: QueueLayout) {
    this.#layout = layout;
  }

  draw(name: string, seed: number): UpdateItemCommandInput {
    return {
      TableName: this.#layout.tableName,
      Key: counterKeyOf(this.#layout, name),
      UpdateExpression: DRAW,
      ConditionExpression: IS_COUNTER,
      ExpressionAttributeNames: this.#names(DRAW, IS_COUNTER),
      ExpressionAttributeValues: {
        ":seed": number(seed),
        ":one": number(1),
        ":format": FORMAT_VALUE,
        ":purge": number(purgeAt(seed)),
        ":number": { S: "N" },
      },
      ReturnValues: "UPDATED_NEW",
      ReturnValuesOnConditionCheckFailure: "ALL_OLD",
    };
  }

  enqueue(waiter: Waiter): PutItemCommandInput {
    return {
      TableName: this.#layout.tableName,
      Item: waiterItemOf(this.#layout, waiter),
      ConditionExpression: NO_ROW,
      ExpressionAttributeNames: this.#names(NO_ROW),
      ReturnValuesOnConditionCheckFailure: "ALL_OLD",
    };
  }

  renew({ name, ticket, uuid }: Place, expires: number): UpdateItemCommandInput {
    return {
      TableName: this.#layout.tableName,
      Key: waiterKeyOf(this.#layout, name, ticket),
      UpdateExpression: RENEW,
      ConditionExpression: IS_MINE_AND_EARLIER,
      ExpressionAttributeNames: this.#names(RENEW, IS_MINE_AND_EARLIER),
      ExpressionAttributeValues: {
        ":format": FORMAT_VALUE,
        ":uuid": { S: uuid },
        ":expires": number(expires),
        ":purge": number(purgeAt(expires)),
      },
      ReturnValuesOnConditionCheckFailure: "ALL_OLD",
    };
  }

  leave({ name, ticket, uuid }: Place): DeleteItemCommandInput {
    return {
      TableName: this.#layout.tableName,
      Key: waiterKeyOf(this.#layout, name, ticket),
      ConditionExpression: IS_MINE,
      ExpressionAttributeNames: this.#names(IS_MINE),
      ExpressionAttributeValues: { ":format": FORMAT_VALUE, ":uuid": { S: uuid } },
      ReturnValuesOnConditionCheckFailure: "ALL_OLD",
    };
  }

  sweep({ name, ticket, uuid, expires }: Place & { readonly expires: number }): DeleteItemCommandInput {
    return {
      TableName: this.#layout.tableName,
      Key: waiterKeyOf(this.#layout, name, ticket),
      ConditionExpression: IS_EXACTLY,
      ExpressionAttributeNames: this.#names(IS_EXACTLY),
      ExpressionAttributeValues: {
        ":format": FORMAT_VALUE,
        ":seenUuid": { S: uuid },
        ":seenExpires": number(expires),
      },
      ReturnValuesOnConditionCheckFailure: "ALL_OLD",
    };
  }

  get(name: string, ticket: bigint): GetItemCommandInput {
    return { TableName: this.#layout.tableName, Key: waiterKeyOf(this.#layout, name, ticket), ConsistentRead: true };
  }

  page(name: string, request: PageRequest, consistent: boolean): QueryCommandInput {
    const [from, to] = rangeOf(request);
    return {
      TableName: this.#layout.tableName,
      KeyConditionExpression: IN_RANGE,
      ExpressionAttributeNames: this.#names(IN_RANGE),
      ExpressionAttributeValues: {
        ":name": { S: this.#layout.keyPrefix + name },
        ":from": { S: from },
        ":to": { S: to },
      },
      ScanIndexForward: request.from === "front",
      Limit: request.limit,
      ConsistentRead: consistent,
    };
  }

  /** DynamoDB refuses a name that no expression uses. */
  #names(...expressions: readonly string[]): Record<string, string> {
    const words = expressions.join(" ").match(/#\w+/g) ?? [];
    return Object.fromEntries(words.map((word) => [word, this.#attributeOf(word.slice(1))]));
  }

  #attributeOf(word: string): string {
    if (word === "name") return this.#layout.partition;
    if (word === "sort") return this.#layout.sort;
    return word === "purge" ? this.#layout.ttl : word;
  }
}

/** The lock's own row sorts before its waiters, and the counter after them. */
function rangeOf(request: PageRequest): readonly [string, string] {
  if (request.from === "end")
    return [FIRST_SORT, request.before === undefined ? LAST_SORT : sortOf(request.before - 1n)];
  return [request.after === undefined ? LOCK_SORT : sortOf(request.after + 1n), LAST_SORT];
}
