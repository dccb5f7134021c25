import {
  ConditionalCheckFailedException,
  type DynamoDBClient,
  PutItemCommand,
  QueryCommand,
  type QueryCommandInput,
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
}

export function idOf({ section, step }: Pick<Line, "section" | "step">): string {
  return `${section}#${step}`;
}

/**
 * A log in the table that is one compare-and-set register: whoever wants to write version n + 1 must have read
 * version n, and the table lets only one of them.
 */
export class Register {
  readonly #client: DynamoDBClient;
  readonly #tableName: string;
  readonly #name: string;

  /** @param client goes past the fault proxy: what is checked here is the lock and not the register. */
  constructor(client: DynamoDBClient, tableName: string, lockName: string) {
    this.#client = client;
    this.#tableName = tableName;
    this.#name = `log of ${lockName}`;
  }

  /** The last line, as of now. */
  async last(): Promise<Line | undefined> {
    const { Items = [] } = await this.#client.send(
      new QueryCommand({ ...this.#query(), ScanIndexForward: false, Limit: 1 }),
    );
    return Items.map(lineOf)[0];
  }

  /** @returns the line that is now in this place: this one, unless another had it before. */
  async put(line: Line): Promise<Line> {
    try {
      await this.#client.send(
        new PutItemCommand({
          TableName: this.#tableName,
          Item: itemOf(this.#name, line),
          ConditionExpression: "attribute_not_exists(#name)",
          ExpressionAttributeNames: { "#name": "name" },
          ReturnValuesOnConditionCheckFailure: "ALL_OLD",
        }),
      );
      return line;
    } catch (error) {
      if (error instanceof ConditionalCheckFailedException && error.Item) return lineOf(error.Item);
      throw error;
    }
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
  };
}
