import { DynamoDBClient } from "@aws-sdk/client-dynamodb";

/**
 * A client from the environment: region, credentials and endpoint as the AWS SDK finds them.
 *
 * It tries everything once, because the protocol has its own retries, which know how much of a lease is left. A
 * request that hangs ends: on its way to a connection, on its way to a reply, and in the middle of one. Nobody can add
 * middleware to it, so its middleware is put in order once.
 */
export function defaultClient({
  connectMs = 1_500,
  answerMs = 5_000,
}: {
  readonly connectMs?: number;
  readonly answerMs?: number;
} = {}): DynamoDBClient {
  const agent = { keepAlive: true, maxSockets: 128 };
  return new DynamoDBClient({
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
}
