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

/** What a request handler is told, and the signal that ends one request. */
type HandlerOptions = Parameters<RequestHandler["handle"]>[1] & { readonly enough?: AbortSignal };

/** A client's configuration, and the one that is the same but for a request handler that listens. */
interface Listening {
  readonly to: Configuration;
  readonly handler: RequestHandler;
  readonly configuration: Configuration;
}

/**
 * Sends requests that a signal ends, and lets the clock hear when each left and what time the table's reply shows.
 *
 * The caller's client stays as it is: each command goes through a request handler that listens, around each attempt
 * alone, and before a body is read or an error made of the reply. (A middleware on the command would do, too, but the
 * SDK clones and sorts it with all its own for every request.)
 *
 * The signal goes to the request handler alone. With it the SDK would also end a pause between two attempts of its own,
 * for which it lets each step race with the signal, at a price that every request pays. We need it for one thing, that
 * no attempt leaves after it; a pause may run on, because nobody waits for it any more.
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
    (command as GetItemCommand).resolveMiddleware = (stack, configuration, options) => {
      const handed: HandlerOptions = { ...options, abortSignal: undefined, enough: signal };
      return resolveMiddleware.call(command as GetItemCommand, stack, this.#listeningTo(configuration), handed);
    };
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
  const handle = async (request: Parameters<RequestHandler["handle"]>[0], options: HandlerOptions = {}) => {
    const { enough } = options;
    enough?.throwIfAborted();
    const heard = listen?.();
    const result = await handler.handle(request, { ...options, abortSignal: enough });
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
