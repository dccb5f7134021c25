import {
  DeleteItemCommand,
  DescribeTableCommand,
  type DynamoDBClient,
  type GetItemCommand,
  type GetItemCommandOutput,
  PutItemCommand,
  type PutItemCommandOutput,
  QueryCommand,
  ScanCommand,
  type ScanCommandOutput,
  TransactWriteItemsCommand,
  UpdateItemCommand,
} from "@aws-sdk/client-dynamodb";
import type { LockStoreError } from "../errors.js";
import type { TableLayout } from "../options/table.js";
import type { Clock } from "../time/clock.js";
import { attempt, contextOf, NEXT_TO_THE_NETWORK, setContext } from "./attempts.js";
import { DefaultClient } from "./client.js";
import { isAboutTheKey, isRefusal, refusalsOf, storeFailure } from "./failures.js";
import { keyMismatch } from "./table-shape.js";

export type ItemCommand =
  | GetItemCommand
  | PutItemCommand
  | UpdateItemCommand
  | DeleteItemCommand
  | ScanCommand
  | QueryCommand
  | TransactWriteItemsCommand;

/** What the store reads of a reply. The client of somebody's test may leave out anything. */
export type Reply =
  | (Partial<Pick<GetItemCommandOutput, "Item" | "$metadata">> &
      Pick<PutItemCommandOutput, "Attributes"> &
      Pick<ScanCommandOutput, "Items" | "LastEvaluatedKey">)
  | undefined;

/**
 * Sends requests to one table. A signal ends each of them, the clock hears of every attempt, and errors become errors
 * of this library.
 *
 * A caller's client stays as it is: what listens is a middleware on each command.
 */
export class Transport {
  readonly #client: DynamoDBClient;
  readonly #layout: TableLayout;
  readonly #listen: Clock["listen"];

  constructor(client: DynamoDBClient, layout: TableLayout, clock: Clock) {
    this.#client = client;
    this.#layout = layout;
    this.#listen = clock.listen?.bind(clock);
  }

  /** @throws the SDK's own error. */
  send(itemCommand: ItemCommand, signal: AbortSignal): Promise<Reply> {
    // Any of them to the type checker, or it would look for an overload that takes them all.
    const command = itemCommand as GetItemCommand;
    setContext(command.input, { signal, listen: this.#listen });
    if (this.#client instanceof DefaultClient) return this.#client.send(command);
    command.middlewareStack.add(
      (next) => (args) => {
        // Of the input and not of this command: a client whose `send` drops the options, and which has
        // `cacheMiddleware`, uses the middleware of one command for all of its class, the caller's own included.
        const context = contextOf(args.input);
        return context === undefined ? next(args) : attempt(context, () => next(args));
      },
      { ...NEXT_TO_THE_NETWORK, name: "dynamutexAttempts" },
    );
    return this.#client.send(command, { abortSignal: signal });
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
