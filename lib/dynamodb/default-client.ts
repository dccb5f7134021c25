import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { adopt } from "./attempts.js";
import { Connections, type ConnectionsOptions } from "./connections.js";
import { warnOfPaddedKey } from "./padded-key.js";

const RETRIES = { retryMode: "standard", maxAttempts: 1 };

/**
 * A client from the environment: region, credentials and endpoint as the AWS SDK finds them.
 *
 * It sends each request once, because the protocol has its own retries, which know how much of a lease is left, and
 * what the environment says of retries does not count: the rate limiter of AWS_RETRY_MODE=adaptive would hold renewals back
 * until their leases are over. Nor has it timeouts of the SDK's own, whose timers end a request although its reply waits in the
 * socket: each attempt has one of ours, and so has a connection that is being made.
 */
export function defaultClient(options: ConnectionsOptions = {}): DynamoDBClient {
  warnOfPaddedKey();
  const connections = new Connections(options);
  const requestHandler = {
    connectionTimeout: 0,
    requestTimeout: 0,
    socketTimeout: 0,
    httpAgent: connections.httpAgent,
    httpsAgent: connections.httpsAgent,
  };
  const client = new DynamoDBClient({ ...RETRIES, cacheMiddleware: true, requestHandler });
  return adopt(client, (request) => connections.send(request));
}
