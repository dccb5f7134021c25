import type { GetItemCommand } from "@aws-sdk/client-dynamodb";

/** A command's way through the client's middleware to its request handler, as the SDK makes it. */
export type Handler = ReturnType<GetItemCommand["resolveMiddleware"]>;

/** The request that uses a handler at the moment, and the signal that ends it. */
export interface Current {
  enough: AbortSignal;
}

/** How a handler is made of a command. */
export type Make = (command: GetItemCommand, current: Current) => Handler;

interface Pooled {
  readonly handler: Handler;
  readonly use: Use;
}

/** Which request uses a handler, how much of it is running, and for how many requests it has been used. */
interface Use {
  readonly current: Current;
  /** Whether the present request has come to what counts it. */
  entered: boolean;
  running: number;
  requests: number;
}

/** How many are kept for a class of commands: more than so many requests at once are rare. */
const MOST_KEPT = 64;

/** After so many requests a handler is made anew: whatever middleware may have heaped up in its context goes with it. */
const MOST_REQUESTS = 500;

/** Handlers that were made for requests that have ended. Each serves one request at a time, of one class of commands. */
export class HandlerPool {
  readonly #free = new Map<unknown, Pooled[]>();

  /** One of those that are free, or a new one; free again when its request has ended. */
  handlerFor(command: GetItemCommand, signal: AbortSignal, make: Make): Handler {
    return (args) => {
      const free = this.#freeFor(command.constructor);
      const pooled = free.pop() ?? pooledOf(command, signal, make);
      const { use } = pooled;
      use.current.enough = signal;
      use.entered = false;
      use.requests += 1;
      const giveBack = (): void => {
        // A caller's middleware that answers by itself may have left the request running: its attempts keep their signal.
        const isIdle = use.entered && use.running === 0;
        if (isIdle && use.requests < MOST_REQUESTS && free.length < MOST_KEPT) free.push(pooled);
      };
      const result = pooled.handler(args);
      result.then(giveBack, giveBack);
      return result;
    };
  }

  #freeFor(kind: unknown): Pooled[] {
    let free = this.#free.get(kind);
    if (free === undefined) {
      free = [];
      this.#free.set(kind, free);
    }
    return free;
  }
}

/** Made of an empty command of the class, because the handler keeps the one that it is made of. */
function pooledOf(like: GetItemCommand, enough: AbortSignal, make: Make): Pooled {
  const Command = like.constructor as new (input: object) => GetItemCommand;
  const command = new Command({});
  const use: Use = { current: { enough }, entered: false, running: 0, requests: 0 };
  command.middlewareStack.add(
    (next) => async (args) => {
      use.entered = true;
      use.running += 1;
      try {
        return await next(args);
      } finally {
        use.running -= 1;
      }
    },
    // Around all attempts, and within whatever a caller puts around a request.
    { step: "build", priority: "low" },
  );
  return { handler: make(command, use.current), use };
}
