import { styleText } from "node:util";
import type { TableReport } from "../index.js";
import { EXIT, Failure } from "./failure.js";
import { type OpenTable, onTable, type TableArguments, type TableKeys, wordsOf } from "./open-table.js";
import { print, printable } from "./output.js";

/** Checks whether locks work on a table. @returns 0 if they do, 1 if not. */
export async function check(options: TableArguments): Promise<number> {
  return await onTable(options, async (opened) => {
    const report = await opened.locks.check();
    const { tableName, usable, table } = report;
    const what = table && `, ${table.billing}, ${table.sort === undefined ? "no sort key" : "with a sort key"}`;
    const verdict = usable ? `usable${what ?? ""}` : "locks do not work on it";
    print([...problemLines(report, opened), `table ${printable(tableName)}: ${verdict}`, ""].join("\n"));
    return usable ? EXIT.done : EXIT.no;
  });
}

/** What is wrong with a table, and what to do: a line for each problem. */
export function problemLines(report: TableReport, opened: OpenTable): string[] {
  const { usable, problems, batches } = report;
  const lines = problems.map((problem) => {
    const line = printable(`${problem.severity}: ${wordsOf(problem, report, opened)}`);
    return styleText(problem.severity === "error" ? "red" : "yellow", line);
  });
  return usable && batches?.advice !== undefined ? [...lines, printable(`advice: ${batches.advice}`)] : lines;
}

type Format = "cloudformation" | "terraform" | "cdk";

/** Creates the table, or prints what creates it. */
export async function createTable(
  options: TableArguments & { readonly print?: Format; readonly enableTtl?: boolean },
): Promise<number> {
  return await onTable(options, async ({ locks, keys }) => {
    const { tableName } = locks;
    if (options.print === undefined) {
      await locks.create({ enableTtl: options.enableTtl });
      print(`table ${printable(tableName)} is ready\n`);
      return EXIT.done;
    }
    if (tableName.startsWith("arn:")) {
      throw new Failure("--table is an ARN, and a template needs a name: give the part behind the last slash");
    }
    print({ cloudformation, terraform, cdk }[options.print](tableName, keys));
    return EXIT.done;
  });
}

function cloudformation(tableName: string, { partition, sort, ttl }: TableKeys): string {
  const keys = sort === undefined ? [partition] : [partition, sort];
  const define = (key: string) => `
        - { AttributeName: ${JSON.stringify(key)}, AttributeType: S }`;
  const use = (key: string, index: number) => `
        - { AttributeName: ${JSON.stringify(key)}, KeyType: ${index === 0 ? "HASH" : "RANGE"} }`;
  return `Resources:
  Locks:
    Type: AWS::DynamoDB::Table
    Properties:
      TableName: ${JSON.stringify(tableName)}
      BillingMode: PAY_PER_REQUEST
      AttributeDefinitions:${keys.map(define).join("")}
      KeySchema:${keys.map(use).join("")}
      TimeToLiveSpecification: { AttributeName: ${JSON.stringify(ttl)}, Enabled: true }
`;
}

function terraform(tableName: string, { partition, sort, ttl }: TableKeys): string {
  // A template of HCL begins with `${` or `%{`.
  const quoted = (text: string) => JSON.stringify(text).replace(/[$%](?=\{)/g, "$&$&");
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
${sort === undefined ? "" : `  range_key    = ${quoted(sort)}\n`}${attribute(partition)}${sort === undefined ? "" : attribute(sort)}
  ttl {
    attribute_name = ${quoted(ttl)}
    enabled        = true
  }
}
`;
}

function cdk(tableName: string, { partition, sort, ttl }: TableKeys): string {
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
