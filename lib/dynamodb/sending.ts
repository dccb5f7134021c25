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

type Resolve = GetItemCommand["resolveMiddleware"];
type Handler = ReturnType<Resolve>;
type Configuration = Parameters<Resolve>[1] & { readonly cacheMiddleware?: boolean };
type RequestHandler = Configuration["requestHandler"];

/** A request under way: the signal that ends it. */
interface Current {
  enough: AbortSignal;
}

/** What a request handler is told. */
type HandlerOptions = Parameters<RequestHandler["handle"]>[1] & { readonly current?: Current };

/** A command's way through the client's middleware, and which request it is used by. */
interface Way {
  readonly handler: Handler;
  readonly current: Current;
}

/** A client's configuration, and the one that is the same but for a request handler that listens. */
interface Listening {
  readonly to: Configuration;
  readonly handler: RequestHandler;
  readonly configuration: Configuration;
  /** By the class of the command: ways that nobody uses at the moment. */
  readonly ways: Map<unknown, Way[]>;
}

/** How many ways are kept for a class of commands: more than so many requests at once are rare. */
const MOST_WAYS = 64;

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
 * SDK does only for requests without a signal. So we do: each way through it serves one request at a time.
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
    (command as GetItemCommand).resolveMiddleware = (stack, to, options) => {
      const { configuration, ways } = this.#listeningTo(to);
      const resolve = (current: Current): Handler => {
        const handed: HandlerOptions = { ...options, abortSignal: undefined, current };
        return resolveMiddleware.call(command as GetItemCommand, stack, configuration, handed);
      };
      return configuration.cacheMiddleware === true
        ? onOneOf(waysOf(ways, command), resolve, signal)
        : resolve({ enough: signal });
    };
    return this.#client.send(command as GetItemCommand, { abortSignal: signal });
  }

  /** A copy, made once: of what a client is configured with, its request handler alone can be replaced later. */
  #listeningTo(to: Configuration): Listening {
    if (this.#listening?.to !== to || this.#listening.handler !== to.requestHandler) {
      const { requestHandler: handler } = to;
      const configuration = { ...to, requestHandler: listener(handler, this.#listen) };
      this.#listening = { to, handler, configuration, ways: new Map() };
    }
    return this.#listening;
  }
}

function waysOf(ways: Listening["ways"], command: object): Way[] {
  let those = ways.get(command.constructor);
  if (those === undefined) {
    those = [];
    ways.set(command.constructor, those);
  }
  return those;
}

/** Goes one of the free ways, or a new one, and leaves it free for the next. */
function onOneOf(free: Way[], resolve: (current: Current) => Handler, signal: AbortSignal): Handler {
  return (args) => {
    let way = free.pop();
    if (way === undefined) {
      const current = { enough: signal };
      way = { handler: resolve(current), current };
    }
    way.current.enough = signal;
    const taken = way;
    const leave = (): void => {
      if (free.length < MOST_WAYS) free.push(taken);
    };
    const result = way.handler(args);
    result.then(leave, leave);
    return result;
  };
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
