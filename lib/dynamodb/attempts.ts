import type { DynamoDBClient, GetItemCommand } from "@aws-sdk/client-dynamodb";
import type { LockStoreError } from "../errors.js";
import type { Clock } from "../time/clock.js";
import type { Response } from "./table-sign.js";

/** What is called with the `Date` of a reply. */
export type Heard = ReturnType<NonNullable<Clock["listen"]>> | undefined;

/** What belongs to a request of ours, and not to others that the same client sends. */
export interface RequestContext {
  /** No attempt leaves once it has aborted. */
  readonly signal: AbortSignal;
  /** Called as each attempt leaves. The function that it returns is called with the `Date` of the reply. */
  readonly listen: () => Heard;
  /** Judges a reply. @returns an error for one that is not the table's. */
  readonly judge: (response: Response, host: string) => LockStoreError | undefined;
  /** What {@link listen} has returned for the attempt that left last. */
  heard?: Heard;
  /** Whether the request has come to the middleware of a client of ours, and not to a double of its `send`. */
  hasCome: boolean;
  /** Whether a reply has told the time. */
  isTold: boolean;
  /** How many attempts have left, as far as the client lets us see them. */
  attempts: number;
  /** The status of the reply to the last of them, if it is the table's. */
  status?: number | undefined;
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

/** Whether the library has made this client. */
export const isOwn = (client: DynamoDBClient): boolean => ownClients.has(client);

/**
 * Makes a client one of the library's own: requests are sent to it without options, and it is closed with its table.
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
      const context = contextOf(args.input);
      if (context !== undefined) context.hasCome = true;
      return next(args);
    },
    { step: "initialize", name: "dynamutexRequests" },
  );
  client.middlewareStack.add(
    (next) => (args) => {
      const context = contextOf(args.input);
      if (context === undefined) return exchange(() => next(args));
      const { requestHandler: handler } = client.config;
      const request = args.request as Parameters<typeof handler.handle>[0];
      // Replaces `next`, which would call the same handler without the signal.
      return attempt(context, request, () => exchange(() => handler.handle(request, { abortSignal: context.signal })));
    },
    NEXT_TO_THE_NETWORK,
  );
  return client;
}

/** A command of the SDK's, of any class. */
export interface AnyCommand {
  readonly input: object;
}

/** Sends a command of ours. `context` sees each of its attempts, unless the client's `send` never reaches its middleware, as a mock's. */
export async function sendThrough(
  client: DynamoDBClient,
  command: AnyCommand,
  context: RequestContext,
): Promise<unknown> {
  (command.input as { [CONTEXT]?: RequestContext })[CONTEXT] = context;
  // Typed as one of them: no overload of the client's `send` takes all of them.
  const asGet = command as GetItemCommand;
  if (isOwn(client)) return await client.send(asGet);
  asGet.middlewareStack.add(
    (next) => (args) => {
      // Read the context from the input and not from this command: a client whose `send` drops the options, and which has
      // `cacheMiddleware`, uses the middleware of one command for all commands of its class, including the caller's own.
      const own = contextOf(args.input);
      return own === undefined ? next(args) : attempt(own, args.request, () => next(args));
    },
    NEXT_TO_THE_NETWORK,
  );
  return await client.send(asGet, { abortSignal: context.signal });
}

function contextOf(input: object): RequestContext | undefined {
  return (input as { readonly [CONTEXT]?: RequestContext })[CONTEXT];
}

/**
 * Makes one attempt, unless the signal has aborted. The clock hears of it and of the table's reply, error replies included.
 * @throws {@link LockStoreError} for a reply that is not the table's, before anything of it is read.
 */
async function attempt<Result extends { readonly response: unknown }>(
  context: RequestContext,
  request: unknown,
  send: () => Promise<Result>,
): Promise<Result> {
  context.signal.throwIfAborted();
  context.attempts += 1;
  context.status = undefined;
  const heard = context.listen();
  if (heard !== undefined) context.heard = heard;
  const result = await send();
  const response = (result.response ?? {}) as Response;
  const foreign = context.judge(response, hostOf(request as Request | undefined));
  if (foreign !== undefined) {
    discard(response.body);
    throw foreign;
  }
  context.status = response.statusCode;
  const { date } = response.headers ?? {};
  if (date !== undefined) {
    context.isTold = true;
    heard?.(date);
  }
  return result;
}

/** What is read of a request that leaves. */
interface Request {
  readonly hostname?: string;
  readonly port?: number;
}

function hostOf({ hostname = "Somebody", port }: Request = {}): string {
  return port === undefined ? hostname : `${hostname}:${port}`;
}

/** Ends a reply that nobody reads: it would keep its connection. */
function discard(body: Response["body"]): void {
  body?.destroy?.();
  void body?.cancel?.().catch(() => undefined);
}
