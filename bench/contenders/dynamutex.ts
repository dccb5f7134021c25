import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { type Lockable, LockTable, type LockTableOptions } from "dynamutex";
import { clientConfig, LOCAL, type Locker, type LockerOptions } from "./locker.js";

/** This library as it is, with one mutex for a name, on the client that it makes from the environment. */
export async function openDynamutex(
  options: LockerOptions,
  tableOptions: Partial<LockTableOptions> = {},
): Promise<Locker> {
  useEnvironment(options);
  return open(LockTable, options, tableOptions);
}

/** The same of another checkout, which `BENCH_BEFORE` names and which was built: what this one is measured against. */
export async function openBefore(options: LockerOptions): Promise<Locker> {
  useEnvironment(options);
  const entry = pathToFileURL(join(process.env.BENCH_BEFORE ?? "", "dist", "index.mjs"));
  const before: typeof import("dynamutex") = await import(entry.href);
  return open(before.LockTable, options, {});
}

function useEnvironment(options: LockerOptions): void {
  process.env.AWS_ENDPOINT_URL_DYNAMODB = options.endpoint;
  process.env.AWS_REGION = LOCAL.region;
  process.env.AWS_ACCESS_KEY_ID = LOCAL.credentials.accessKeyId;
  process.env.AWS_SECRET_ACCESS_KEY = LOCAL.credentials.secretAccessKey;
  for (const other of ["AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS"]) {
    delete process.env[other];
  }
}

/** The same on a client of the caller's, as everybody's is. */
export async function openShared(options: LockerOptions): Promise<Locker> {
  const client = new DynamoDBClient(clientConfig(options.endpoint));
  const locker = open(LockTable, options, { client });
  return {
    ...locker,
    async close() {
      await locker.close();
      client.destroy();
    },
  };
}

function open(Table: typeof LockTable, lockerOptions: LockerOptions, options: Partial<LockTableOptions>): Locker {
  const { tableName, leaseMs, poll, clockWrongByMs } = lockerOptions;
  if (clockWrongByMs !== undefined) setClockWrong(clockWrongByMs);
  const table = new Table({
    tableName,
    ttlMs: leaseMs,
    ...(poll === undefined ? {} : { poll }),
    ...options,
  });
  return {
    async lock(name) {
      const lock = await lockableOf(table, name, lockerOptions).lock();
      return () => lock.unlock();
    },
    close: () => table.close(),
  };
}

function lockableOf(table: LockTable, name: string, { permits, side }: LockerOptions): Lockable {
  if (permits !== undefined) return table.semaphore(name, { permits });
  return side === undefined ? table.mutex(name) : table.sharedMutex(name)[side];
}

/** A host whose clock is wrong, as this whole process sees it. */
function setClockWrong(byMs: number): void {
  const right = Date.now;
  Date.now = () => right() + byMs;
}
