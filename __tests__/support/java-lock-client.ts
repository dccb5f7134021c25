import {
  type AttributeValue,
  ConditionalCheckFailedException,
  DeleteItemCommand,
  type DynamoDBClient,
  GetItemCommand,
  PutItemCommand,
  UpdateItemCommand,
} from "@aws-sdk/client-dynamodb";

/** What tells one client of a table from another. */
export interface JavaLockClientOptions {
  readonly client: DynamoDBClient;
  readonly TableName: string;
  readonly key: string;
  readonly ownerName: string;
  /** As the row has it: milliseconds, or `20s` where the client is dynamolock. */
  readonly leaseDuration: string;
}

/**
 * The writes of Amazon's Java lock client, with the attributes and conditions of its source (AmazonDynamoDBLockClient.java at
 * 601eab1 of 2026-06-11). dynamolock's are the same but for the form of `leaseDuration` (client.go at 6e19a15 of 2026-08-20).
 */
export class JavaLockClient {
  readonly #options: JavaLockClientOptions;
  #versions = 0;

  constructor(options: JavaLockClientOptions) {
    this.#options = options;
  }

  async row(): Promise<Record<string, AttributeValue> | undefined> {
    const { client, TableName, key } = this.#options;
    const Key = { key: { S: key } };
    return (await client.send(new GetItemCommand({ TableName, Key, ConsistentRead: true }))).Item;
  }

  /** upsertAndMonitorNewLock */
  takeNew(): Promise<boolean> {
    return this.#put("attribute_not_exists(#pk)", { "#pk": "key" });
  }

  /** upsertAndMonitorReleasedLock, as by default: without the version number. */
  takeReleased(): Promise<boolean> {
    const names = { "#pk": "key", "#ir": "isReleased" };
    return this.#put("attribute_exists(#pk) AND #ir = :ir", names, { ":ir": { S: "1" } });
  }

  /** upsertAndMonitorExpiredLock, of a row that had this version number for a whole lease. */
  takeExpired(version: string): Promise<boolean> {
    const names = { "#pk": "key", "#rvn": "recordVersionNumber" };
    return this.#put("attribute_exists(#pk) AND #rvn = :rvn", names, { ":rvn": { S: version } });
  }

  /** sendHeartbeat */
  heartbeat(): Promise<boolean> {
    const { leaseDuration } = this.#options;
    const condition = this.#condition();
    const next = this.#nextVersion();
    return this.#update({
      ...condition,
      UpdateExpression: "SET #ld = :ld, #rvn = :newRvn",
      names: { ...condition.names, "#ld": "leaseDuration" },
      values: { ...condition.values, ":ld": { S: leaseDuration }, ":newRvn": { S: next } },
    });
  }

  /** releaseLock without deleteLock */
  release(): Promise<boolean> {
    const { names, values, ConditionExpression } = this.#condition();
    return this.#update({
      ConditionExpression,
      UpdateExpression: "SET #ir = :ir",
      names: { ...names, "#ir": "isReleased" },
      values: { ...values, ":ir": { S: "1" } },
    });
  }

  /** releaseLock, as by default */
  delete(): Promise<boolean> {
    const { client, TableName, key } = this.#options;
    const { names, values, ConditionExpression } = this.#condition();
    const expressions = { ExpressionAttributeNames: names, ExpressionAttributeValues: values };
    return granted(
      client.send(new DeleteItemCommand({ TableName, Key: { key: { S: key } }, ConditionExpression, ...expressions })),
    );
  }

  #condition() {
    return {
      ConditionExpression: "attribute_exists(#pk) AND #rvn = :rvn AND #on = :on",
      names: { "#pk": "key", "#rvn": "recordVersionNumber", "#on": "ownerName" },
      values: { ":rvn": { S: this.#version() }, ":on": { S: this.#options.ownerName } },
    };
  }

  #put(
    ConditionExpression: string,
    ExpressionAttributeNames: Record<string, string>,
    values?: Record<string, AttributeValue>,
  ): Promise<boolean> {
    const { client, TableName, key, ownerName, leaseDuration } = this.#options;
    const Item = {
      key: { S: key },
      ownerName: { S: ownerName },
      leaseDuration: { S: leaseDuration },
      recordVersionNumber: { S: this.#nextVersion() },
      data: { B: new TextEncoder().encode("theirs") },
    };
    const condition = { ConditionExpression, ExpressionAttributeNames };
    const expressions = values === undefined ? condition : { ...condition, ExpressionAttributeValues: values };
    return granted(client.send(new PutItemCommand({ TableName, Item, ...expressions })));
  }

  #update(write: {
    readonly ConditionExpression: string;
    readonly UpdateExpression: string;
    readonly names: Record<string, string>;
    readonly values: Record<string, AttributeValue>;
  }): Promise<boolean> {
    const { client, TableName, key } = this.#options;
    const { names, values, ...expressions } = write;
    const input = { TableName, Key: { key: { S: key } }, ...expressions };
    return granted(
      client.send(
        new UpdateItemCommand({ ...input, ExpressionAttributeNames: names, ExpressionAttributeValues: values }),
      ),
    );
  }

  #version(): string {
    return `${this.#options.ownerName}-${this.#versions}`;
  }

  #nextVersion(): string {
    this.#versions += 1;
    return this.#version();
  }
}

async function granted(request: Promise<unknown>): Promise<boolean> {
  try {
    await request;
    return true;
  } catch (error) {
    if (error instanceof ConditionalCheckFailedException) return false;
    throw error;
  }
}
