import type { Units } from "./recorded-request.js";
import type { Reply } from "./reply.js";
import type { WireRequest } from "./wire.js";

/** Whether the proxy must ask for the cost itself, and take it out of the reply again. */
export function mustAskForUnits(operation: string, { ReturnConsumedCapacity = "NONE" }: WireRequest): boolean {
  return /^(GetItem|PutItem|UpdateItem|DeleteItem|Query|Scan)$/.test(operation) && ReturnConsumedCapacity === "NONE";
}

export function addUnits(one: Units, other: Units): Units {
  return { read: one.read + other.read, write: one.write + other.write };
}

/** What a request cost, for items of up to 1 kB. */
export function unitsOf(operation: string, body: WireRequest, reply: Reply): Units {
  const { TransactItems = [], Statements, ConsistentRead } = body;
  const written = (write: number): Units => ({ read: 0, write });
  const refusal = reply.body.__type ?? "";
  // DynamoDB bills a refused condition like the write itself but, unlike a success, does not say so.
  if (refusal.endsWith("#ConditionalCheckFailedException")) return written(1);
  // DynamoDB Local reports the units of one item of a transaction, however many there are.
  const isBilled = reply.status === 200 || refusal.endsWith("#TransactionCanceledException");
  if (TransactItems.length > 0) return written(isBilled ? 2 * TransactItems.length : 0);
  // It does not tell those of statements; DynamoDB bills each like the same request by itself, a refused one too.
  if (Array.isArray(Statements)) return written(isBilled ? Statements.length : 0);
  const { CapacityUnits = 0 } = (reply.body.ConsumedCapacity ?? {}) as { readonly CapacityUnits?: number };
  // A query that finds nothing is free on DynamoDB Local only.
  const least = operation === "Query" && isBilled ? (ConsistentRead ? 1 : 0.5) : 0;
  const isRead = /^(Get|Query|Scan)/.test(operation);
  return isRead ? { read: Math.max(CapacityUnits, least), write: 0 } : written(CapacityUnits);
}
