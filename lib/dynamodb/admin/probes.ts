import { LockStoreError } from "../../errors.js";
import type { TableLayout } from "../../options/table.js";
import { lockAt } from "../../protocol/addresses.js";
import type { BatchReport, TableAction } from "../../table-report.js";
import { itemKey } from "../compile.js";
import { type Stated, statedBy, statementOf } from "../statements.js";
import { commandOf, type ItemRequest, type Reply } from "../transport.js";
import { isCausedBy, isNotImplemented } from "./admin-requests.js";
import type { ControlPlane } from "./control-plane.js";

/** How a table answered one request that changes nothing. */
export type Probe<Found = unknown> =
  | { readonly kind: "allowed"; readonly found: Found | undefined }
  /**
   * `refused`: a permission is missing. `missing`: the table does not exist. `unknown`: refused for a reason that does not tell
   * whether the action is allowed.
   */
  | { readonly kind: "refused" | "missing" | "unknown"; readonly found?: undefined; readonly cause: Error };

/** The name of no lock. A lock that has it all the same is not changed. */
const PROBED_NAME = "dynamutex#check";

/** No item fulfils this, so no write is applied. DynamoDB checks permissions before conditions. */
const NEVER = "attribute_exists(#name) AND attribute_not_exists(#name)";

/** Tries each action on items: four writes and a transaction whose condition never holds, and three small reads. */
export async function probeItems(plane: ControlPlane, layout: TableLayout): Promise<(readonly [TableAction, Probe])[]> {
  const { partition, sort, tableName: TableName } = layout;
  const Key = itemKey(layout, lockAt(PROBED_NAME));
  const ExpressionAttributeNames = { "#name": partition };
  const never = { TableName, ConditionExpression: NEVER, ExpressionAttributeNames };
  const query = {
    TableName,
    KeyConditionExpression: "#name = :name",
    ExpressionAttributeNames,
    ExpressionAttributeValues: { ":name": Key[partition] as { S: string } },
    Limit: 1,
  };
  const check = { ConditionCheck: { ...never, Key } };
  const requests: readonly (readonly [TableAction, ItemRequest])[] = [
    ["GetItem", ["GetItem", { TableName, Key }]],
    ["PutItem", ["PutItem", { ...never, Item: Key }]],
    ["UpdateItem", ["UpdateItem", { ...never, Key }]],
    ["DeleteItem", ["DeleteItem", { ...never, Key }]],
    ...(sort === undefined ? [] : [["Query", ["Query", query]] as const]),
    ["Scan", ["Scan", { TableName, Limit: 1 }]],
    ["ConditionCheckItem", ["TransactWriteItems", { TransactItems: [check] }]],
  ];
  return await Promise.all(
    requests.map(async ([action, request]) => [action, await probe(sent(plane, action, request))] as const),
  );
}

function sent(plane: ControlPlane, action: string, request: ItemRequest): Promise<Reply> {
  return plane.command(action, () => commandOf(request)) as Promise<Reply>;
}

/** Tries a batch of one renewal, which nothing fulfils. A batch is never needed, so nothing that it fails of is a problem. */
export async function probeBatches(plane: ControlPlane, layout: TableLayout): Promise<BatchReport> {
  const uuid = PROBED_NAME;
  const renewal = { kind: "renew", at: lockAt(PROBED_NAME), uuid, expires: 1, remembers: "nothing" } as const;
  const request: ItemRequest = ["BatchExecuteStatement", { Statements: [statementOf(layout, renewal)] }];
  let stated: Stated;
  try {
    const reply = await sent(plane, "PartiQLUpdate", request);
    stated = statedBy(reply?.Responses?.[0], layout.tableName);
  } catch (error) {
    if (!(error instanceof LockStoreError)) throw error;
    stated = { kind: "failed", error };
  }
  if (stated.kind !== "failed") return { usable: true, advice: undefined };
  const advice =
    `Locks of table ${layout.tableName} are renewed one by one: with the permission dynamodb:PartiQLUpdate, a process that ` +
    `holds eight or more renews up to 25 in a request, at the same price (${stated.error.message})`;
  return { usable: false, advice };
}

/** @throws {@link LockStoreError} if the failure tells nothing about the table: no answer, or unknown credentials. */
export async function probe<Found>(request: Promise<Found>): Promise<Probe<Found>> {
  try {
    return { kind: "allowed", found: await request };
  } catch (error) {
    const cause = error as Error;
    if (isCausedBy(error, "ConditionalCheckFailedException", "TransactionCanceledException")) {
      return { kind: "allowed", found: undefined };
    }
    if (isCausedBy(error, "AccessDeniedException", "AccessDenied")) return { kind: "refused", cause };
    if (isCausedBy(error, "ResourceNotFoundException")) return { kind: "missing", cause };
    if (isNotImplemented(error)) return { kind: "unknown", cause };
    // For example, the key does not fit, or a global table with strong consistency refuses a transaction.
    if (isCausedBy(error, "ValidationException")) return { kind: "unknown", cause };
    throw error;
  }
}
