import {
  DeleteItemCommand,
  DescribeTableCommand,
  DescribeTimeToLiveCommand,
  GetItemCommand,
  PutItemCommand,
  QueryCommand,
  ScanCommand,
  type TableDescription,
  type TimeToLiveDescription,
  TransactWriteItemsCommand,
  UpdateItemCommand,
} from "@aws-sdk/client-dynamodb";
import type { TableLayout } from "../../options/table.js";
import { lockAt } from "../../protocol/row.js";
import type { TableAction } from "../../table-report.js";
import { keyOf } from "../items.js";
import { type ControlPlane, isCausedBy } from "./control-plane.js";

/** What a table said to one request that was meant to change nothing. */
export type Probe<Found = unknown> =
  | { readonly kind: "allowed"; readonly found: Found }
  | { readonly kind: "refused"; readonly cause: Error }
  /** There is no such table. */
  | { readonly kind: "missing" }
  /** It is not known whether the action is allowed. */
  | { readonly kind: "unknown"; readonly cause: Error };

/** A name that nobody gives to a lock. If somebody did: nothing that is sent under it changes anything. */
const PROBED_NAME = "dynamutex#check";

/** No item fulfils it, and none is made, so that no write is ever applied. DynamoDB checks permissions first. */
const NEVER = "attribute_exists(#name) AND attribute_not_exists(#name)";

/** The requests that tell whether a table fits and what may be done to it. None of them changes anything. */
export class Probes {
  readonly #plane: ControlPlane;
  readonly #layout: TableLayout;

  constructor(plane: ControlPlane, layout: TableLayout) {
    this.#plane = plane;
    this.#layout = layout;
  }

  async table(): Promise<Probe<TableDescription | undefined>> {
    const command = new DescribeTableCommand({ TableName: this.#layout.tableName });
    return await this.#ask("DescribeTable", async (client, options) => (await client.send(command, options)).Table);
  }

  async ttl(): Promise<Probe<TimeToLiveDescription | undefined>> {
    const command = new DescribeTimeToLiveCommand({ TableName: this.#layout.tableName });
    return await this.#ask("DescribeTimeToLive", async (client, options) => {
      const { TimeToLiveDescription } = await client.send(command, options);
      return TimeToLiveDescription;
    });
  }

  /** One request for each action on items: four refused writes, a refused transaction, and three small reads. */
  async items(): Promise<Map<TableAction, Probe>> {
    const probes = this.#itemProbes();
    const answers = await Promise.all(
      probes.map(async ([action, send]) => [action, await this.#ask(action, send)] as const),
    );
    return new Map(answers);
  }

  #itemProbes(): readonly (readonly [TableAction, Send<unknown>])[] {
    const { partition, sort, tableName: TableName } = this.#layout;
    const Key = keyOf(this.#layout, lockAt(PROBED_NAME));
    const ExpressionAttributeNames = { "#name": partition };
    const never = { TableName, ConditionExpression: NEVER, ExpressionAttributeNames };
    const TransactItems = [{ ConditionCheck: { ...never, Key } }];
    const query = {
      TableName,
      KeyConditionExpression: "#name = :name",
      ExpressionAttributeNames,
      ExpressionAttributeValues: { ":name": Key[partition] as { S: string } },
      Limit: 1,
    };
    const queried: Send<unknown> = (client, options) => client.send(new QueryCommand(query), options);
    return [
      ["GetItem", (client, options) => client.send(new GetItemCommand({ TableName, Key }), options)],
      ["PutItem", (client, options) => client.send(new PutItemCommand({ ...never, Item: Key }), options)],
      ["UpdateItem", (client, options) => client.send(new UpdateItemCommand({ ...never, Key }), options)],
      ["DeleteItem", (client, options) => client.send(new DeleteItemCommand({ ...never, Key }), options)],
      ...(sort === undefined ? [] : [["Query", queried] as const]),
      ["Scan", (client, options) => client.send(new ScanCommand({ TableName, Limit: 1 }), options)],
      [
        "ConditionCheckItem",
        (client, options) => client.send(new TransactWriteItemsCommand({ TransactItems }), options),
      ],
    ];
  }

  /** @throws {@link LockStoreError} for what says nothing about the table: no answer, or credentials that nobody knows. */
  async #ask<Found>(action: TableAction, send: Send<Found>): Promise<Probe<Found | undefined>> {
    try {
      return { kind: "allowed", found: await this.#plane.ask(action, send) };
    } catch (error) {
      const is = (name: string): boolean => isCausedBy(error, name);
      if (is("ConditionalCheckFailedException") || is("TransactionCanceledException")) {
        return { kind: "allowed", found: undefined };
      }
      const cause = error as Error;
      if (is("AccessDeniedException") || is("AccessDenied")) return { kind: "refused", cause };
      if (is("ResourceNotFoundException")) return { kind: "missing" };
      // Such as a key that does not fit, or a table whose replicas rule transactions out.
      if (is("ValidationException")) return { kind: "unknown", cause };
      throw error;
    }
  }
}

type Send<Found> = Parameters<typeof ControlPlane.prototype.ask<Found>>[1];
