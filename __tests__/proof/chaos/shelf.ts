import {
  ConditionalCheckFailedException,
  type DynamoDBClient,
  GetItemCommand,
  PutItemCommand,
  paginateQuery,
  QueryCommand,
  type QueryCommandInput,
  type TransactWriteItem,
} from "@aws-sdk/client-dynamodb";

type Item = NonNullable<PutItemCommand["input"]["Item"]>;

/** Something that is new to the table: the condition of a put. */
export const IS_NEW = {
  ConditionExpression: "attribute_not_exists(#name)",
  ExpressionAttributeNames: { "#name": "name" },
} as const;

/** What a run keeps in the table beside the locks: JSON under one name, by sort keys of printable ASCII. */
export class Shelf<Kept> {
  readonly #client: DynamoDBClient;
  readonly #tableName: string;
  readonly #name: string;

  /** @param client goes past the fault proxy: what is checked is the lock, and not what is kept here. */
  constructor(client: DynamoDBClient, tableName: string, name: string) {
    this.#client = client;
    this.#tableName = tableName;
    this.#name = name;
  }

  keyOf(sort: string): { readonly TableName: string; readonly Key: Item } {
    return { TableName: this.#tableName, Key: { name: { S: this.#name }, sort: { S: sort } } };
  }

  /** Puts it where nothing is yet. */
  putOf(sort: string, kept: Kept): NonNullable<TransactWriteItem["Put"]> {
    const { TableName, Key } = this.keyOf(sort);
    return { TableName, Item: { ...Key, kept: { S: JSON.stringify(kept) } }, ...IS_NEW };
  }

  /** @returns what is now in this place: this, unless another was there before. */
  async put(sort: string, kept: Kept): Promise<Kept> {
    const put = { ...this.putOf(sort, kept), ReturnValuesOnConditionCheckFailure: "ALL_OLD" } as const;
    try {
      await this.#client.send(new PutItemCommand(put));
      return kept;
    } catch (error) {
      if (error instanceof ConditionalCheckFailedException && error.Item) return this.#keptIn(error.Item);
      throw error;
    }
  }

  async get(sort: string): Promise<Kept | undefined> {
    const { Item } = await this.#client.send(new GetItemCommand({ ...this.keyOf(sort), ConsistentRead: true }));
    return Item && this.#keptIn(Item);
  }

  async newest(): Promise<Kept | undefined> {
    const newest = { ...this.#between("!", "~"), ScanIndexForward: false, Limit: 1 };
    const { Items = [] } = await this.#client.send(new QueryCommand(newest));
    return Items.map(this.#keptIn)[0];
  }

  /** All whose sort keys are in this range, in their order. */
  async all(from = "!", to = "~"): Promise<Kept[]> {
    const all: Kept[] = [];
    for await (const { Items = [] } of paginateQuery({ client: this.#client }, this.#between(from, to))) {
      all.push(...Items.map(this.#keptIn));
    }
    return all;
  }

  #between(from: string, to: string): QueryCommandInput {
    return {
      TableName: this.#tableName,
      ConsistentRead: true,
      KeyConditionExpression: "#name = :name AND #sort BETWEEN :from AND :to",
      ExpressionAttributeNames: { "#name": "name", "#sort": "sort" },
      ExpressionAttributeValues: { ":name": { S: this.#name }, ":from": { S: from }, ":to": { S: to } },
    };
  }

  #keptIn({ kept }: Item): Kept {
    return JSON.parse(kept?.S ?? "");
  }
}
