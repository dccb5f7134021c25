/**
 * The parts of frameworks that the documentation's examples touch, as the frameworks declare them. They are not installed: their packages
 * are heavier than this one. The examples were compiled against the real types of @nestjs/common 11 and @middy/core 6
 * when they were written.
 */

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
