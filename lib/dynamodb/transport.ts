import {
  BatchExecuteStatementCommand,
  type BatchExecuteStatementCommandOutput,
  type ConsumedCapacity,
  DeleteItemCommand,
  DescribeTableCommand,
  type DescribeTableCommandOutput,
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
import { untraced } from "../untraced.js";
import { type AnyCommand, type Heard, isOwn, type RequestContext, sendThrough } from "./attempts.js";
import { isAboutTheKey, isAnswer, isInvalid, isRefusal, type Progress, refusalsOf, storeFailure } from "./failures.js";
import { crowdedPool } from "./pool.js";
import { type Purpose, tell } from "./request-events.js";
import { tableAdvice } from "./table-indexes.js";
import { isStrong } from "./table-keys.js";
import { notTheTables, type Response, TableSign } from "./table-sign.js";
import { isUnreadable, unreadable } from "./unreadable-reply.js";

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

/** For how long some of DynamoDB's servers may say that a table does not exist which has just become active. */
const NEW_FOR_MS = 10_000;

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

/** Purposes of requests that a process sends for nobody's call alone, over and over: polls, marks and renewals. */
const IN_NO_TRACE: ReadonlySet<Purpose["kind"]> = new Set<Purpose["kind"]>([
  "read",
  "query",
  "want",
  "remove",
  "renew",
  "renew-all",
  "reissue",
]);

/** What the store reads of a reply. A test's mock client may leave out anything. */
export type Reply =
  | (Partial<
      Omit<
        GetItemCommandOutput & PutItemCommandOutput & ScanCommandOutput & BatchExecuteStatementCommandOutput,
        "ConsumedCapacity"
      >
    > & { readonly ConsumedCapacity?: ConsumedCapacity | ConsumedCapacity[] | undefined })
  | undefined;

/**
 * Sends requests to one table. A signal ends each of them, the clock hears of every attempt, a reply that is not the table's is
 * no answer, and errors become errors of this library. A caller's client is not changed: each command has a middleware of its
 * own, which listens.
 */
export class Transport {
  readonly #client: DynamoDBClient;
  readonly #layout: TableLayout;
  readonly #clock: Clock;
  /** When this process saw the table become active, on `atLeast`. */
  #activeSince = Number.NEGATIVE_INFINITY;
  /** What tells the table's replies from those of others. */
  readonly #sign: TableSign;
  /** Whether replies reach our middleware. Those of a test's mock never do. */
  #isSeen = false;

  constructor(client: DynamoDBClient, layout: TableLayout, clock: Clock) {
    this.#client = client;
    this.#layout = layout;
    this.#clock = clock;
    this.#sign = new TableSign(layout.tableName);
  }

  /**
   * @param purpose what the channel reports of the request; without it, nothing.
   * @throws the SDK's own error if the table has answered with it, or if nothing has left; a {@link LockStoreError} if the
   * request has left and the table has not answered it, so that it may have been applied.
   */
  async send(request: ItemRequest, signal: AbortSignal, purpose?: Purpose): Promise<Reply> {
    const context = this.#contextFor(signal, this.#clock);
    const command = commandOf(request);
    const isMetered = purpose !== undefined && CHANNELS["dynamutex:request"].hasSubscribers;
    const sendIt = () => (isMetered ? this.#sendHeard(command, context, purpose) : this.#sendAs(command, context));
    let reply: Reply;
    try {
      reply = await (purpose !== undefined && IN_NO_TRACE.has(purpose.kind) ? untraced(sendIt) : sendIt());
    } catch (error) {
      if (this.#isPlain(error, context)) throw error;
      if (isUnreadable(error, context)) {
        const { tableName } = this.#layout;
        throw unreadable(error, { operation: request[0], lock: purpose?.at?.name, tableName }, context);
      }
      throw await this.#failure(error, request, signal, this.#progressOf(context));
    }
    if (context.attempts === 0) this.#admit(reply);
    // A success without a date: the clock falls back to that of the host.
    if (!context.isTold) (context.heard ?? context.listen())?.(undefined);
    return reply;
  }

  /**
   * Sends a request about the table as a whole. The clock hears nothing of it: a process that does not know the time begins with
   * a read, which shows a key that does not fit, and a put would not.
   *
   * @param action its name in IAM.
   * @throws as {@link send} does.
   */
  async sendCommand(command: AnyCommand, action: string, signal: AbortSignal): Promise<unknown> {
    const context = this.#contextFor(signal, undefined);
    try {
      return await sendThrough(this.#client, command, context);
    } catch (error) {
      if (this.#isPlain(error, context)) throw error;
      throw storeFailure(error, { action, tableName: this.#layout.tableName, ...this.#progressOf(context) });
    }
  }

  /** This process has seen the table become active. */
  becameActive(): void {
    this.#activeSince = this.#clock.atLeast();
  }

  /** What a client's connections say. */
  whySilent(): string | undefined {
    return crowdedPool(this.#client);
  }

  /** A caller's client stays open. */
  close(): void {
    if (isOwn(this.#client)) this.#client.destroy();
  }

  /** @throws the refusal of a condition as it is, and a {@link LockStoreError} for everything else. */
  ask(request: ItemRequest, signal: AbortSignal, purpose: Purpose): Promise<Reply> {
    return this.send(request, signal, purpose).catch(async (error: unknown) => {
      throw isRefusal(error) || refusalsOf(error) !== undefined ? error : await this.#failure(error, request, signal);
    });
  }

  /** The error of a transaction that failed because the table has no transactions; undefined if it failed for another reason. */
  async noTransactions(error: unknown, signal: AbortSignal): Promise<LockStoreError | undefined> {
    const table = isInvalid(error) ? await this.#describe(signal) : undefined;
    if (table === undefined || !isStrong(table)) return undefined;
    const { tableName } = this.#layout;
    return storeFailure(error, { action: "TransactWriteItems", tableName, mismatch: noTransactionsOn(tableName) });
  }

  /** The same if the channel has a subscriber, which also gets the consumed capacity. */
  async #sendHeard(command: GetItemCommand, context: RequestContext, purpose: Purpose): Promise<Reply> {
    // All copies that share a token must be the same, so the maker of the token has already decided whether to ask for this.
    const { input } = command;
    if (!("ClientRequestToken" in input)) input.ReturnConsumedCapacity = "TOTAL";
    const leftAt = this.#clock.atLeast();
    const sent = () => ({ ms: this.#clock.atLeast() - leftAt, attempts: context.attempts });
    const reply = await this.#sendAs(command, context).catch((error: unknown) => {
      tell(purpose, { ...sent(), error });
      throw error;
    });
    tell(purpose, { ...sent(), consumed: reply?.ConsumedCapacity });
    return reply;
  }

  async #sendAs(command: GetItemCommand, context: RequestContext): Promise<Reply> {
    return (await sendThrough(this.#client, command, context)) as Reply;
  }

  #contextFor(signal: AbortSignal, clock: Clock | undefined): RequestContext {
    const listen = (): Heard => clock?.listen?.();
    const judge = (response: Response, host: string): LockStoreError | undefined => {
      this.#isSeen = true;
      return this.#sign.judge(response, host, () => this.#clock.atLeast());
    };
    return { signal, listen, judge, hasCome: false, isTold: false, attempts: 0 };
  }

  /**
   * Admits a reply that has not come to our middleware: that of a test's mock, unless it shows that it came over a network, and
   * not from DynamoDB. @throws {@link LockStoreError} for such a reply.
   */
  #admit(reply: Reply): void {
    const { httpStatusCode, requestId } = reply?.$metadata ?? {};
    if (httpStatusCode === undefined || requestId !== undefined) return;
    throw notTheTables(
      `The \`client\` of table ${this.#layout.tableName} sends no command that it is given, and a reply of status ${httpStatusCode} has no ` +
        "request id, which DynamoDB sends with every reply: a mock has to leave `$metadata` out, and a wrapper has to hand commands on",
      { transient: false },
    );
  }

  /**
   * Whether the SDK's error tells by itself what became of the request: the table has answered with it, or nothing has left. An
   * error of another service, such as one that gives credentials, looks like an answer although nothing has left.
   */
  #isPlain(error: unknown, { attempts, hasCome }: RequestContext): boolean {
    return attempts > 0 ? isAnswer(error) : !(this.#isSeen || hasCome) || !isAnswer(error);
  }

  #progressOf({ attempts }: RequestContext): Progress {
    return { hasLeft: attempts > 0, isKnown: this.#sign.isKnown };
  }

  async #failure(
    error: unknown,
    [operation]: ItemRequest,
    signal: AbortSignal,
    progress?: Progress,
  ): Promise<LockStoreError> {
    const { tableName } = this.#layout;
    const isNew = this.#clock.atLeast() - this.#activeSince < NEW_FOR_MS;
    const asked = { action: PERMISSIONS[operation] ?? operation, tableName, isNew, ...progress };
    const noTransactions = operation === "TransactWriteItems" && (await this.noTransactions(error, signal));
    if (noTransactions) return noTransactions;
    if (isAboutTheKey(error)) {
      const table = await this.#describe(signal);
      return storeFailure(error, { ...asked, mismatch: table && tableAdvice(table, this.#layout) });
    }
    const region = await this.#client.config?.region?.().catch(() => undefined);
    return storeFailure(error, { ...asked, region });
  }

  /** The table's description; undefined if it cannot be had. */
  async #describe(signal: AbortSignal): Promise<TableDescription | undefined> {
    const command = new DescribeTableCommand({ TableName: this.#layout.tableName });
    const reply = await this.sendCommand(command, "DescribeTable", signal).catch(() => undefined);
    return (reply as DescribeTableCommandOutput | undefined)?.Table;
  }
}

/** The advice for a table with multi-Region strong consistency. */
function noTransactionsOn(tableName: string): string {
  return (
    `table ${tableName} is a global table with strong consistency, which has no transactions: take locks one by one in place of ` +
    "lockAll(), and in place of a guard compare the fencing token in a condition on the item itself (docs/guides/regions.md in the package)"
  );
}
