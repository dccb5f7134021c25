/**
 * Three candidates, and this process, which observes who leads. The first leader is killed, the second one resigns.
 * `node main.js` shows who leads, and checks that each of the three did, one after the other.
 */

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { LockTable } from "dynamutex";
import { DynamoDbLocalUnavailableError } from "../support/dynamodb-local.js";
import { endWithThisProcess } from "../support/end-with-this-process.js";
import { engineToUse } from "../support/engine.js";

const NAMES = ["a", "b", "c"];
const TABLE_NAME = process.env.TABLE_NAME ?? "locks";
const AT_MOST_MS = 60_000;

try {
  process.exitCode = await play();
} catch (error) {
  console.error(error instanceof DynamoDbLocalUnavailableError ? error.message : error);
  process.exitCode = 1;
}

/** @returns the exit code: 0 if three processes have led, one after the other. */
async function play(): Promise<number> {
  await using _engine = await engineToUse();
  await using locks = new LockTable({ tableName: TABLE_NAME });
  await locks.create();
  const candidates = new Map(NAMES.map((name) => [name, start(name)]));
  const leaders: string[] = [];
  try {
    for await (const leader of locks
      .mutex("scheduler")
      .observe({ pollMs: 200, signal: AbortSignal.timeout(AT_MOST_MS) })) {
      console.log(`the observer sees that ${leader?.owner ?? "nobody"} leads`);
      if (leader === null) continue;
      leaders.push(leader.owner);
      if (leaders.length === NAMES.length) break;
      const isFirst = leaders.length === 1;
      console.log(`${leader.owner} is ${isFirst ? "killed" : "told to end"}`);
      candidates.get(leader.owner)?.kill(isFirst ? "SIGKILL" : "SIGTERM");
    }
  } finally {
    await Promise.all([...candidates.values()].map(end));
  }
  const isEach = new Set(leaders).size === NAMES.length;
  console.log(`\n${leaders.length} leaders, one after the other, each another process: ${isEach ? "yes" : "no"}`);
  return isEach ? 0 : 1;
}

function start(name: string): ChildProcess {
  const program = fileURLToPath(new URL("./candidate.js", import.meta.url));
  const child = spawn(process.execPath, [program, name], { stdio: ["ignore", "inherit", "inherit"] });
  child.once("exit", endWithThisProcess(child));
  return child;
}

/** Asks a candidate to end after what it does, and waits for that. */
async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, "exit");
  child.kill("SIGTERM");
  await exited;
}
