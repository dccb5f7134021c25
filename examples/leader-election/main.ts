/**
 * Three candidates, and this process, which observes who leads. The first leader is killed, the second one resigns.
 * `node main.js` shows who leads, and checks that each of the three did, one after the other.
 */

import { LockTable } from "dynamutex";
import { Program } from "../support/program.js";
import { runExample } from "../support/run-example.js";

const NAMES = ["a", "b", "c"];

await runExample(async () => {
  await using locks = new LockTable({ tableName: process.env.TABLE_NAME ?? "locks" });
  await locks.create();
  await using a = candidate("a");
  await using b = candidate("b");
  await using c = candidate("c");
  const candidates = new Map(NAMES.map((name, index) => [name, [a, b, c][index]]));
  const leaders: string[] = [];
  for await (const leader of locks.mutex("scheduler").observe({ pollMs: 200 })) {
    console.log(`the observer sees that ${leader?.owner ?? "nobody"} leads`);
    if (leader === null) continue;
    leaders.push(leader.owner);
    if (leaders.length === NAMES.length) break;
    const isFirst = leaders.length === 1;
    console.log(`${leader.owner} is ${isFirst ? "killed" : "told to end"}`);
    candidates.get(leader.owner)?.kill(isFirst ? "SIGKILL" : "SIGTERM");
  }
  const isEach = new Set(leaders).size === NAMES.length;
  console.log(`\n${leaders.length} leaders, one after the other, each another process: ${isEach ? "yes" : "no"}`);
  return isEach;
});

function candidate(name: string): Program {
  return new Program(new URL("./candidate.js", import.meta.url), [name]);
}
