import { randomUUID } from "node:crypto";
import { startDynamoDbLocal } from "../../examples/support/dynamodb-local.js";
import { LockTable } from "../../lib/index.js";
import { Coverage, OPERATIONS, type Trace } from "./coverage.js";

/**
 * `npm run trace`: the files of lib/ whose functions run in a warm, uncontended `lock()`, in a renewal and in `unlock()`, by
 * the engine's own count of calls. With `--json`, as one line of JSON.
 */
async function main(): Promise<void> {
  const isJson = process.argv.includes("--json");
  const engine = process.env.DYNAMODB_ENDPOINT === undefined ? await startDynamoDbLocal() : undefined;
  // The library's own client, as a user has it.
  process.env.AWS_ENDPOINT_URL_DYNAMODB = engine?.endpoint ?? process.env.DYNAMODB_ENDPOINT;
  process.env.AWS_REGION = "us-east-1";
  process.env.AWS_ACCESS_KEY_ID = "trace";
  process.env.AWS_SECRET_ACCESS_KEY = "trace";
  try {
    const traces = await trace();
    console.log(isJson ? JSON.stringify(traces) : traces.map(textOf).join("\n\n"));
  } finally {
    await engine?.stop();
  }
}

async function trace(): Promise<readonly Trace[]> {
  await using locks = new LockTable({ tableName: `trace-${randomUUID()}`, ttlMs: 3_000 });
  await locks.create();
  const mutex = locks.mutex("traced");
  // Warm: the time is known, the connection is open, and every module has been read.
  for (let cycle = 0; cycle < 3; cycle += 1) await (await mutex.lock()).unlock();
  const coverage = await Coverage.start();
  const lock = await mutex.lock();
  await settle();
  const locking = await coverage.take();
  const { expires } = lock;
  // A renewal by itself, at half of the lease.
  while (lock.expires.getTime() === expires.getTime()) await new Promise((resolve) => setTimeout(resolve, 20));
  const renewal = await coverage.take((name) => name !== "get expires");
  await lock.unlock();
  await settle();
  const unlocking = await coverage.take();
  return [
    { operation: OPERATIONS.lock, files: locking },
    { operation: OPERATIONS.renewal, files: renewal },
    { operation: OPERATIONS.unlock, files: unlocking },
  ];
}

/** What an operation has left for the next turn of the event loop belongs to it. */
function settle(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

function textOf({ operation, files }: Trace): string {
  const lines = files.map(({ file, functions }) => `  ${file}: ${functions.join(", ")}`);
  return [`${operation}: functions of ${files.length} files`, ...lines].join("\n");
}

main().catch((error: unknown) => {
  console.error(error);
  process.exitCode = 1;
});
