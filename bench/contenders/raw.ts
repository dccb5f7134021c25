import { randomUUID } from "node:crypto";
import { DeleteItemCommand, DynamoDBClient, PutItemCommand } from "@aws-sdk/client-dynamodb";
import { clientConfig, type Locker, type LockerOptions } from "./locker.js";

/**
 * The floor: the two requests that no lock can do without, as somebody careful would write them by hand. No waiting,
 * no renewals, no deadline.
 */
export async function openRaw({ endpoint, tableName: TableName, leaseMs }: LockerOptions): Promise<Locker> {
  const client = new DynamoDBClient(clientConfig(endpoint));
  return {
    async lock(name) {
      const uuid = randomUUID();
      const now = Date.now();
      const expires = now + leaseMs;
      await client.send(
        new PutItemCommand({
          TableName,
          Item: {
            name: { S: name },
            sort: { S: "lock" },
            uuid: { S: uuid },
            expires: { N: `${expires}` },
            ttlMs: { N: `${leaseMs}` },
            owner: { S: "bench" },
            acquired: { N: `${now}` },
            purge: { N: `${Math.ceil(expires / 1_000)}` },
          },
          ConditionExpression: "attribute_not_exists(#name) OR #expires < :now",
          ExpressionAttributeNames: { "#name": "name", "#expires": "expires" },
          ExpressionAttributeValues: { ":now": { N: `${now}` } },
          ReturnValuesOnConditionCheckFailure: "ALL_OLD",
        }),
      );
      return async () => {
        await client.send(
          new DeleteItemCommand({
            TableName,
            Key: { name: { S: name }, sort: { S: "lock" } },
            ConditionExpression: "#uuid = :uuid",
            ExpressionAttributeNames: { "#uuid": "uuid" },
            ExpressionAttributeValues: { ":uuid": { S: uuid } },
            ReturnValuesOnConditionCheckFailure: "ALL_OLD",
          }),
        );
      };
    },
    async close() {
      client.destroy();
    },
  };
}
