import type { Clock } from "../time/clock.js";

/** What belongs to a request of ours, and not to others that the same client sends. */
export interface RequestContext {
  /** No attempt leaves once it has aborted. */
  readonly signal: AbortSignal;
  /** Told of each attempt and of the `Date` of its reply. */
  readonly listen: Clock["listen"];
}

/** Where middleware sees each attempt by itself, signed, and its reply as it came: next to the request handler. */
export const NEXT_TO_THE_NETWORK = { step: "deserialize", priority: "low" } as const;

/**
 * On the input of a command of ours. Middleware is handed the input with each attempt, whichever command the SDK made
 * the chain of handlers from. As an enumerable property it also survives a caller's middleware that sends
 * `{ ...input, more }`; the SDK serialises members that it knows, and so leaves it out.
 */
const CONTEXT = Symbol("dynamutex");

/** @param input of this one command: those that share an input share its context. */
export function setContext(input: object, context: RequestContext): void {
  (input as { [CONTEXT]?: RequestContext })[CONTEXT] = context;
}

/** Undefined for requests of others. */
export function contextOf(input: object): RequestContext | undefined {
  return (input as { [CONTEXT]?: RequestContext })[CONTEXT];
}

/** Makes one attempt, unless its time is over, and lets the clock hear of it and of the reply, errors included. */
export async function attempt<Result extends { readonly response: unknown }>(
  { signal, listen }: RequestContext,
  send: () => Promise<Result>,
): Promise<Result> {
  signal.throwIfAborted();
  const heard = listen?.();
  const result = await send();
  const { headers } = (result.response ?? {}) as { readonly headers?: Headers };
  // A reply that is not the table's, such as a gateway's error page, has a date that is not the table's.
  if (headers !== undefined && isTable(headers)) heard?.(headers.date);
  return result;
}

type Headers = Readonly<Record<string, string | undefined>>;

function isTable(headers: Headers): boolean {
  return (
    headers["x-amzn-requestid"] !== undefined || headers["content-type"]?.startsWith("application/x-amz-json") === true
  );
}
