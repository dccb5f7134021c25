/**
 * A shop and two packers, and a queue between them. One packer dies in the middle of an order, and the queue delivers the message
 * to the other. `node main.js` shows who does what, and checks that each order was packed once.
 */

import { LockTable } from "dynamutex";
import { Program } from "../support/program.js";
import { runExample } from "../support/run-example.js";

await runExample(async () => {
  {
    await using locks = new LockTable({ tableName: process.env.TABLE_NAME ?? "locks" });
    await locks.create();
  }
  const queue: string[] = [];
  for (const order of ["order#1", "order#2"]) queue.push(...(await runs("shop.js", [order])));
  const [first = "", second = ""] = queue;

  // It dies while it packs the order: the queue hears nothing, and delivers the message again.
  const packed = await runs("packer.js", ["packer-a", first], { killedAfter: /packs/ });
  packed.push(...(await runs("packer.js", ["packer-b", first])));
  packed.push(...(await runs("packer.js", ["packer-b", second])));

  const done = packed.filter((line) => line.includes("has packed"));
  const isRight = done.length === 2 && new Set(done).size === 2;
  console.log(`\n${done.length} orders were packed, each once: ${isRight ? "yes" : "no"}`);
  return isRight;
});

/** Runs a program to its end, or until it has printed a line like that. @returns what it printed. */
async function runs(
  program: string,
  args: readonly string[],
  { killedAfter }: { readonly killedAfter?: RegExp } = {},
): Promise<string[]> {
  const printed: string[] = [];
  const onLine = (line: string): void => {
    printed.push(line);
    console.log(line.startsWith("{") ? `shop sends ${line.slice(0, 60)}…` : line);
    if (!killedAfter?.test(line)) return;
    console.log(`${args[0]} is killed`);
    running.kill("SIGKILL");
  };
  await using running = new Program(new URL(`./${program}`, import.meta.url), args, { onLine });
  await running.exited;
  return printed;
}
