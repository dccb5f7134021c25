import {
  type ConditionalCheckFailedException,
  DeleteItemCommand,
  DescribeTableCommand,
  type DynamoDBClient,
  PutItemCommand,
  QueryCommand,
  ScanCommand,
  TransactWriteItemsCommand,
  UpdateItemCommand,
} from "@aws-sdk/client-dynamodb";
import type { LockStoreError } from "../errors.js";
import type { TableLayout } from "../options/table.js";
import type { Clock } from "../time/clock.js";
import { refusalsOf } from "./cancellations.js";
import { isAboutTheKey, storeFailure } from "./failures.js";
import { type ItemCommand, type Reply, Sending } from "./sending.js";
import { keyMismatch } from "./table-shape.js";

/** The way to one table: requests go out, and what goes wrong comes back as errors of this library. */
export class Gateway {
  readonly #client: DynamoDBClient;
  readonly #layout: TableLayout;
  readonly #sending: Sending;

  constructor(client: DynamoDBClient, layout: TableLayout, clock: Clock) {
    this.#client = client;
    this.#layout = layout;
    this.#sending = new Sending(client, clock.listen?.bind(clock));
  }

  /** @throws the SDK's own error. */
  send(command: ItemCommand, signal: AbortSignal): Promise<Reply> {
    return this.#sending.send(command, signal);
  }

  /** @throws the refusal of a condition as it is, and a {@link LockStoreError} for everything else. */
  ask(command: ItemCommand, signal: AbortSignal): Promise<Reply> {
    return this.send(command, signal).catch(async (error: unknown) => {
      throw isRefusal(error) || refusalsOf(error) !== undefined ? error : await this.#failure(error, command, signal);
    });
  }

  async #failure(error: unknown, command: ItemCommand, signal: AbortSignal): Promise<LockStoreError> {
    const { tableName } = this.#layout;
    const asked = { action: actionOf(command), tableName };
    if (isAboutTheKey(error)) {
      const { Table } = await this.#client
        .send(new DescribeTableCommand({ TableName: tableName }), { abortSignal: signal })
        .catch(() => ({ Table: undefined }));
      return storeFailure(error, { ...asked, mismatch: Table && keyMismatch(Table, this.#layout) });
    }
    const region = await this.#client.config?.region?.().catch(() => undefined);
    return storeFailure(error, { ...asked, region });
  }
}

/** Whether a condition was not fulfilled, which is an outcome rather than a failure. */
export function isRefusal(error: unknown): error is ConditionalCheckFailedException {
  return (error as Partial<Error> | undefined)?.name === "ConditionalCheckFailedException";
}

/** The operation as IAM calls it. */
function actionOf(command: ItemCommand): string {
  if (command instanceof PutItemCommand) return "PutItem";
  if (command instanceof UpdateItemCommand) return "UpdateItem";
  if (command instanceof QueryCommand) return "Query";
  if (command instanceof ScanCommand) return "Scan";
  // A transaction asks for the permissions of what it does.
  if (command instanceof TransactWriteItemsCommand) return "PutItem";
  return command instanceof DeleteItemCommand ? "DeleteItem" : "GetItem";
}
