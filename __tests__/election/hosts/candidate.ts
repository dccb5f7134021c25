import { setTimeout as sleep } from "node:timers/promises";
import { DynamoDBClient, GetItemCommand, type TransactWriteItem } from "@aws-sdk/client-dynamodb";
import { findLockLost, type Lock, LockTable, type MutexOptions } from "../../../lib/index.js";
import { hostConfig, report } from "../../support/host-process.js";

export interface CandidateConfig {
  readonly tableName: string;
  readonly name: string;
  readonly owner: string;
  readonly mutex: MutexOptions;
}

/** What a candidate tells of. */
export type CandidateMessage =
  | { readonly kind: "leading"; readonly uuid: string; readonly acquired: number }
  | { readonly kind: "wrote"; readonly uuid: string; readonly version: number }
  /** Somebody else has written while this one led. */
  | { readonly kind: "conflict"; readonly uuid: string; readonly error: string };

const { tableName, name, owner, mutex } = hostConfig<CandidateConfig>();
const client = new DynamoDBClient();
await using locks = new LockTable({ tableName, owner, ...mutex });
const tell = (message: CandidateMessage): void => report(message);

/** The end of the log, under a key that is no lock's. */
const HEAD = { name: { S: `${name}-log` }, sort: { S: "head" } };

await locks.mutex(name).elect(async (lock) => {
  const { uuid } = lock;
  tell({ kind: "leading", uuid, acquired: lock.acquired.getTime() });
  // Read once: whoever else writes while this one leads is found out by the next line.
  let version = await lastVersion();
  for (; !lock.signal.aborted; await sleep(20)) {
    await append(lock, version + 1);
    version += 1;
    tell({ kind: "wrote", uuid, version });
  }
}).done;

async function lastVersion(): Promise<number> {
  const { Item } = await client.send(new GetItemCommand({ TableName: tableName, Key: HEAD, ConsistentRead: true }));
  return Number(Item?.version?.N ?? 0);
}

/** Puts a line after the one that this leader has put or found last. */
async function append(lock: Lock, version: number): Promise<void> {
  const line = { name: HEAD.name, sort: { S: `line#${String(version).padStart(6, "0")}` }, uuid: { S: lock.uuid } };
  const values = { ":next": { N: `${version}` }, ":last": { N: `${version - 1}` } };
  const items: TransactWriteItem[] = [
    {
      Update: {
        TableName: tableName,
        Key: HEAD,
        UpdateExpression: "SET version = :next",
        ConditionExpression: version === 1 ? "attribute_not_exists(version) OR version = :last" : "version = :last",
        ExpressionAttributeValues: values,
      },
    },
    { Put: { TableName: tableName, Item: line, ConditionExpression: "attribute_not_exists(sort)" } },
  ];
  try {
    await lock.transactWrite(items);
  } catch (error) {
    if (findLockLost(error) === undefined) tell({ kind: "conflict", uuid: lock.uuid, error: String(error) });
    throw error;
  }
}
