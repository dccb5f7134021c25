import { type DynamoDBClient, GetItemCommand, QueryCommand, type TransactWriteItem } from "@aws-sdk/client-dynamodb";
import type { GuardedRegister } from "./guarded-log.js";
import { holdingOf } from "./holding.js";
import { type Item, idOf, itemOf, type Line, lineOf, versionKey } from "./register.js";

/**
 * The log of both sides of a shared mutex, as one of its sections writes it. Lines of the exclusive side are numbered, as in
 * any log. One of the shared side stands before the exclusive line that has its number, beside any others: it is put there
 * only as long as that one is not, so the shared side has no need to agree on an order.
 *
 * What a section has read when it began goes into its lines: the place of the last exclusive line, and into an exclusive line
 * how many of the shared side it follows.
 */
export class SidesRegister implements GuardedRegister {
  readonly #client: DynamoDBClient;
  readonly #tableName: string;
  readonly #name: string;
  readonly #isExclusive: boolean;
  #first: number | undefined;
  #seen = 0;

  /** @param client goes past the fault proxy. */
  constructor(client: DynamoDBClient, tableName: string, logName: string, section: string) {
    this.#client = client;
    this.#tableName = tableName;
    this.#name = `log of ${logName}`;
    this.#isExclusive = holdingOf(section) === "exclusive";
  }

  /** The last exclusive line. */
  async last(): Promise<Line | undefined> {
    const newest = (await this.#query("", { ScanIndexForward: false, Limit: 1 })).map(lineOf)[0];
    const isExclusive = newest !== undefined && holdingOf(newest.section) === "exclusive";
    const last = isExclusive || newest === undefined ? newest : await this.#get(exclusiveKey(newest.version - 1));
    const version = last?.version ?? 0;
    this.#first ??= version;
    if (this.#isExclusive) this.#seen = (await this.#query(sharedKeys(version + 1))).length;
    return last;
  }

  itemsOf(line: Line, { isLate }: { readonly isLate: boolean }): readonly TransactWriteItem[] {
    const { version } = line;
    const isNew = {
      TableName: this.#tableName,
      ConditionExpression: "attribute_not_exists(#name)",
      ExpressionAttributeNames: { "#name": "name" },
    };
    const first = this.#first;
    if (this.#isExclusive) {
      const Item = itemOf(this.#name, { ...line, first, seen: this.#seen }, exclusiveKey(version));
      return [{ Put: { ...isNew, Item } }];
    }
    const put = { Put: { ...isNew, Item: itemOf(this.#name, { ...line, first }, sharedKey(line)) } };
    const Key = { name: { S: this.#name }, sort: { S: exclusiveKey(version) } };
    return isLate ? [put] : [put, { ConditionCheck: { ...isNew, Key } }];
  }

  async find(line: Line): Promise<Line | undefined> {
    return this.#isExclusive ? undefined : await this.#get(sharedKey(line));
  }

  /** The whole log of a shared mutex. */
  static async lines(client: DynamoDBClient, tableName: string, logName: string): Promise<Line[]> {
    return (await new SidesRegister(client, tableName, logName, "").#query("")).map(lineOf);
  }

  async #get(sort: string): Promise<Line | undefined> {
    const Key = { name: { S: this.#name }, sort: { S: sort } };
    const { Item } = await this.#client.send(
      new GetItemCommand({ TableName: this.#tableName, Key, ConsistentRead: true }),
    );
    return Item && lineOf(Item);
  }

  async #query(
    prefix: string,
    only: { readonly ScanIndexForward?: boolean; readonly Limit?: number } = {},
  ): Promise<Item[]> {
    const items: Item[] = [];
    let from: Item | undefined;
    do {
      const page = await this.#client.send(
        new QueryCommand({
          TableName: this.#tableName,
          ConsistentRead: true,
          KeyConditionExpression: prefix === "" ? "#name = :name" : "#name = :name AND begins_with(#sort, :prefix)",
          ExpressionAttributeNames: { "#name": "name", ...(prefix !== "" && { "#sort": "sort" }) },
          ExpressionAttributeValues: { ":name": { S: this.#name }, ...(prefix !== "" && { ":prefix": { S: prefix } }) },
          ...only,
          ...(from && { ExclusiveStartKey: from }),
        }),
      );
      items.push(...(page.Items ?? []));
      from = only.Limit === undefined ? page.LastEvaluatedKey : undefined;
    } while (from !== undefined);
    return items;
  }
}

const sharedKeys = (version: number): string => `${versionKey(version)}/1/`;
const sharedKey = (line: Line): string => `${sharedKeys(line.version)}${idOf(line)}`;
const exclusiveKey = (version: number): string => `${versionKey(version)}/2`;
