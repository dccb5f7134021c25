/// <reference lib="esnext.disposable" preserve="true" />
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { LockTable } from "dynamutex";
import { DynamoDbLocalUnavailableError } from "./dynamodb-local.js";
import { endWithThisProcess } from "./end-with-this-process.js";
import { engineToUse } from "./engine.js";

const NAMES = ["a", "b", "c"];
const TABLE_NAME = process.env.TABLE_NAME ?? "locks";
const AT_MOST_MS = 50_000;

/**
 * Starts three hosts, shows what they print, and kills the one that ran last when half of the runs are over.
 *
 * @param program a host: its argument is its name, and it prints `NAME runs TICK` for each tick that it runs.
 * @returns the exit code: 0 if no tick ran twice, and the other two went on after the kill.
 */
export async function threeHosts(program: URL, { runs }: { readonly runs: number }): Promise<number> {
  try {
    await using _engine = await engineToUse();
    const seen = await watch(program, runs);
    const ticks = seen.map(({ tick }) => tick);
    const twice = ticks.filter((tick, index) => ticks.indexOf(tick) < index);
    const by = [...new Set(seen.map(({ host }) => host))].join(", ");
    console.log(`\n${ticks.length} ticks were run by ${by}; ${twice.length} of them twice${twice.map((t) => ` ${t}`)}`);
    return twice.length === 0 ? 0 : 1;
  } catch (error) {
    console.error(error instanceof DynamoDbLocalUnavailableError ? error.message : error);
    return 1;
  }
}

interface Run {
  readonly host: string;
  readonly tick: string;
}

/** @returns the first so many runs. @throws if they take too long. */
async function watch(program: URL, runs: number): Promise<readonly Run[]> {
  {
    await using locks = new LockTable({ tableName: TABLE_NAME });
    await locks.create();
  }
  const hosts = new Map(NAMES.map((name) => [name, start(program, name)]));
  const enough = new AbortController();
  const seen: Run[] = [];
  const note = (line: string): void => {
    console.log(line);
    const [host, tick] = /^(\w+) runs (\S+)$/.exec(line)?.slice(1) ?? [];
    if (host === undefined || tick === undefined || seen.length === runs) return;
    seen.push({ host, tick });
    if (seen.length === Math.floor(runs / 2)) {
      console.log(`${host} is killed`);
      hosts.get(host)?.kill("SIGKILL");
    }
    if (seen.length === runs) enough.abort();
  };
  for (const { stdout } of hosts.values()) if (stdout) createInterface({ input: stdout }).on("line", note);
  try {
    await sleep(AT_MOST_MS, undefined, { signal: enough.signal }).catch(() => undefined);
    if (seen.length < runs) throw new Error(`after ${AT_MOST_MS / 1_000} s there were ${seen.length} runs`);
    return seen;
  } finally {
    await Promise.all([...hosts.values()].map(end));
  }
}

function start(program: URL, name: string): ChildProcess {
  const child = spawn(process.execPath, [fileURLToPath(program), name], { stdio: ["ignore", "pipe", "inherit"] });
  child.once("exit", endWithThisProcess(child));
  return child;
}

/** Asks a host to end after what it does, and waits for that. */
async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, "exit");
  child.kill("SIGTERM");
  await exited;
}
