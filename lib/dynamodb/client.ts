import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { attempt, contextOf, NEXT_TO_THE_NETWORK } from "./attempts.js";

/**
 * A client from the environment: region, credentials and endpoint as the AWS SDK finds them.
 *
 * It tries everything once, because the protocol has its own retries, which know how much of a lease is left. A
 * request that hangs ends: on its way to a connection, on its way to a reply, and in the middle of one.
 *
 * The SDK sorts a client's middleware anew for every request, unless the client has `cacheMiddleware` and the request
 * no options, such as an abort signal. So our requests are sent without options, and the signal reaches the request
 * handler by way of one middleware, installed once. Requests with options work on this client as on any other.
 */
export class DefaultClient extends DynamoDBClient {
  constructor({
    connectMs = 1_500,
    answerMs = 5_000,
  }: {
    readonly connectMs?: number;
    readonly answerMs?: number;
  } = {}) {
    const agent = { keepAlive: true, maxSockets: 128 };
    super({
      maxAttempts: 1,
      cacheMiddleware: true,
      requestHandler: {
        connectionTimeout: connectMs,
        requestTimeout: answerMs,
        throwOnRequestTimeout: true,
        socketTimeout: answerMs,
        httpAgent: agent,
        httpsAgent: agent,
      },
    });
    this.middlewareStack.add(
      (next) => (args) => {
        const context = contextOf(args.input);
        if (context === undefined) return next(args);
        const { requestHandler } = this.config;
        const request = args.request as Parameters<typeof requestHandler.handle>[0];
        // In the place of `next`, which would call the same handler without the signal.
        return attempt(context, () => requestHandler.handle(request, { abortSignal: context.signal }));
      },
      { ...NEXT_TO_THE_NETWORK, name: "dynamutexAttempts" },
    );
  }
}
