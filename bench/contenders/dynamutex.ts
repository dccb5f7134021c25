import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { LockTable, type LockTableOptions } from "dynamutex";
import { clientConfig, type Locker, type LockerOptions } from "./locker.js";

/** This library as it is, with one mutex for a name. */
export async function openDynamutex(
  { endpoint, tableName, leaseMs, poll, clockWrongByMs }: LockerOptions,
  options: Partial<LockTableOptions> = {},
): Promise<Locker> {
  if (clockWrongByMs !== undefined) setClockWrong(clockWrongByMs);
  const client = new DynamoDBClient(clientConfig(endpoint));
  const table = new LockTable({
    tableName,
    client,
    ttlMs: leaseMs,
    ...(poll === undefined ? {} : { poll }),
    ...options,
  });
  return {
    async lock(name) {
      const lock = await table.mutex(name).lock();
      return () => lock.unlock();
    },
    async close() {
      await table.close();
      client.destroy();
    },
  };
}

/** A host whose clock is wrong, as this whole process sees it. */
function setClockWrong(byMs: number): void {
  const right = Date.now;
  Date.now = () => right() + byMs;
}
