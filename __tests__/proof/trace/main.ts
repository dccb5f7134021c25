import { randomUUID } from "node:crypto";
import { type Profiler, Session } from "node:inspector/promises";
import { setImmediate as settle, setTimeout as sleep } from "node:timers/promises";
import { startDynamoDbLocal } from "../../../examples/support/dynamodb-local.js";
import { LockTable } from "../../../lib/index.js";
import { clientEnv, testEndpoint } from "../../support/endpoint.js";

/** The functions that ran, by file. */
export type TracedFiles = Readonly<Record<string, readonly string[]>>;

export type Operation = "lock()" | "a renewal" | "unlock()";

const IN_LIB = /\/lib\/((?:[\w-]+\/)*[\w-]+)\.js$/;

/**
 * `npm run proof -- trace`: the files of lib/ whose functions run in a warm, uncontended `lock()`, in a renewal and in `unlock()`, by
 * the engine's own count of calls. With `--json`, as one line of JSON.
 */
const engine = process.env.DYNAMODB_ENDPOINT === undefined ? await startDynamoDbLocal() : undefined;
// The library's own client, as a user has it.
Object.assign(process.env, clientEnv(engine?.endpoint ?? testEndpoint()));
const traces = await trace().finally(() => engine?.stop());
if (process.argv.includes("--json")) console.log(JSON.stringify(traces));
else for (const [operation, files] of Object.entries(traces)) print(operation, files);

async function trace(): Promise<Record<Operation, TracedFiles>> {
  await using locks = new LockTable({ tableName: `trace-${randomUUID()}`, ttlMs: 3_000 });
  await locks.create();
  const mutex = locks.mutex("traced");
  // Warm: the time is known, the connection is open, and every module has been read.
  for (let cycle = 0; cycle < 3; cycle += 1) await (await mutex.lock()).unlock();
  const session = new Session();
  session.connect();
  await session.post("Profiler.enable");
  await session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: false });
  await ranIn(session);
  const lock = await mutex.lock();
  // What an operation has left for the next turn of the event loop belongs to it.
  await settle();
  const locking = await ranIn(session);
  const { expires } = lock;
  // A renewal by itself, at half of the lease.
  while (lock.expires.getTime() === expires.getTime()) await sleep(20);
  const renewal = await ranIn(session, (name) => name !== "get expires");
  await lock.unlock();
  await settle();
  return { "lock()": locking, "a renewal": renewal, "unlock()": await ranIn(session) };
}

/** Which functions of lib/ ran since it was asked last. @param counts whether a function of this name counts. */
async function ranIn(session: Session, counts: (name: string) => boolean = () => true): Promise<TracedFiles> {
  const taken = await session.post("Profiler.takePreciseCoverage");
  const { result } = taken as { readonly result: readonly Profiler.ScriptCoverage[] };
  const files = result.flatMap(({ url, functions }) => {
    const file = url.includes("node_modules") ? undefined : IN_LIB.exec(url)?.[1];
    const ran = functions.filter(({ ranges }) => (ranges[0]?.count ?? 0) > 0);
    const names = new Set(ran.map(({ functionName }) => functionName || "(a function without a name)"));
    const named = [...names].filter(counts);
    return file === undefined || named.length === 0 ? [] : [[`${file}.ts`, named] as const];
  });
  return Object.fromEntries(files.sort(([one], [other]) => (one < other ? -1 : 1)));
}

function print(operation: string, files: TracedFiles): void {
  console.log(`${operation}: functions of ${Object.keys(files).length} files`);
  for (const [file, functions] of Object.entries(files)) console.log(`  ${file}: ${functions.join(", ")}`);
}
