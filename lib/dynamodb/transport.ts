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
import { type Purpose, tell } from "./request-events.js";
import { tableAdvice } from "./table-indexes.js";
import { isStrong } from "./table-keys.js";
import { notTheTables, TableSign } from "./table-sign.js";

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
  /** What tells the table's replies from those of others. */
  readonly sign: TableSign = new TableSign();
  readonly #client: DynamoDBClient;
  readonly #layout: TableLayout;
  readonly #clock: Clock;
  /** When this process saw the table become active, on `atLeast`. */
  #activeSince = Number.NEGATIVE_INFINITY;
  /** Whether requests reach our middleware. Those of a test's mock never do. */
  #isSeen: boolean;
  /** Successes that prove by themselves that their requests have reached the table. */
  readonly #proofs = new WeakSet<NonNullable<Reply>>();

  constructor(client: DynamoDBClient, layout: TableLayout, clock: Clock) {
    this.#client = client;
    this.#layout = layout;
    this.#clock = clock;
    this.#isSeen = isOwn(client);
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
      throw await this.#failure(error, request, signal, this.#progressOf(context));
    }
    this.#judgeAgain(context);
    if (reply !== undefined && context.isSigned) this.#proofs.add(reply);
    // Only a success of the table's proves that its replies tell no time: then the clock falls back to that of the host.
    if (!context.isTold && this.believes(reply)) (context.heard ?? context.listen())?.(undefined);
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
      const reply = await sendThrough(this.#client, command, context);
      this.#judgeAgain(context);
      return reply;
    } catch (error) {
      if (this.#isPlain(error, context)) throw error;
      throw storeFailure(error, { action, tableName: this.#layout.tableName, ...this.#progressOf(context) });
    }
  }

  /**
   * Whether a success can be believed without another look at the table. A client whose requests never reach our middleware is
   * a test's mock, and is believed, unless its replies show that they came over a network and not from DynamoDB.
   */
  believes(reply: Reply): boolean {
    if (this.#isSeen) return reply !== undefined && this.#proofs.has(reply);
    const { httpStatusCode, requestId } = reply?.$metadata ?? {};
    return httpStatusCode === undefined || requestId !== undefined;
  }

  /** This process has seen the table become active. */
  becameActive(): void {
    this.#activeSince = this.#clock.atLeast();
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
    const judge = (hasSign: boolean, status: number | undefined): LockStoreError | undefined => {
      this.#isSeen = true;
      context.isSigned = hasSign;
      return this.sign.admits(hasSign) ? undefined : notTheTables(this.#layout.tableName, status);
    };
    const context: RequestContext = { signal, listen, judge, isTold: false, attempts: 0 };
    return context;
  }

  /**
   * Judges a reply once its body has come as well: meanwhile another reply may have shown that those of the table have a sign.
   * @throws {@link LockStoreError} for one that is not the table's.
   */
  #judgeAgain({ isSigned }: RequestContext): void {
    if (isSigned === false && !this.sign.admits(false)) throw notTheTables(this.#layout.tableName, undefined);
  }

  /**
   * Whether the SDK's error tells by itself what became of the request: the table has answered with it, or nothing has left. An
   * error of another service, such as one that gives credentials, looks like an answer although nothing has left.
   */
  #isPlain(error: unknown, { attempts }: RequestContext): boolean {
    return attempts > 0 ? isAnswer(error) : !this.#isSeen || !isAnswer(error);
  }

  #progressOf({ attempts }: RequestContext): Progress {
    return { hasLeft: attempts > 0, isKnown: this.sign.isKnown };
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
    "lockAll(), and in place of a guard compare the fencing token in a condition on the item itself (docs/regions.md in the package)"
  );
}
