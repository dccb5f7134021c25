import { styleText } from "node:util";
import { EXIT, Failure } from "./failure.js";
import { onTable, type TableArguments, type TableNames, wordsOf } from "./open-table.js";
import { print, printable } from "./output.js";

/** Checks whether locks work on a table. @returns 0 if they do, 1 if not. */
export async function check(options: TableArguments): Promise<number> {
  return await onTable(options, async ({ locks, names }) => {
    const report = await locks.check();
    const { tableName, usable, problems, table, batches } = report;
    const lines = problems.map((problem) => {
      const line = printable(`${problem.severity}: ${wordsOf(problem, report, names)}`);
      return styleText(problem.severity === "error" ? "red" : "yellow", line);
    });
    if (usable && batches?.advice !== undefined) lines.push(printable(`advice: ${batches.advice}`));
    const what = table && `, ${table.billing}, ${table.sort === undefined ? "no sort key" : "with a sort key"}`;
    const verdict = usable ? `usable${what ?? ""}` : "locks do not work on it";
    print([...lines, `table ${printable(tableName)}: ${verdict}`, ""].join("\n"));
    return usable ? EXIT.done : EXIT.no;
  });
}

type TemplateName = "cloudformation" | "terraform" | "cdk";

export interface CreateTableOptions extends TableArguments {
  readonly print?: TemplateName;
}

/** Creates the table, or prints what creates it. */
export async function createTable({ print: format, ...options }: CreateTableOptions): Promise<number> {
  return await onTable(options, async ({ locks, names }) => {
    if (format === undefined) {
      await locks.create();
      print(`table ${printable(names.tableName)} is ready\n`);
      return EXIT.done;
    }
    if (names.tableName.startsWith("arn:")) {
      throw new Failure(
        "--table is an ARN, and a template needs the table's name: give the part behind the last slash",
      );
    }
    print(TEMPLATES[format](names));
    return EXIT.done;
  });
}

/** What creates the table, for each tool. */
const TEMPLATES: Readonly<Record<TemplateName, (names: TableNames) => string>> = { cloudformation, terraform, cdk };

function cloudformation({ tableName, partition, sort, ttl }: TableNames): string {
  const define = (key: string) => `- { AttributeName: ${yaml(key)}, AttributeType: S }`;
  const range = sort === undefined ? "" : `\n        - { AttributeName: ${yaml(sort)}, KeyType: RANGE }`;
  return `Resources:
  Locks:
    Type: AWS::DynamoDB::Table
    Properties:
      TableName: ${yaml(tableName)}
      BillingMode: PAY_PER_REQUEST
      AttributeDefinitions:
        ${keysOf(partition, sort).map(define).join("\n        ")}
      KeySchema:
        - { AttributeName: ${yaml(partition)}, KeyType: HASH }${range}
      TimeToLiveSpecification: { AttributeName: ${yaml(ttl)}, Enabled: true }
`;
}

function terraform({ tableName, partition, sort, ttl }: TableNames): string {
  const attribute = (key: string) => `
  attribute {
    name = ${quoted(key)}
    type = "S"
  }
`;
  return `resource "aws_dynamodb_table" "locks" {
  name         = ${quoted(tableName)}
  billing_mode = "PAY_PER_REQUEST"
  hash_key     = ${quoted(partition)}
${sort === undefined ? "" : `  range_key    = ${quoted(sort)}\n`}${keysOf(partition, sort).map(attribute).join("")}
  ttl {
    attribute_name = ${quoted(ttl)}
    enabled        = true
  }
}
`;
}

function cdk({ tableName, partition, sort, ttl }: TableNames): string {
  const attribute = (key: string) => `{ name: ${JSON.stringify(key)}, type: dynamodb.AttributeType.STRING }`;
  return `import * as dynamodb from "aws-cdk-lib/aws-dynamodb";

const locks = new dynamodb.Table(this, "Locks", {
  tableName: ${JSON.stringify(tableName)},
  billingMode: dynamodb.BillingMode.PAY_PER_REQUEST,
  partitionKey: ${attribute(partition)},
${sort === undefined ? "" : `  sortKey: ${attribute(sort)},\n`}  timeToLiveAttribute: ${JSON.stringify(ttl)},
});
`;
}

const keysOf = (partition: string, sort: string | undefined): string[] =>
  sort === undefined ? [partition] : [partition, sort];

/** In quotes where YAML would take it for something else than a string. */
function yaml(text: string): string {
  const isPlain = /^[a-z][\w.-]*$/i.test(text) && !/^(true|false|yes|no|on|off|null|y|n)$/i.test(text);
  return isPlain ? text : JSON.stringify(text);
}

/** As HCL reads it: a template begins with `${` or `%{`. */
const quoted = (text: string): string => JSON.stringify(text).replace(/[$%](?=\{)/g, "$&$&");
