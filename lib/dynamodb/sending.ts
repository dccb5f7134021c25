import type {
  DeleteItemCommand,
  DynamoDBClient,
  GetItemCommand,
  GetItemCommandOutput,
  PutItemCommand,
  PutItemCommandOutput,
  QueryCommand,
  ScanCommand,
  ScanCommandOutput,
  TransactWriteItemsCommand,
  UpdateItemCommand,
} from "@aws-sdk/client-dynamodb";
import type { Clock } from "../clock.js";

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

type Configuration = Parameters<GetItemCommand["resolveMiddleware"]>[1];
type RequestHandler = Configuration["requestHandler"];

/** A client's configuration, and the one that is the same but for a request handler that listens. */
interface Listening {
  readonly to: Configuration;
  readonly handler: RequestHandler;
  readonly configuration: Configuration;
}

/**
 * Sends requests, and lets the clock hear when each left and what time the table's reply shows.
 *
 * The caller's client stays as it is: each command goes through a request handler that listens, around each attempt
 * alone, and before a body is read or an error made of the reply. (A middleware on the command would do, too, but the
 * SDK clones and sorts it with all its own for every request.)
 */
export class Sending {
  readonly #client: DynamoDBClient;
  readonly #listen: Clock["listen"];
  #listening: Listening | undefined;

  constructor(client: DynamoDBClient, listen: Clock["listen"]) {
    this.#client = client;
    this.#listen = listen;
  }

  send(command: ItemCommand, signal: AbortSignal): Promise<Reply> {
    const { resolveMiddleware } = command as GetItemCommand;
    if (this.#listen !== undefined) {
      (command as GetItemCommand).resolveMiddleware = (stack, configuration, options) =>
        resolveMiddleware.call(command as GetItemCommand, stack, this.#listeningTo(configuration), options);
    }
    return this.#client.send(command as GetItemCommand, { abortSignal: signal });
  }

  /** A copy, made once: of what a client is configured with, its request handler alone can be replaced later. */
  #listeningTo(to: Configuration): Configuration {
    if (this.#listening?.to !== to || this.#listening.handler !== to.requestHandler) {
      const { requestHandler: handler } = to;
      this.#listening = { to, handler, configuration: { ...to, requestHandler: listener(handler, this.#listen) } };
    }
    return this.#listening.configuration;
  }
}

function listener(handler: RequestHandler, listen: Clock["listen"]): RequestHandler {
  const handle = async (...args: Parameters<RequestHandler["handle"]>) => {
    const heard = listen?.();
    const result = await handler.handle(...args);
    const { headers } = result.response;
    // Somebody else's reply, such as a gateway's error page, has somebody else's date.
    if (headers !== undefined && isTable(headers)) heard?.(headers.date);
    return result;
  };
  return Object.create(handler, { handle: { value: handle } });
}

function isTable(headers: Readonly<Record<string, string>>): boolean {
  return (
    headers["x-amzn-requestid"] !== undefined || headers["content-type"]?.startsWith("application/x-amz-json") === true
  );
}
