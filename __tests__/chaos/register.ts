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
  /** Of a guarded line: a stopwatch reading before its first copy left. */
  readonly sentAt?: number | undefined;
  /** Of a line in the log of both sides of a shared mutex: the place of the last exclusive line when its section began. */
  readonly first?: number | undefined;
  /** Of an exclusive line there: how many lines of the shared side its writer had read since the exclusive one before. */
  readonly seen?: number | undefined;
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
        new PutItemCommand({ ...this.#putOf(line), ReturnValuesOnConditionCheckFailure: "ALL_OLD" }),
      );
      return line;
    } catch (error) {
      if (error instanceof ConditionalCheckFailedException && error.Item) return lineOf(error.Item);
      throw error;
    }
  }

  /** What puts this line where there is none yet. */
  itemsOf(line: Line): readonly TransactWriteItem[] {
    return [{ Put: this.#putOf(line) }];
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

  #putOf(line: Line): NonNullable<TransactWriteItem["Put"]> {
    return {
      TableName: this.#tableName,
      Item: itemOf(this.#name, line),
      ConditionExpression: "attribute_not_exists(#name)",
      ExpressionAttributeNames: { "#name": "name" },
    };
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

export type Item = NonNullable<PutItemCommand["input"]["Item"]>;

const VERSION_DIGITS = 12;

export function versionKey(version: number): string {
  return String(version).padStart(VERSION_DIGITS, "0");
}

export function itemOf(name: string, { version, ...line }: Line, sort = versionKey(version)): Item {
  return {
    name: { S: name },
    sort: { S: sort },
    section: { S: line.section },
    step: { N: String(line.step) },
    after: { S: line.after },
    checkedFrom: { N: String(line.checkedFrom) },
    checkedTo: { N: String(line.checkedTo) },
    ...numbers(line),
  };
}

/** Those that not every line has. */
function numbers(line: Pick<Line, "token" | "sentAt" | "first" | "seen">): Item {
  const { token, sentAt, first, seen } = line;
  const given = Object.entries({ token, sentAt, first, seen }).filter(([, value]) => value !== undefined);
  return Object.fromEntries(given.map(([name, value]) => [name, { N: String(value) }]));
}

export function lineOf(item: Item): Line {
  const number = (name: string): number | undefined => (item[name]?.N === undefined ? undefined : Number(item[name].N));
  return {
    version: Number(item.sort?.S?.slice(0, VERSION_DIGITS)),
    section: item.section?.S ?? "",
    step: Number(item.step?.N),
    after: item.after?.S ?? "",
    checkedFrom: Number(item.checkedFrom?.N),
    checkedTo: Number(item.checkedTo?.N),
    ...(item.token?.N !== undefined && { token: BigInt(item.token.N) }),
    sentAt: number("sentAt"),
    first: number("first"),
    seen: number("seen"),
  };
}
