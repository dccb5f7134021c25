import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { adopt } from "./attempts.js";
import { Connections } from "./connections.js";

const RETRIES = { retryMode: "standard", maxAttempts: 1 };

/**
 * A client from the environment: region, credentials and endpoint as the AWS SDK finds them.
 *
 * It sends each request once, because the protocol has its own retries, which know how much of a lease is left, and
 * what the environment says of retries does not count: the rate limiter of AWS_RETRY_MODE=adaptive would hold renewals back
 * until their leases are over. Each phase of a request has a timeout: connecting, waiting for the reply, and reading the reply.
 */
export function defaultClient({
  connectMs = 1_500,
  answerMs = 5_000,
}: {
  readonly connectMs?: number;
  readonly answerMs?: number;
} = {}): DynamoDBClient {
  const connections = new Connections();
  const requestHandler = {
    connectionTimeout: connectMs,
    requestTimeout: answerMs,
    throwOnRequestTimeout: true,
    socketTimeout: answerMs,
    httpAgent: connections.httpAgent,
    httpsAgent: connections.httpsAgent,
  };
  const client = new DynamoDBClient({ ...RETRIES, cacheMiddleware: true, requestHandler });
  return adopt(client, (request) => connections.send(request));
}
