import { styleText } from "node:util";
import { EXIT, Failure } from "./failure.js";
import { onTable, wordsOf } from "./open-table.js";
import { print, printable } from "./output.js";
export async function check(options) {
    return await onTable(options, async (opened) => {
        const report = await opened.locks.check();
        const { tableName, usable, problems, table, batches } = report;
        const lines = problems.map((problem) => {
            const line = printable(`${problem.severity}: ${wordsOf(problem, report, opened)}`);
            return styleText(problem.severity === "error" ? "red" : "yellow", line);
        });
        if (usable && batches?.advice !== undefined)
            lines.push(printable(`advice: ${batches.advice}`));
        const what = table && `, ${table.billing}, ${table.sort === undefined ? "no sort key" : "with a sort key"}`;
        const verdict = usable ? `usable${what ?? ""}` : "locks do not work on it";
        print([...lines, `table ${printable(tableName)}: ${verdict}`, ""].join("\n"));
        return usable ? EXIT.done : EXIT.no;
    });
}
export async function createTable(options) {
    return await onTable(options, async ({ locks, keys }) => {
        const { tableName } = locks;
        if (options.print === undefined) {
            await locks.create();
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
function cloudformation(tableName, { partition, sort, ttl }) {
    const keys = sort === undefined ? [partition] : [partition, sort];
    const define = (key) => `
        - { AttributeName: ${JSON.stringify(key)}, AttributeType: S }`;
    const use = (key, index) => `
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
function terraform(tableName, { partition, sort, ttl }) {
    const quoted = (text) => JSON.stringify(text).replace(/[$%](?=\{)/g, "$&$&");
    const attribute = (key) => `
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
function cdk(tableName, { partition, sort, ttl }) {
    const attribute = (key) => `{ name: ${JSON.stringify(key)}, type: dynamodb.AttributeType.STRING }`;
    return `import * as dynamodb from "aws-cdk-lib/aws-dynamodb";

const locks = new dynamodb.Table(this, "Locks", {
  tableName: ${JSON.stringify(tableName)},
  billingMode: dynamodb.BillingMode.PAY_PER_REQUEST,
  partitionKey: ${attribute(partition)},
${sort === undefined ? "" : `  sortKey: ${attribute(sort)},\n`}  timeToLiveAttribute: ${JSON.stringify(ttl)},
});
`;
}
