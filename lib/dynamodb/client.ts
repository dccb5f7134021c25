import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { asOwnClient } from "./transport.js";

/**
 * A client from the environment: region, credentials and endpoint as the AWS SDK finds them.
 *
 * It tries everything once, because the protocol has its own retries, which know how much of a lease is left. A
 * request that hangs ends: on its way to a connection, on its way to a reply, and in the middle of one.
 *
 * The SDK sorts a client's middleware anew for every request, unless the client has `cacheMiddleware` and the request
 * no options, such as an abort signal.
 */
export function defaultClient({
  connectMs = 1_500,
  answerMs = 5_000,
}: {
  readonly connectMs?: number;
  readonly answerMs?: number;
} = {}): DynamoDBClient {
  const agent = { keepAlive: true, maxSockets: 512 };
  const client = new DynamoDBClient({
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
  return asOwnClient(client);
}
