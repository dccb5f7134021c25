/** A guard for a DocumentClient's `TransactWriteCommand`: plain values in the place of DynamoDB's. */
export interface DocumentGuard {
  readonly ConditionCheck: {
    readonly TableName: string;
    readonly Key: Record<string, string>;
    readonly ConditionExpression: string;
    readonly ExpressionAttributeNames: Record<string, string>;
    readonly ExpressionAttributeValues: Record<string, string | number | bigint>;
    readonly ReturnValuesOnConditionCheckFailure: "ALL_OLD";
  };
}
