import type { TransactWriteItem } from "@aws-sdk/client-dynamodb";

/** What is done with a caller's own writes once their guard has held. What it throws is DynamoDB's refusal of them. */
export type ApplyWrites = (items: readonly TransactWriteItem[]) => void | Promise<void>;
