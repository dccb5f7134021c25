/**
 * One of several processes of which one leads. `node candidate.js NAME`
 *
 * A leader counts its turns in a row of the table, by a write that DynamoDB applies only while the lock is held: a process that
 * was frozen, and wakes when another leads, changes nothing.
 */

import { setTimeout as sleep } from "node:timers/promises";
import { type Lock, LockTable } from "dynamutex";

const name = process.argv[2] ?? "a";
const TableName = process.env.TABLE_NAME ?? "locks";
const locks = new LockTable({ tableName: TableName, owner: name, ttlMs: 2_000 });

const election = locks.mutex("scheduler").elect(lead, { data: { pid: process.pid } });

// Whoever leads ends its turn, and the next one leads at once.
async function stop(): Promise<void> {
  await election.resign();
  await locks.close();
}
process.on("SIGTERM", stop).on("SIGINT", stop);

async function lead(lock: Lock): Promise<void> {
  console.log(`${name} leads`);
  while (!lock.signal.aborted) {
    await lock.transactWrite([
      {
        Update: {
          TableName,
          Key: { name: { S: "scheduler-turns" }, sort: { S: "count" } },
          UpdateExpression: "ADD turns :one",
          ExpressionAttributeValues: { ":one": { N: "1" } },
        },
      },
    ]);
    await sleep(200);
  }
  console.log(`${name} ends its turn`);
}
