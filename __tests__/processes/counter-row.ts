import { type DynamoDBClient, GetItemCommand, PutItemCommand } from "@aws-sdk/client-dynamodb";

const Key = { name: { S: "counter" }, sort: { S: "value" } };

/** A counter beside the locks, which nothing but a lock guards. */
export async function readCounter(client: DynamoDBClient, TableName: string): Promise<number> {
  const { Item } = await client.send(new GetItemCommand({ TableName, Key, ConsistentRead: true }));
  return Number(Item?.value?.N ?? 0);
}

export async function writeCounter(client: DynamoDBClient, TableName: string, value: number): Promise<void> {
  await client.send(new PutItemCommand({ TableName, Item: { ...Key, value: { N: String(value) } } }));
}

/** A section, in milliseconds of one stopwatch for all processes. */
export interface Visit {
  readonly entered: number;
  readonly left?: number | undefined;
}

/** Sections that began before the one before them had ended. */
export function overlaps(sections: readonly Visit[]): Visit[] {
  const inOrder = [...sections].sort((a, b) => a.entered - b.entered);
  return inOrder.filter((section, index) => section.entered < (inOrder[index - 1]?.left ?? 0));
}
