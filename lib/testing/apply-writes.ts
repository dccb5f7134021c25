// In a file of its own: the public declarations refer to it, and not to the table in memory.
import type { TransactWriteItem } from "@aws-sdk/client-dynamodb";

/**
 * What is done with a caller's own writes once their guard has held. What it throws is DynamoDB's refusal of them. It is
 * synchronous, because a transaction is one instant: nobody may take the lock between the guard and the writes.
 */
export type ApplyWrites = (items: readonly TransactWriteItem[]) => void;
