import {
  CreateTableCommand,
  type CreateTableCommandInput,
  type TableDescription,
  UpdateTimeToLiveCommand,
} from "@aws-sdk/client-dynamodb";
import { LockStoreError } from "../../errors.js";
import type { CreateOptions, TableLayout } from "../../options/table.js";
import type { Requests } from "../../session/requests.js";
import { tableAdvice } from "../table-indexes.js";
import type { Transport } from "../transport.js";
import { isCausedBy, isNotImplemented } from "./admin-requests.js";
import { ControlPlane } from "./control-plane.js";
import { noTtl } from "./findings.js";

const DEFAULT_TIMEOUT_MS = 120_000;

/**
 * Makes sure that the table exists and fits the layout. It changes nothing that it did not make:
 *
 * 1. Describes it, and creates it if it does not exist. Another process may do so at the same moment.
 * 2. Waits until it is active.
 * 3. Compares its key and its indexes with the layout.
 * 4. Enables the TTL of a table that did not exist, and of another only if the caller asks for that: DynamoDB would delete items
 *    of an application whose attribute has the same name. An engine may have no TTL at all: a warning of the process says what
 *    that means.
 *
 * @throws {@link LockStoreError} that says how the table differs, or why it cannot be created.
 */
export async function createTable(
  transport: Transport,
  layout: TableLayout,
  { signal, timeoutMs = DEFAULT_TIMEOUT_MS, tags, enableTtl }: CreateOptions,
  requests: Requests,
): Promise<void> {
  const plane = new ControlPlane(transport, { tableName: layout.tableName, requests, signal, timeoutMs });
  const { table, isMade } = await activeTable(plane, layout, tags, () => transport.becameActive());
  const mismatch = tableAdvice(table, layout);
  if (mismatch !== undefined) throw new LockStoreError(mismatch);
  if (!isMade && !enableTtl) return;
  await switchTtlOn(plane, layout).catch((error: unknown) => {
    if (!isNotImplemented(error)) throw error;
    process.emitWarning(noTtl(layout.tableName), "DynamutexWarning");
  });
}

/** @returns also whether it was not there, so that this call has made it: the reply to the request that did may have been lost. */
async function activeTable(
  plane: ControlPlane,
  layout: TableLayout,
  tags: CreateOptions["tags"],
  onActive: () => void,
): Promise<{ readonly table: TableDescription; readonly isMade: boolean }> {
  for (let [isMade, wasActive] = [false, true]; ; wasActive = false) {
    const table = await plane.describeTable().catch((error: unknown) => {
      if (isCausedBy(error, "ResourceNotFoundException")) return undefined;
      throw error;
    });
    const status = table?.TableStatus;
    if (table === undefined || status === undefined) {
      if (isMade) await plane.pause("it does not show yet");
      await create(plane, layout, tags);
      isMade = true;
    } else if (status === "ACTIVE" || status === "UPDATING") {
      if (!wasActive) onActive();
      return { table, isMade };
    } else if (status === "CREATING" || status === "DELETING") await plane.pause(`it is ${status}`);
    else throw new LockStoreError(`Table ${layout.tableName} cannot be used: it is ${status}`);
  }
}

async function create(plane: ControlPlane, layout: TableLayout, tags: CreateOptions["tags"]): Promise<void> {
  const names = [layout.partition, layout.sort].filter((name) => name !== undefined);
  const input: CreateTableCommandInput = {
    TableName: layout.tableName,
    BillingMode: "PAY_PER_REQUEST",
    AttributeDefinitions: names.map((AttributeName) => ({ AttributeName, AttributeType: "S" })),
    KeySchema: names.map((AttributeName, index) => ({ AttributeName, KeyType: index === 0 ? "HASH" : "RANGE" })),
    ...(tags && { Tags: Object.entries(tags).map(([Key, Value]) => ({ Key, Value })) }),
  };
  const make = () => new CreateTableCommand(input);
  try {
    await plane.command("CreateTable", make);
  } catch (error) {
    // Another process has created it, or an attempt of ours whose reply was lost.
    if (!isCausedBy(error, "ResourceInUseException")) throw error;
  }
}

async function switchTtlOn(plane: ControlPlane, layout: TableLayout): Promise<void> {
  const TimeToLiveSpecification = { AttributeName: layout.ttl, Enabled: true };
  const make = () => new UpdateTimeToLiveCommand({ TableName: layout.tableName, TimeToLiveSpecification });
  let refusal: unknown;
  while (!(await isTtlEnabled(plane, layout))) {
    if (refusal !== undefined) throw refusal;
    try {
      await plane.command("UpdateTimeToLive", make);
      return;
    } catch (error) {
      // DynamoDB also refuses to enable a TTL that another process has just enabled: the next description shows it.
      if (isCausedBy(error, "ValidationException")) refusal = error;
      else if (!isCausedBy(error, "ResourceInUseException")) throw error;
      await plane.pause("its TTL is not on");
    }
  }
}

/** @throws {@link LockStoreError} if it is enabled for another attribute, or being disabled. */
async function isTtlEnabled(plane: ControlPlane, { tableName, ttl }: TableLayout): Promise<boolean> {
  const { TimeToLiveStatus: status, AttributeName: attribute } = (await plane.describeTtl()) ?? {};
  if (status === "DISABLING") {
    throw new LockStoreError(
      `The TTL of table ${tableName} is being switched off, which takes up to an hour: try again when that is done`,
    );
  }
  if (status !== "ENABLED" && status !== "ENABLING") return false;
  if (attribute === ttl) return true;
  throw new LockStoreError(
    `Table ${tableName} does not fit: its TTL attribute is ${attribute}, and the option keys.ttl says ${ttl}. ` +
      "It was left as it is: correct the option, or choose another table",
  );
}
