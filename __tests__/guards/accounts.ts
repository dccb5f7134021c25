import {
  type AttributeValue,
  type DynamoDBClient,
  GetItemCommand,
  TransactGetItemsCommand,
  type TransactWriteItem,
  TransactWriteItemsCommand,
} from "@aws-sdk/client-dynamodb";

export const ACCOUNTS = ["a", "b", "c", "d"] as const;
export const OPENING = 100;

/** Bank accounts beside the locks, which know nothing of them. */
const keyOf = (account: string): Record<string, AttributeValue> => ({
  name: { S: `account#${account}` },
  sort: { S: "balance" },
});

export async function balanceOf(client: DynamoDBClient, TableName: string, account: string): Promise<number> {
  const { Item } = await client.send(new GetItemCommand({ TableName, Key: keyOf(account), ConsistentRead: true }));
  return Number(Item?.amount?.N);
}

/** The write of a balance that was computed: whatever is there is overwritten. */
export function writeOf(TableName: string, account: string, amount: number): TransactWriteItem {
  return { Put: { TableName, Item: { ...keyOf(account), amount: { N: `${amount}` } } } };
}

export async function openAccounts(client: DynamoDBClient, tableName: string): Promise<void> {
  const TransactItems = ACCOUNTS.map((account) => writeOf(tableName, account, OPENING));
  await client.send(new TransactWriteItemsCommand({ TransactItems }));
}

/** All the money there is, at one instant. */
export async function totalOf(client: DynamoDBClient, TableName: string): Promise<number> {
  const TransactItems = ACCOUNTS.map((account) => ({ Get: { TableName, Key: keyOf(account) } }));
  const { Responses = [] } = await client.send(new TransactGetItemsCommand({ TransactItems }));
  return Responses.reduce((total, { Item }) => total + Number(Item?.amount?.N), 0);
}
