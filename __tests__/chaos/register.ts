import {
  ConditionalCheckFailedException,
  type DynamoDBClient,
  PutItemCommand,
  QueryCommand,
  type QueryCommandInput,
  type TransactWriteItem,
} from "@aws-sdk/client-dynamodb";

/** One line that a section wrote while it held the lock, as far as it could tell. */
export interface Line {
  /** Its place in the log, from 1. No two lines share one. */
  readonly version: number;
  readonly section: string;
  /** Which of the section's lines it is, from 1. */
  readonly step: number;
  /** The line before it, as its writer read it. */
  readonly after: string;
  /** Stopwatch readings right before and right after the `assertHeld()` that let it pass. */
  readonly checkedFrom: number;
  readonly checkedTo: number;
  /** The fencing token of its section, where the lock has one. */
  readonly token?: bigint | undefined;
}

/** A log that a section can write a line into. */
export interface Log {
  /** The last line, as of now. */
  last(): Promise<Line | undefined>;
  /** @returns the line that is now in this place: this one, unless another had it before. */
  put(line: Line): Promise<Line>;
}

export function idOf({ section, step }: Pick<Line, "section" | "step">): string {
  return `${section}#${step}`;
}

/**
 * A log in the table that is one compare-and-set register: whoever wants to write version n + 1 must have read
 * version n, and the table lets only one of them.
 */
export class Register implements Log {
  readonly #client: DynamoDBClient;
  readonly #tableName: string;
  readonly #name: string;

  /** @param client goes past the fault proxy: what is checked here is the lock and not the register. */
  constructor(client: DynamoDBClient, tableName: string, lockName: string) {
    this.#client = client;
    this.#tableName = tableName;
    this.#name = `log of ${lockName}`;
  }

  async last(): Promise<Line | undefined> {
    const { Items = [] } = await this.#client.send(
      new QueryCommand({ ...this.#query(), ScanIndexForward: false, Limit: 1 }),
    );
    return Items.map(lineOf)[0];
  }

  async put(line: Line): Promise<Line> {
    try {
      await this.#client.send(
        new PutItemCommand({ ...this.putOf(line), ReturnValuesOnConditionCheckFailure: "ALL_OLD" }),
      );
      return line;
    } catch (error) {
      if (error instanceof ConditionalCheckFailedException && error.Item) return lineOf(error.Item);
      throw error;
    }
  }

  /** What puts this line where there is none yet, for a transaction. */
  putOf(line: Line): NonNullable<TransactWriteItem["Put"]> {
    return {
      TableName: this.#tableName,
      Item: itemOf(this.#name, line),
      ConditionExpression: "attribute_not_exists(#name)",
      ExpressionAttributeNames: { "#name": "name" },
    };
  }

  /** The whole log. */
  async lines(): Promise<Line[]> {
    const lines: Line[] = [];
    let from: Item | undefined;
    do {
      const start = from === undefined ? {} : { ExclusiveStartKey: from };
      const page = await this.#client.send(new QueryCommand({ ...this.#query(), ...start }));
      lines.push(...(page.Items ?? []).map(lineOf));
      from = page.LastEvaluatedKey;
    } while (from !== undefined);
    return lines;
  }

  #query(): QueryCommandInput {
    return {
      TableName: this.#tableName,
      ConsistentRead: true,
      KeyConditionExpression: "#name = :name",
      ExpressionAttributeNames: { "#name": "name" },
      ExpressionAttributeValues: { ":name": { S: this.#name } },
    };
  }
}

type Item = NonNullable<PutItemCommand["input"]["Item"]>;

function itemOf(name: string, { version, ...line }: Line): Item {
  return {
    name: { S: name },
    sort: { S: String(version).padStart(12, "0") },
    section: { S: line.section },
    step: { N: String(line.step) },
    after: { S: line.after },
    checkedFrom: { N: String(line.checkedFrom) },
    checkedTo: { N: String(line.checkedTo) },
    ...(line.token !== undefined && { token: { N: String(line.token) } }),
  };
}

function lineOf(item: Item): Line {
  return {
    version: Number(item.sort?.S),
    section: item.section?.S ?? "",
    step: Number(item.step?.N),
    after: item.after?.S ?? "",
    checkedFrom: Number(item.checkedFrom?.N),
    checkedTo: Number(item.checkedTo?.N),
    ...(item.token?.N !== undefined && { token: BigInt(item.token.N) }),
  };
}
