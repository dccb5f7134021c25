import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { adopt } from "./transport.js";

/**
 * A client from the environment: region, credentials and endpoint as the AWS SDK finds them.
 *
 * It sends each request once, because the protocol has its own retries, which know how much of a lease is left. Each phase of a
 * request has a timeout: connecting, waiting for the reply, and reading the reply.
 */
export function defaultClient({
  connectMs = 1_500,
  answerMs = 5_000,
}: {
  readonly connectMs?: number;
  readonly answerMs?: number;
} = {}): DynamoDBClient {
  const agent = { keepAlive: true, maxSockets: 512 };
  const requestHandler = {
    connectionTimeout: connectMs,
    requestTimeout: answerMs,
    throwOnRequestTimeout: true,
    socketTimeout: answerMs,
    httpAgent: agent,
    httpsAgent: agent,
  };
  return adopt(new DynamoDBClient({ maxAttempts: 1, cacheMiddleware: true, requestHandler }));
}
