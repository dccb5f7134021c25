import { DynamoDBClient } from "@aws-sdk/client-dynamodb";

/**
 * A client from the environment: region, credentials and endpoint as the AWS SDK finds them.
 *
 * It tries everything once, because the protocol has its own retries, which know how much of a lease is left. A
 * request that hangs ends: on its way to a connection, on its way to a reply, and in the middle of one.
 */
export function defaultClient(): DynamoDBClient {
  const agent = { keepAlive: true, maxSockets: 128 };
  return new DynamoDBClient({
    maxAttempts: 1,
    requestHandler: {
      connectionTimeout: 1_500,
      requestTimeout: 5_000,
      throwOnRequestTimeout: true,
      socketTimeout: 5_000,
      httpAgent: agent,
      httpsAgent: agent,
    },
  });
}
