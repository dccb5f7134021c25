import type { Units } from "./recorded-request.js";
import type { Reply } from "./reply.js";
import type { WireCapacity, WireRequest } from "./wire.js";

const NONE: Units = { read: 0, write: 0 };

/** The operations that tell their cost when they are asked. */
const METERED = /(Item|Items|Query|Scan|Statement|Transaction)$/;

/** Whether the proxy must ask for the cost itself, and take it out of the reply again. */
export function mustAskForUnits(operation: string, body: WireRequest): boolean {
  return METERED.test(operation) && (body.ReturnConsumedCapacity ?? "NONE") === "NONE";
}

export function addUnits(one: Units, other: Units): Units {
  return { read: one.read + other.read, write: one.write + other.write };
}

export function unitsOf(operation: string, body: WireRequest, reply: Reply): Units {
  if (reply.status !== 200) return refusalUnits(operation, body, reply);
  if (body.TransactItems !== undefined) return transactionUnits(operation, body);
  // DynamoDB Local does not tell; DynamoDB bills each statement like the same request by itself, a refused one too.
  if (Array.isArray(body.Statements)) return { read: 0, write: body.Statements.length };
  const capacity = reply.body.ConsumedCapacity;
  if (capacity === undefined) return NONE;
  const tables: readonly WireCapacity[] = Array.isArray(capacity) ? capacity : [capacity as WireCapacity];
  const units = tables.map((table) => tableUnits(isRead(operation, body), table)).reduce(addUnits, NONE);
  // A query that finds nothing is free on DynamoDB Local only.
  return operation === "Query" ? { read: Math.max(units.read, body.ConsistentRead ? 1 : 0.5), write: 0 } : units;
}

function tableUnits(read: boolean, capacity: WireCapacity): Units {
  const { CapacityUnits = 0, ReadCapacityUnits, WriteCapacityUnits } = capacity;
  if (ReadCapacityUnits !== undefined || WriteCapacityUnits !== undefined)
    return { read: ReadCapacityUnits ?? 0, write: WriteCapacityUnits ?? 0 };
  return read ? { read: CapacityUnits, write: 0 } : { read: 0, write: CapacityUnits };
}

/** DynamoDB Local reports those of one item, however many there are. These are for items of up to 1 kB. */
function transactionUnits(operation: string, { TransactItems = [] }: WireRequest): Units {
  const units = 2 * TransactItems.length;
  return operation === "TransactGetItems" ? { read: units, write: 0 } : { read: 0, write: units };
}

/** DynamoDB bills a refused condition like the write itself but, unlike a success, does not say so. */
function refusalUnits(operation: string, body: WireRequest, reply: Reply): Units {
  const type = reply.body.__type ?? "";
  if (type.endsWith("#ConditionalCheckFailedException")) return { read: 0, write: 1 };
  return type.endsWith("#TransactionCanceledException") ? transactionUnits(operation, body) : NONE;
}

function isRead(operation: string, body: WireRequest): boolean {
  if (operation.startsWith("Execute")) return /^\s*SELECT/i.test(String(body.Statement ?? ""));
  return /^(Get|Query|Scan|BatchGet|TransactGet)/.test(operation);
}
