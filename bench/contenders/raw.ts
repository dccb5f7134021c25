import { randomUUID } from "node:crypto";
import { hostname } from "node:os";
import { DeleteItemCommand, DynamoDBClient, PutItemCommand } from "@aws-sdk/client-dynamodb";
import { LOCAL, type Locker, type LockerOptions } from "./locker.js";

const OWNER = `${hostname()}#${process.pid}`;

/** What a takeover asks of the row that it replaces, as this library asks it. */
const IS_FREE =
  "attribute_not_exists(#name) OR (#format = :format AND attribute_type(#owner, :string) AND " +
  "attribute_type(#ttlMs, :number) AND attribute_type(#acquired, :number) AND (attribute_not_exists(#uuid) OR " +
  "attribute_type(#uuid, :string)) AND attribute_not_exists(#fence) AND attribute_not_exists(#tick) AND " +
  "#expires < :earliest)";

const NAMES = Object.fromEntries(
  ["name", "format", "owner", "ttlMs", "acquired", "uuid", "fence", "tick", "expires"].map((name) => [
    `#${name}`,
    name,
  ]),
);

/** Sends one command. */
type Send = (client: DynamoDBClient, command: PutItemCommand | DeleteItemCommand) => Promise<unknown>;

/** As everybody must who wants no request to outlive the lease that it is about, whatever the client's settings. */
function sendWithin(leaseMs: number): Send {
  return async (client, command) => {
    const controller = new AbortController();
    const timer = setTimeout(() => controller.abort(), leaseMs);
    try {
      return await client.send(command as PutItemCommand, { abortSignal: controller.signal });
    } finally {
      clearTimeout(timer);
    }
  };
}

/**
 * The floor: the two requests of this library, to the byte, on a client as the SDK comes, as somebody careful would send
 * them by hand: a signal ends each when the lease is over. No waiting, no renewals, no deadline, nothing else.
 */
export async function openRaw(options: LockerOptions): Promise<Locker> {
  return open(options, sendWithin(options.leaseMs));
}

/** The same, and no request has a bound but the client's. */
export async function openBare(options: LockerOptions): Promise<Locker> {
  return open(options, sendUnbounded);
}

function sendUnbounded(client: DynamoDBClient, command: Parameters<Send>[1]): Promise<unknown> {
  return client.send(command as PutItemCommand);
}

function open({ endpoint, tableName: TableName, leaseMs }: LockerOptions, send: Send): Locker {
  const client = new DynamoDBClient({ ...LOCAL, endpoint });
  return {
    async lock(name) {
      const uuid = randomUUID();
      const now = Date.now();
      const expires = now + leaseMs;
      await send(
        client,
        new PutItemCommand({
          TableName,
          Item: {
            name: { S: name },
            sort: { S: "lock" },
            format: { N: "1" },
            uuid: { S: uuid },
            expires: { N: `${expires}` },
            ttlMs: { N: `${leaseMs}` },
            owner: { S: OWNER },
            acquired: { N: `${now}` },
            purge: { N: `${Math.ceil(expires / 1_000)}` },
          },
          ConditionExpression: IS_FREE,
          ExpressionAttributeNames: NAMES,
          ExpressionAttributeValues: {
            ":format": { N: "1" },
            ":earliest": { N: `${now}` },
            ":string": { S: "S" },
            ":number": { S: "N" },
          },
          ReturnValues: "ALL_OLD",
          ReturnValuesOnConditionCheckFailure: "ALL_OLD",
        }),
      );
      return async () => {
        await send(
          client,
          new DeleteItemCommand({
            TableName,
            Key: { name: { S: name }, sort: { S: "lock" } },
            ConditionExpression: "#uuid = :uuid AND #format = :format",
            ExpressionAttributeNames: { "#uuid": "uuid", "#format": "format" },
            ExpressionAttributeValues: { ":uuid": { S: uuid }, ":format": { N: "1" } },
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
