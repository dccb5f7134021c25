import { promisify } from "node:util";
import { LOCAL, type Locker, type LockerOptions } from "./locker.js";
import { requirePeer } from "./peers.js";

interface FailOpen {
  acquireLock(id: object, callback: (error: unknown, lock: Lock) => void): void;
}

interface Lock {
  on(event: "error", listener: () => void): void;
  release(callback: (error: unknown) => void): void;
}

/** `dynamodb-lock-client` in the form that survives its holders, on version 2 of the SDK. */
export async function openLockClient({ endpoint, tableName, leaseMs }: LockerOptions): Promise<Locker> {
  process.env.AWS_SDK_JS_SUPPRESS_MAINTENANCE_MODE_MESSAGE = "1";
  const { Agent } = await import("node:http");
  const { DynamoDB } = requirePeer("aws-sdk");
  const { FailOpen } = requirePeer("dynamodb-lock-client");
  const agent = new Agent({ keepAlive: true, maxSockets: 128 });
  const dynamodb = new DynamoDB.DocumentClient({ ...LOCAL, endpoint, maxRetries: 0, httpOptions: { agent } });
  const locks: FailOpen = new FailOpen({
    dynamodb,
    lockTable: tableName,
    partitionKey: "name",
    sortKey: "sort",
    leaseDurationMs: leaseMs,
    heartbeatPeriodMs: Math.floor(leaseMs / 2),
    trustLocalTime: true,
    retryCount: 1_000_000,
  });
  const acquire = promisify(locks.acquireLock.bind(locks));
  return {
    async lock(name) {
      const lock = (await acquire({ name, sort: "lock" })) as Lock;
      lock.on("error", () => undefined); // a lapse shows on the wire
      return () => promisify(lock.release.bind(lock))() as Promise<void>;
    },
    async close() {
      agent.destroy();
    },
  };
}
