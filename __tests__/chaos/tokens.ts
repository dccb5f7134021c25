import { type DynamoDBClient, PutItemCommand, QueryCommand } from "@aws-sdk/client-dynamodb";
import { now } from "../support/monotonic.js";
import type { Holding } from "./holding.js";

/** A lock that was handed off, for whoever goes on with it. */
export interface Token {
  /** The section that has handed it off. */
  readonly by: string;
  readonly holding: Holding | undefined;
  readonly token: string;
}

/** How long tokens stay on offer, used or not, in ms. */
const ON_OFFER_MS = 5_000;

/** Where sections leave the tokens of a lock, in the table: those of a host that is dead stay. */
export class Tokens {
  readonly #client: DynamoDBClient;
  readonly #tableName: string;
  readonly #name: string;

  /** @param client goes past the fault proxy. */
  constructor(client: DynamoDBClient, tableName: string, lockName: string) {
    this.#client = client;
    this.#tableName = tableName;
    this.#name = `tokens of ${lockName}`;
  }

  async post({ by, holding, token }: Token): Promise<void> {
    const Item = {
      name: { S: this.#name },
      sort: { S: `${sortAt(now())} ${by}` },
      by: { S: by },
      token: { S: token },
      ...(holding !== undefined && { holding: { S: holding } }),
    };
    await this.#client.send(new PutItemCommand({ TableName: this.#tableName, Item }));
  }

  /** Those of the last seconds, whether somebody goes on with them already or not. */
  async offered(): Promise<Token[]> {
    const { Items = [] } = await this.#client.send(
      new QueryCommand({
        TableName: this.#tableName,
        ConsistentRead: true,
        KeyConditionExpression: "#name = :name AND #sort > :since",
        ExpressionAttributeNames: { "#name": "name", "#sort": "sort" },
        ExpressionAttributeValues: { ":name": { S: this.#name }, ":since": { S: sortAt(now() - ON_OFFER_MS) } },
      }),
    );
    return Items.map(({ by, holding, token }) => ({
      by: by?.S ?? "",
      holding: holding?.S as Holding | undefined,
      token: token?.S ?? "",
    }));
  }
}

function sortAt(stopwatchMs: number): string {
  return String(Math.floor(Math.max(0, stopwatchMs))).padStart(15, "0");
}
