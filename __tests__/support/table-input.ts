import type { CreateTableCommandInput } from "@aws-sdk/client-dynamodb";

/** What makes it a table without a sort key. */
export const WITHOUT_SORT: Pick<CreateTableCommandInput, "AttributeDefinitions" | "KeySchema"> = {
  AttributeDefinitions: [{ AttributeName: "name", AttributeType: "S" }],
  KeySchema: [{ AttributeName: "name", KeyType: "HASH" }],
};

/** A table for locks as somebody makes it by hand: without a TTL, and with differences, if there are any. */
export function tableInput(
  TableName: string,
  differences: Partial<CreateTableCommandInput> = {},
): CreateTableCommandInput {
  return {
    TableName,
    BillingMode: "PAY_PER_REQUEST",
    AttributeDefinitions: [
      { AttributeName: "name", AttributeType: "S" },
      { AttributeName: "sort", AttributeType: "S" },
    ],
    KeySchema: [
      { AttributeName: "name", KeyType: "HASH" },
      { AttributeName: "sort", KeyType: "RANGE" },
    ],
    ...differences,
  };
}
