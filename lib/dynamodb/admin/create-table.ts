import {
  CreateTableCommand,
  DescribeTableCommand,
  DescribeTimeToLiveCommand,
  type DynamoDBClient,
  type TableDescription,
  type TimeToLiveDescription,
  UpdateTimeToLiveCommand,
} from "@aws-sdk/client-dynamodb";
import { LockStoreError } from "../../errors.js";
import type { CreateOptions, TableLayout } from "../../options/table.js";
import type { Clock } from "../../time/clock.js";
import { keyMismatch } from "../table-shape.js";
import { ControlPlane, isCausedBy, isInUse } from "./control-plane.js";

const DEFAULT_TIMEOUT_MS = 120_000;

/**
 * Makes sure that the table is there, fits the layout, and has its TTL switched on:
 *
 * 1. Looks for it; creates it where there is none. That somebody else does so at the same moment is fine.
 * 2. Waits until it can be used.
 * 3. Compares its key with the layout.
 * 4. Switches the TTL on, unless it is on already.
 *
 * @throws {@link LockStoreError} that says how the table differs, or why it cannot be made.
 */
export async function createTable(
  client: DynamoDBClient,
  layout: TableLayout,
  options: CreateOptions,
  clock: Clock,
): Promise<void> {
  const { signal, timeoutMs = DEFAULT_TIMEOUT_MS, tags } = options;
  const plane = new ControlPlane({ client, tableName: layout.tableName, clock, signal, timeoutMs });
  const mismatch = keyMismatch(await readyTable(plane, layout, tags), layout);
  if (mismatch !== undefined) {
    throw new LockStoreError(`${mismatch}. It was left as it is: correct the options, or choose another table`);
  }
  await switchTtlOn(plane, layout);
}

async function readyTable(
  plane: ControlPlane,
  layout: TableLayout,
  tags: CreateOptions["tags"],
): Promise<TableDescription> {
  for (;;) {
    const table = await describe(plane, layout);
    switch (table?.TableStatus) {
      case undefined:
        await create(plane, layout, tags);
        break;
      case "ACTIVE":
      case "UPDATING":
        return table as TableDescription;
      case "CREATING":
      case "DELETING":
        await plane.pause(`it is ${table?.TableStatus}`);
        break;
      default:
        throw new LockStoreError(`Table ${layout.tableName} cannot be used: it is ${table?.TableStatus}`);
    }
  }
}

async function describe(plane: ControlPlane, { tableName }: TableLayout): Promise<TableDescription | undefined> {
  try {
    const input = { TableName: tableName };
    const { Table } = await plane.ask("DescribeTable", (client, options) =>
      client.send(new DescribeTableCommand(input), options),
    );
    return Table;
  } catch (error) {
    if (isCausedBy(error, "ResourceNotFoundException")) return undefined;
    throw error;
  }
}

async function create(
  plane: ControlPlane,
  { tableName, partition, sort }: TableLayout,
  tags: CreateOptions["tags"],
): Promise<void> {
  const names = sort === undefined ? [partition] : [partition, sort];
  const command = new CreateTableCommand({
    TableName: tableName,
    BillingMode: "PAY_PER_REQUEST",
    AttributeDefinitions: names.map((AttributeName) => ({ AttributeName, AttributeType: "S" })),
    KeySchema: names.map((AttributeName, index) => ({ AttributeName, KeyType: index === 0 ? "HASH" : "RANGE" })),
    ...(tags && { Tags: Object.entries(tags).map(([Key, Value]) => ({ Key, Value })) }),
  });
  try {
    await plane.ask("CreateTable", (client, options) => client.send(command, options));
  } catch (error) {
    // Somebody else was first, or our own first attempt whose reply was lost.
    if (!isInUse(error)) throw error;
    await plane.pause("it does not show yet");
  }
}

async function switchTtlOn(plane: ControlPlane, layout: TableLayout): Promise<void> {
  const TimeToLiveSpecification = { AttributeName: layout.ttl, Enabled: true };
  const command = new UpdateTimeToLiveCommand({ TableName: layout.tableName, TimeToLiveSpecification });
  let refusal: unknown;
  while (!isTtlOn(await describeTtl(plane, layout), layout)) {
    if (refusal !== undefined) throw refusal;
    try {
      await plane.ask("UpdateTimeToLive", (client, options) => client.send(command, options));
      return;
    } catch (error) {
      // Either somebody else was first, which another look shows, or there is nothing to be done.
      if (isCausedBy(error, "ValidationException")) refusal = error;
      else if (!isInUse(error)) throw error;
      await plane.pause("its TTL is not on");
    }
  }
}

async function describeTtl(
  plane: ControlPlane,
  { tableName }: TableLayout,
): Promise<TimeToLiveDescription | undefined> {
  const command = new DescribeTimeToLiveCommand({ TableName: tableName });
  const reply = await plane.ask("DescribeTimeToLive", (client, options) => client.send(command, options));
  return reply.TimeToLiveDescription;
}

/** @throws {@link LockStoreError} if it is on for another attribute, or on its way out. */
function isTtlOn(description: TimeToLiveDescription | undefined, { tableName, ttl }: TableLayout): boolean {
  const { TimeToLiveStatus: status, AttributeName: attribute } = description ?? {};
  switch (status) {
    case "ENABLED":
    case "ENABLING":
      if (attribute === ttl) return true;
      throw new LockStoreError(
        `Table ${tableName} does not fit: its TTL attribute is ${attribute}, and the option keys.ttl says ${ttl}. ` +
          "It was left as it is: correct the option, or choose another table",
      );
    case "DISABLING":
      throw new LockStoreError(
        `The TTL of table ${tableName} is being switched off, which takes up to an hour: try again when that is done`,
      );
    default:
      return false;
  }
}
