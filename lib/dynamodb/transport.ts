import {
  BatchExecuteStatementCommand,
  type BatchExecuteStatementCommandOutput,
  DeleteItemCommand,
  DescribeTableCommand,
  DynamoDBClient,
  type GetItemCommand,
  type GetItemCommandOutput,
  PutItemCommand,
  type PutItemCommandOutput,
  QueryCommand,
  ScanCommand,
  type ScanCommandOutput,
  TransactWriteItemsCommand,
  type TransactWriteItemsCommandOutput,
  UpdateItemCommand,
} from "@aws-sdk/client-dynamodb";
import { CHANNELS } from "../diagnostics.js";
import type { LockStoreError } from "../errors.js";
import type { TableLayout } from "../options/table.js";
import type { Clock } from "../time/clock.js";
import { isAboutTheKey, isRefusal, refusalsOf, storeFailure } from "./failures.js";
import { type Purpose, tell } from "./request-events.js";
import { keyAdvice } from "./table-keys.js";

export type ItemCommand =
  | GetItemCommand
  | PutItemCommand
  | UpdateItemCommand
  | DeleteItemCommand
  | ScanCommand
  | QueryCommand
  | TransactWriteItemsCommand
  | BatchExecuteStatementCommand;

/** What the store reads of a reply. The client of somebody's test may leave out anything. */
export type Reply =
  | (Partial<Pick<GetItemCommandOutput, "Item" | "$metadata">> &
      Pick<PutItemCommandOutput, "Attributes"> &
      Pick<ScanCommandOutput, "Items" | "LastEvaluatedKey"> &
      Pick<BatchExecuteStatementCommandOutput, "Responses"> & {
        readonly ConsumedCapacity?:
          | PutItemCommandOutput["ConsumedCapacity"]
          | TransactWriteItemsCommandOutput["ConsumedCapacity"];
      })
  | undefined;

/** What belongs to a request of ours, and not to others that the same client sends. */
interface RequestContext {
  /** No attempt leaves once it has aborted. */
  readonly signal: AbortSignal;
  /** Told of each attempt and of the `Date` of its reply. */
  readonly listen: Clock["listen"];
  /** What the clock waits for from the attempt that left last. */
  heard?: ReturnType<NonNullable<Clock["listen"]>>;
  /** Whether a reply has told the time. */
  isTold: boolean;
  /** How many attempts have left. */
  attempts: number;
}

/** Where middleware sees each attempt by itself, signed, and its reply as it came: next to the request handler. */
const NEXT_TO_THE_NETWORK = { step: "deserialize", priority: "low", name: "dynamutexAttempts" } as const;

/**
 * On the input of a command of ours. Middleware is handed the input with each attempt, whichever command the SDK made
 * the chain of handlers from. As an enumerable property it also survives a caller's middleware that sends
 * `{ ...input, more }`; the SDK serialises members that it knows, and so leaves it out.
 */
const CONTEXT = Symbol("dynamutex");

const ownClients = new WeakSet<DynamoDBClient>();

/** Whether the library has made this client. */
export function isOwnClient(client: DynamoDBClient): boolean {
  return ownClients.has(client);
}

/**
 * A client from the environment: region, credentials and endpoint as the AWS SDK finds them.
 *
 * It tries everything once, because the protocol has its own retries, which know how much of a lease is left. A request
 * that hangs ends: on its way to a connection, on its way to a reply, and in the middle of one.
 *
 * The SDK sorts a client's middleware anew for every request, unless the client has `cacheMiddleware` and the request no
 * options, such as an abort signal.
 */
export function defaultClient({
  connectMs = 1_500,
  answerMs = 5_000,
}: {
  readonly connectMs?: number;
  readonly answerMs?: number;
} = {}): DynamoDBClient {
  const agent = { keepAlive: true, maxSockets: 512 };
  const requestHandler = {
    connectionTimeout: connectMs,
    requestTimeout: answerMs,
    throwOnRequestTimeout: true,
    socketTimeout: answerMs,
    httpAgent: agent,
    httpsAgent: agent,
  };
  return asOwnClient(new DynamoDBClient({ maxAttempts: 1, cacheMiddleware: true, requestHandler }));
}

/**
 * Prepares a client of the library's own: requests are sent to it without options, so that the SDK uses the chain of
 * handlers that it keeps, and the signal reaches the request handler by way of one middleware, installed once. Requests
 * with options work on it as on any other client.
 */
function asOwnClient(client: DynamoDBClient): DynamoDBClient {
  ownClients.add(client);
  client.middlewareStack.add(
    (next) => (args) => {
      const context = (args.input as { readonly [CONTEXT]?: RequestContext })[CONTEXT];
      if (context === undefined) return next(args);
      const { requestHandler } = client.config;
      const request = args.request as Parameters<typeof requestHandler.handle>[0];
      // In the place of `next`, which would call the same handler without the signal.
      return attempt(context, () => requestHandler.handle(request, { abortSignal: context.signal }));
    },
    NEXT_TO_THE_NETWORK,
  );
  return client;
}

/**
 * Sends requests to one table. A signal ends each of them, the clock hears of every attempt, and errors become errors
 * of this library. A caller's client stays as it is: what listens is a middleware on each command.
 */
export class Transport {
  readonly #client: DynamoDBClient;
  readonly #layout: TableLayout;
  readonly #clock: Clock;
  readonly #listen: Clock["listen"];

  constructor(client: DynamoDBClient, layout: TableLayout, clock: Clock) {
    this.#client = client;
    this.#layout = layout;
    this.#clock = clock;
    this.#listen = clock.listen?.bind(clock);
  }

  /** @param purpose what the channel is told; nothing without. @throws the SDK's own error. */
  async send(itemCommand: ItemCommand, signal: AbortSignal, purpose?: Purpose): Promise<Reply> {
    const context: RequestContext = { signal, listen: this.#listen, isTold: false, attempts: 0 };
    const command = itemCommand as GetItemCommand;
    const isMetered = purpose !== undefined && CHANNELS["dynamutex:request"].hasSubscribers;
    const reply = await (isMetered ? this.#sendHeard(command, context, purpose) : this.#send(command, context));
    // Only a success shows that replies tell nothing: an error may be somebody else's.
    if (!context.isTold) (context.heard ?? this.#listen?.())?.(undefined);
    return reply;
  }

  /** The same with a subscriber, which also wants to know what it costs. */
  async #sendHeard(command: GetItemCommand, context: RequestContext, purpose: Purpose): Promise<Reply> {
    // All copies that share a token have to be the same: whoever has made the token has decided this as well.
    const { input } = command;
    if (!("ClientRequestToken" in input)) input.ReturnConsumedCapacity = "TOTAL";
    const leftAt = this.#clock.atLeast();
    const sent = () => ({ ms: this.#clock.atLeast() - leftAt, attempts: context.attempts });
    let reply: Reply;
    try {
      reply = await this.#send(command, context);
    } catch (error) {
      tell(purpose, sent(), { error });
      throw error;
    }
    tell(purpose, sent(), { consumed: reply?.ConsumedCapacity ?? undefined });
    return reply;
  }

  /** @param command any of them: as their union the type checker would look for an overload that takes them all. */
  #send(command: GetItemCommand, sent: RequestContext): Promise<Reply> {
    (command.input as { [CONTEXT]?: RequestContext })[CONTEXT] = sent;
    if (ownClients.has(this.#client)) return this.#client.send(command);
    command.middlewareStack.add(
      (next) => (args) => {
        // Of the input and not of this command: a client whose `send` drops the options, and which has
        // `cacheMiddleware`, uses the middleware of one command for all of its class, the caller's own included.
        const context = (args.input as { readonly [CONTEXT]?: RequestContext })[CONTEXT];
        return context === undefined ? next(args) : attempt(context, () => next(args));
      },
      NEXT_TO_THE_NETWORK,
    );
    return this.#client.send(command, { abortSignal: sent.signal });
  }

  /** @throws the refusal of a condition as it is, and a {@link LockStoreError} for everything else. */
  ask(command: ItemCommand, signal: AbortSignal, purpose: Purpose): Promise<Reply> {
    return this.send(command, signal, purpose).catch(async (error: unknown) => {
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
      return storeFailure(error, { ...asked, mismatch: Table && keyAdvice(Table, this.#layout) });
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
  if (command instanceof BatchExecuteStatementCommand) return "PartiQLUpdate";
  // A transaction asks for the permissions of what it does.
  if (command instanceof TransactWriteItemsCommand) return "PutItem";
  return command instanceof DeleteItemCommand ? "DeleteItem" : "GetItem";
}

/** Makes one attempt, unless its time is over, and lets the clock hear of it and of the reply, errors included. */
async function attempt<Result extends { readonly response: unknown }>(
  context: RequestContext,
  send: () => Promise<Result>,
): Promise<Result> {
  context.signal.throwIfAborted();
  context.attempts += 1;
  const heard = context.listen?.();
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
