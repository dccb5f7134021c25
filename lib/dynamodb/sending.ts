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
import type { Clock } from "../time/clock.js";
import { type Current, type Handler, HandlerPool } from "./handler-pool.js";

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

type Resolve = GetItemCommand["resolveMiddleware"];
type Stack = Parameters<Resolve>[0];
type Configuration = Parameters<Resolve>[1] & { readonly cacheMiddleware?: boolean };
type RequestHandler = Configuration["requestHandler"];

/** What a request handler is told. */
interface HandlerOptions {
  readonly abortSignal?: AbortSignal | undefined;
  readonly current?: Current;
}

/** What a client makes the handler of a command from. */
interface Making {
  readonly resolve: Resolve;
  readonly stack: Stack;
  readonly to: Configuration;
  readonly options: HandlerOptions | undefined;
}

/** A client's configuration, and the one that is the same but for a request handler that listens. */
interface Listening {
  readonly to: Configuration;
  readonly handler: RequestHandler;
  readonly configuration: Configuration;
  readonly pool: HandlerPool;
}

/** On a command of ours: who sends it, and the signal that ends it. */
const REQUEST = Symbol("request");

interface Marked {
  [REQUEST]?: { readonly sending: Sending; readonly signal: AbortSignal };
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
 *
 * A client with `cacheMiddleware` allows its middleware to be put in order once and not for every request, which the
 * SDK does only for requests without options. So we keep the handlers ourselves.
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
    const ours = command as GetItemCommand & Marked;
    const { resolveMiddleware } = ours;
    ours[REQUEST] = { sending: this, signal };
    ours.resolveMiddleware = (stack, to: Configuration, options) => {
      const making = { resolve: resolveMiddleware, stack, to, options };
      if (options !== undefined || to.cacheMiddleware !== true) return this.#handlerFor(ours, signal, making);
      return Sending.#forAll(making);
    };
    return this.#client.send(ours, { abortSignal: signal });
  }

  #handlerFor(command: GetItemCommand, signal: AbortSignal, { resolve, stack, to, options }: Making): Handler {
    const { configuration, pool } = this.#listeningTo(to);
    const make = (of: GetItemCommand, current: Current): Handler => {
      const handed: HandlerOptions = { ...options, abortSignal: undefined, current };
      return resolve.call(of, stack, configuration, handed);
    };
    return to.cacheMiddleware === true ? pool.handlerFor(command, signal, make) : make(command, { enough: signal });
  }

  /** A copy, made once: of what a client is configured with, its request handler alone can be replaced later. */
  #listeningTo(to: Configuration): Listening {
    if (this.#listening?.to !== to || this.#listening.handler !== to.requestHandler) {
      const { requestHandler: handler } = to;
      const configuration = { ...to, requestHandler: listener(handler, this.#listen) };
      this.#listening = { to, handler, configuration, pool: new HandlerPool() };
    }
    return this.#listening;
  }

  /**
   * For a client that somebody has wrapped and that is not told the options: it keeps the first handler that it gets for
   * all commands of the class, those of others and the caller's own among them.
   */
  static #forAll(making: Making): Handler {
    let plain: Handler | undefined;
    return (args) => {
      const command = args as GetItemCommand & Marked;
      const { [REQUEST]: request } = command;
      if (request !== undefined) return request.sending.#handlerFor(command, request.signal, making)(args);
      plain ??= making.resolve.call(command, making.stack, making.to, making.options);
      return plain(args);
    };
  }
}

function listener(handler: RequestHandler, listen: Clock["listen"]): RequestHandler {
  const handle = async (request: Parameters<RequestHandler["handle"]>[0], options: HandlerOptions = {}) => {
    const enough = options.current?.enough;
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
