/** A table as its definition names it. */
export interface TableDefinition {
  readonly tableName: string;
  readonly partition: string;
  readonly sort: string | undefined;
  readonly ttl: string;
}

export type TemplateName = "cloudformation" | "terraform" | "cdk";

/** What creates the table, for each tool. */
export const TEMPLATES: Readonly<Record<TemplateName, (definition: TableDefinition) => string>> = {
  cloudformation,
  terraform,
  cdk,
};

function cloudformation({ tableName, partition, sort, ttl }: TableDefinition): string {
  const keys = keysOf(partition, sort);
  return [
    "Resources:",
    "  Locks:",
    "    Type: AWS::DynamoDB::Table",
    "    Properties:",
    `      TableName: ${yaml(tableName)}`,
    "      BillingMode: PAY_PER_REQUEST",
    "      AttributeDefinitions:",
    ...keys.map((key) => `        - { AttributeName: ${yaml(key)}, AttributeType: S }`),
    "      KeySchema:",
    ...keys.map((key, at) => `        - { AttributeName: ${yaml(key)}, KeyType: ${at === 0 ? "HASH" : "RANGE"} }`),
    `      TimeToLiveSpecification: { AttributeName: ${yaml(ttl)}, Enabled: true }`,
    "",
  ].join("\n");
}

function terraform({ tableName, partition, sort, ttl }: TableDefinition): string {
  return [
    'resource "aws_dynamodb_table" "locks" {',
    `  name         = ${quoted(tableName)}`,
    '  billing_mode = "PAY_PER_REQUEST"',
    `  hash_key     = ${quoted(partition)}`,
    ...(sort === undefined ? [] : [`  range_key    = ${quoted(sort)}`]),
    ...keysOf(partition, sort).flatMap((key) => [
      "",
      "  attribute {",
      `    name = ${quoted(key)}`,
      '    type = "S"',
      "  }",
    ]),
    "",
    "  ttl {",
    `    attribute_name = ${quoted(ttl)}`,
    "    enabled        = true",
    "  }",
    "}",
    "",
  ].join("\n");
}

function cdk({ tableName, partition, sort, ttl }: TableDefinition): string {
  const attribute = (key: string): string => `{ name: ${JSON.stringify(key)}, type: dynamodb.AttributeType.STRING }`;
  return [
    'import * as dynamodb from "aws-cdk-lib/aws-dynamodb";',
    "",
    'const locks = new dynamodb.Table(this, "Locks", {',
    `  tableName: ${JSON.stringify(tableName)},`,
    "  billingMode: dynamodb.BillingMode.PAY_PER_REQUEST,",
    `  partitionKey: ${attribute(partition)},`,
    ...(sort === undefined ? [] : [`  sortKey: ${attribute(sort)},`]),
    `  timeToLiveAttribute: ${JSON.stringify(ttl)},`,
    "});",
    "",
  ].join("\n");
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
