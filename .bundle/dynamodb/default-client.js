import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { adopt } from "./attempts.js";
import { Connections } from "./connections.js";
const RETRIES = { retryMode: "standard", maxAttempts: 1 };
export function defaultClient({ connectMs = 1_500, answerMs = 5_000, } = {}) {
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
