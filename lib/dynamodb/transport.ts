import {
  BatchExecuteStatementCommand,
  type BatchExecuteStatementCommandOutput,
  type ConsumedCapacity,
  DeleteItemCommand,
  DescribeTableCommand,
  type DynamoDBClient,
  GetItemCommand,
  type GetItemCommandOutput,
  PutItemCommand,
  type PutItemCommandOutput,
  QueryCommand,
  ScanCommand,
  type ScanCommandOutput,
  type TableDescription,
  TransactWriteItemsCommand,
  UpdateItemCommand,
} from "@aws-sdk/client-dynamodb";
import { CHANNELS } from "../diagnostics.js";
import type { LockStoreError } from "../errors.js";
import type { TableLayout } from "../options/table.js";
import type { Clock } from "../time/clock.js";
import { isAboutTheKey, isInvalid, isRefusal, refusalsOf, storeFailure } from "./failures.js";
import { type Purpose, tell } from "./request-events.js";
import { tableAdvice } from "./table-indexes.js";
import { isStrong } from "./table-keys.js";

/** The commands of requests about items. Each states its type, which a declaration file cannot infer. */
const COMMANDS = {
  GetItem: GetItemCommand as typeof GetItemCommand,
  PutItem: PutItemCommand as typeof PutItemCommand,
  UpdateItem: UpdateItemCommand as typeof UpdateItemCommand,
  DeleteItem: DeleteItemCommand as typeof DeleteItemCommand,
  Query: QueryCommand as typeof QueryCommand,
  Scan: ScanCommand as typeof ScanCommand,
  TransactWriteItems: TransactWriteItemsCommand as typeof TransactWriteItemsCommand,
  BatchExecuteStatement: BatchExecuteStatementCommand as typeof BatchExecuteStatementCommand,
};

/** A request about items: the operation, and its input. */
export type ItemRequest = {
  readonly [Operation in keyof typeof COMMANDS]: readonly [
    Operation,
    ConstructorParameters<(typeof COMMANDS)[Operation]>[0],
  ];
}[keyof typeof COMMANDS];

/** The command of a request, typed as one of them: no overload of the client's `send` takes all of them. */
export function commandOf([operation, input]: ItemRequest): GetItemCommand {
  return new (COMMANDS[operation] as typeof GetItemCommand)(input as GetItemCommand["input"]);
}

/** The actions that IAM checks for operations without an action of their own name. */
const PERMISSIONS: Readonly<Record<string, string>> = {
  TransactWriteItems: "PutItem",
  BatchExecuteStatement: "PartiQLUpdate",
};

/** What the store reads of a reply. A test's mock client may leave out anything. */
export type Reply =
  | (Partial<
      Omit<
        GetItemCommandOutput & PutItemCommandOutput & ScanCommandOutput & BatchExecuteStatementCommandOutput,
        "ConsumedCapacity"
      >
    > & { readonly ConsumedCapacity?: ConsumedCapacity | ConsumedCapacity[] | undefined })
  | undefined;

type Heard = ReturnType<NonNullable<Clock["listen"]>> | undefined;

/** What belongs to a request of ours, and not to others that the same client sends. */
interface RequestContext {
  /** No attempt leaves once it has aborted. */
  readonly signal: AbortSignal;
  /** Called as each attempt leaves. The function that it returns is called with the `Date` of the reply. */
  readonly listen: () => Heard;
  /** What {@link listen} has returned for the attempt that left last. */
  heard?: Heard;
  /** Whether a reply has told the time. */
  isTold: boolean;
  /** How many attempts have left. */
  attempts: number;
}

/** Where middleware sees each attempt by itself, signed, and its reply as it came: next to the request handler. */
const NEXT_TO_THE_NETWORK = { step: "deserialize", priority: "low", name: "dynamutexAttempts" } as const;

/**
 * The key of a request's context on the input of its command. The SDK hands the input to the middleware with each attempt,
 * whichever command it made the chain of handlers from. As an enumerable property, the context also survives a caller's
 * middleware that sends `{ ...input, more }`; the SDK serialises only members that it knows, and so leaves it out.
 */
const CONTEXT = Symbol("dynamutex");

const ownClients = new WeakSet<DynamoDBClient>();

/**
 * Makes a client one of the library's own: a {@link Transport} sends to it without options, and closes it.
 *
 * The SDK sorts a client's middleware anew for every request, unless the client has `cacheMiddleware` and the request no
 * options, such as an abort signal. So the signal reaches the request handler by way of one middleware, installed once. Requests
 * with options work on such a client as on any other.
 *
 * @param exchange hands each request to the network.
 */
export function adopt(
  client: DynamoDBClient,
  exchange: <Result>(request: () => Promise<Result>) => Promise<Result>,
): DynamoDBClient {
  ownClients.add(client);
  client.middlewareStack.add(
    (next) => (args) => {
      const context = (args.input as { readonly [CONTEXT]?: RequestContext })[CONTEXT];
      if (context === undefined) return exchange(() => next(args));
      const { requestHandler: handler } = client.config;
      const request = args.request as Parameters<typeof handler.handle>[0];
      // Replaces `next`, which would call the same handler without the signal.
      return attempt(context, () => exchange(() => handler.handle(request, { abortSignal: context.signal })));
    },
    NEXT_TO_THE_NETWORK,
  );
  return client;
}

/**
 * Sends requests to one table. A signal ends each of them, the clock hears of every attempt, and errors become errors of this
 * library. A caller's client is not changed: each command has a middleware of its own, which listens.
 */
export class Transport {
  readonly #client: DynamoDBClient;
  readonly #layout: TableLayout;
  readonly #clock: Clock;

  constructor(client: DynamoDBClient, layout: TableLayout, clock: Clock) {
    this.#client = client;
    this.#layout = layout;
    this.#clock = clock;
  }

  /** @param purpose what the channel reports of the request; without it, nothing. @throws the SDK's own error. */
  async send(request: ItemRequest, signal: AbortSignal, purpose?: Purpose): Promise<Reply> {
    const listen = (): Heard => this.#clock.listen?.();
    const context: RequestContext = { signal, listen, isTold: false, attempts: 0 };
    const command = commandOf(request);
    const isMetered = purpose !== undefined && CHANNELS["dynamutex:request"].hasSubscribers;
    const reply = await (isMetered ? this.#sendHeard(command, context, purpose) : this.#send(command, context));
    // Only a success proves that the table's replies tell no time: an error may come from a gateway.
    if (!context.isTold) (context.heard ?? listen())?.(undefined);
    return reply;
  }

  /** The same if the channel has a subscriber, which also gets the consumed capacity. */
  async #sendHeard(command: GetItemCommand, context: RequestContext, purpose: Purpose): Promise<Reply> {
    // All copies that share a token must be the same, so the maker of the token has already decided whether to ask for this.
    const { input } = command;
    if (!("ClientRequestToken" in input)) input.ReturnConsumedCapacity = "TOTAL";
    const leftAt = this.#clock.atLeast();
    const sent = () => ({ ms: this.#clock.atLeast() - leftAt, attempts: context.attempts });
    const reply = await this.#send(command, context).catch((error: unknown) => {
      tell(purpose, { ...sent(), error });
      throw error;
    });
    tell(purpose, { ...sent(), consumed: reply?.ConsumedCapacity });
    return reply;
  }

  async #send(command: GetItemCommand, sent: RequestContext): Promise<Reply> {
    (command.input as { [CONTEXT]?: RequestContext })[CONTEXT] = sent;
    if (ownClients.has(this.#client)) return await this.#client.send(command);
    command.middlewareStack.add(
      (next) => (args) => {
        // Read the context from the input and not from this command: a client whose `send` drops the options, and which has
        // `cacheMiddleware`, uses the middleware of one command for all commands of its class, including the caller's own.
        const context = (args.input as { readonly [CONTEXT]?: RequestContext })[CONTEXT];
        return context === undefined ? next(args) : attempt(context, () => next(args));
      },
      NEXT_TO_THE_NETWORK,
    );
    return await this.#client.send(command, { abortSignal: sent.signal });
  }

  /** A caller's client stays open. */
  close(): void {
    if (ownClients.has(this.#client)) this.#client.destroy();
  }

  /** @throws the refusal of a condition as it is, and a {@link LockStoreError} for everything else. */
  ask(request: ItemRequest, signal: AbortSignal, purpose: Purpose): Promise<Reply> {
    return this.send(request, signal, purpose).catch(async (error: unknown) => {
      throw isRefusal(error) || refusalsOf(error) !== undefined ? error : await this.#failure(error, request, signal);
    });
  }

  async #failure(error: unknown, [operation]: ItemRequest, signal: AbortSignal): Promise<LockStoreError> {
    const { tableName } = this.#layout;
    const asked = { action: PERMISSIONS[operation] ?? operation, tableName };
    const noTransactions = operation === "TransactWriteItems" && (await this.noTransactions(error, signal));
    if (noTransactions) return noTransactions;
    if (isAboutTheKey(error)) {
      const table = await this.#describe(signal);
      return storeFailure(error, { ...asked, mismatch: table && tableAdvice(table, this.#layout) });
    }
    const region = await this.#client.config?.region?.().catch(() => undefined);
    return storeFailure(error, { ...asked, region });
  }

  /** The error of a transaction that failed because the table has no transactions; undefined if it failed for another reason. */
  async noTransactions(error: unknown, signal: AbortSignal): Promise<LockStoreError | undefined> {
    const table = isInvalid(error) ? await this.#describe(signal) : undefined;
    if (table === undefined || !isStrong(table)) return undefined;
    const { tableName } = this.#layout;
    return storeFailure(error, { action: "TransactWriteItems", tableName, mismatch: noTransactionsOn(tableName) });
  }

  /** The table's description; undefined if it cannot be had. */
  async #describe(signal: AbortSignal): Promise<TableDescription | undefined> {
    const command = new DescribeTableCommand({ TableName: this.#layout.tableName });
    const reply = await this.#client.send(command, { abortSignal: signal }).catch(() => undefined);
    return reply?.Table;
  }
}

/** The advice for a table with multi-Region strong consistency. */
function noTransactionsOn(tableName: string): string {
  return (
    `table ${tableName} is a global table with strong consistency, which has no transactions: take locks one by one in place of ` +
    "lockAll(), and in place of a guard compare the fencing token in a condition on the item itself (docs/regions.md in the package)"
  );
}

/** Makes one attempt, unless the signal has aborted. The clock hears of it and of the reply, error replies included. */
async function attempt<Result extends { readonly response: unknown }>(
  context: RequestContext,
  send: () => Promise<Result>,
): Promise<Result> {
  context.signal.throwIfAborted();
  context.attempts += 1;
  const heard = context.listen();
  if (heard !== undefined) context.heard = heard;
  const result = await send();
  const { headers } = (result.response ?? {}) as { readonly headers?: Headers };
  // A reply that is not the table's, such as a gateway's error page, has a date that is not the table's.
  if (headers?.date !== undefined && isTable(headers)) {
    context.isTold = true;
    heard?.(headers.date);
  }
  return result;
}

type Headers = Readonly<Record<string, string | undefined>>;

function isTable({ "x-amzn-requestid": id, "content-type": type }: Headers): boolean {
  return id !== undefined || type?.startsWith("application/x-amz-json") === true;
}
