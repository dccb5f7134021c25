/**
 * The parts of frameworks that the documentation's examples touch, as the frameworks declare them. They are not installed: their packages
 * are heavier than this one. The examples were compiled against the real types of express 5, fastify 5, @nestjs/common 11 and
 * @middy/core 6 when they were written.
 */

declare module "express" {
  import type { IncomingMessage, ServerResponse } from "node:http";

  namespace express {
    interface Request extends IncomingMessage {
      readonly params: Readonly<Record<string, string | string[]>>;
    }
    interface Response extends ServerResponse {
      status(code: number): this;
      set(header: string, value: string): this;
      json(body: unknown): this;
    }
    type NextFunction = (error?: unknown) => void;
  }
  interface Application {
    post(path: string, handler: (request: express.Request, response: express.Response) => unknown): this;
    use(
      handler: (
        error: unknown,
        request: express.Request,
        response: express.Response,
        next: express.NextFunction,
      ) => unknown,
    ): this;
  }
  function express(): Application;

  // biome-ignore lint/style/noDefaultExport: as the framework has it.
  export default express;
}

declare module "fastify" {
  import type { ServerResponse } from "node:http";
  export interface FastifyReply {
    readonly raw: ServerResponse;
    code(status: number): this;
    header(name: string, value: string): this;
    send(body: unknown): this;
  }
  export interface FastifyInstance {
    addHook(name: "onClose", hook: (instance: FastifyInstance) => Promise<void>): this;
    setErrorHandler(handler: (error: unknown, request: unknown, reply: FastifyReply) => unknown): this;
    post<Route extends { Params: unknown }>(
      path: string,
      handler: (request: { readonly params: Route["Params"] }, reply: FastifyReply) => Promise<unknown>,
    ): this;
    close(): Promise<void>;
  }
  function fastify(): FastifyInstance;

  // biome-ignore lint/style/noDefaultExport: as the framework has it.
  export default fastify;
}

declare module "@nestjs/common" {
  export interface BeforeApplicationShutdown {
    beforeApplicationShutdown(signal?: string): unknown;
  }
  export function Injectable(): ClassDecorator;
  export function Module(metadata: {
    readonly providers?: readonly unknown[];
    readonly exports?: readonly unknown[];
  }): ClassDecorator;
}

declare module "@middy/core" {
  namespace middy {
    interface Context {
      getRemainingTimeInMillis(): number;
    }
    type MiddlewareFn<Event, Result> = (request: {
      readonly event: Event;
      readonly context: Context;
      response: Result | null;
    }) => unknown;
    interface MiddlewareObj<Event, Result> {
      before?: MiddlewareFn<Event, Result>;
      after?: MiddlewareFn<Event, Result>;
      onError?: MiddlewareFn<Event, Result>;
    }
    interface MiddyfiedHandler<Event, Result> {
      use(middleware: MiddlewareObj<Event, Result>): this;
      handler(handler: (event: Event, context: Context) => Promise<Result>): this;
      (event: Event, context: Context): Promise<Result>;
    }
  }
  function middy<Event, Result>(options?: {
    readonly timeoutEarlyInMillis?: number;
  }): middy.MiddyfiedHandler<Event, Result>;

  // biome-ignore lint/style/noDefaultExport: as the framework has it.
  export default middy;
}
