/**
 * A shop and two packers, and a queue between them. One packer dies in the middle of an order, and the queue delivers the message
 * to the other. `node main.js` shows who does what, and checks that each order was packed once.
 */

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { LockTable } from "dynamutex";
import { DynamoDbLocalUnavailableError } from "../support/dynamodb-local.js";
import { endWithThisProcess } from "../support/end-with-this-process.js";
import { engineToUse } from "../support/engine.js";

const TABLE_NAME = process.env.TABLE_NAME ?? "locks";

try {
  process.exitCode = await play();
} catch (error) {
  console.error(error instanceof DynamoDbLocalUnavailableError ? error.message : error);
  process.exitCode = 1;
}

/** @returns the exit code: 0 if each order was packed once. */
async function play(): Promise<number> {
  await using _engine = await engineToUse();
  {
    await using locks = new LockTable({ tableName: TABLE_NAME });
    await locks.create();
  }
  const queue: string[] = [];
  for (const order of ["order#1", "order#2"]) queue.push(...(await runs("shop.js", [order])));
  const [first = "", second = ""] = queue;

  // It dies with the order in its hand: the queue hears nothing, and delivers the message again.
  const packed = await runs("packer.js", ["packer-a", first], { killedAfter: /packs/ });
  packed.push(...(await runs("packer.js", ["packer-b", first])));
  packed.push(...(await runs("packer.js", ["packer-b", second])));

  const done = packed.filter((line) => line.includes("has packed"));
  console.log(`\n${done.length} orders were packed, each once: ${new Set(done).size === 2 ? "yes" : "no"}`);
  return done.length === 2 && new Set(done).size === 2 ? 0 : 1;
}

/** Runs a program to its end, or until it has printed a line like that. @returns what it printed. */
async function runs(
  program: string,
  args: readonly string[],
  { killedAfter }: { readonly killedAfter?: RegExp } = {},
): Promise<string[]> {
  const path = fileURLToPath(new URL(`./${program}`, import.meta.url));
  const child: ChildProcess = spawn(process.execPath, [path, ...args], { stdio: ["ignore", "pipe", "inherit"] });
  const release = endWithThisProcess(child);
  const exited = once(child, "exit");
  const printed: string[] = [];
  for await (const line of createInterface({ input: child.stdout as NonNullable<typeof child.stdout> })) {
    printed.push(line);
    console.log(line.startsWith("{") ? `shop sends ${line.slice(0, 60)}…` : line);
    if (killedAfter?.test(line)) {
      console.log(`${args[0]} is killed`);
      child.kill("SIGKILL");
    }
  }
  await exited;
  release();
  return printed;
}
