import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "@jest/globals";
import type { Operation, TracedFiles } from "./main.js";

/**
 * Four of each are about the network: each attempt, the client, its pool, and whose reply it is. Two are a call and its requests. One of
 * a renewal is that a release may end its attempt.
 */
const MOST: Readonly<Record<Operation, number>> = { "lock()": 32, "a renewal": 21, "unlock()": 24 };

test("the ways of lock(), of a renewal and of unlock() through the house stay short", async () => {
  const script = join(process.cwd(), ".jest", "__tests__", "proof", "trace", "main.js");
  const { stdout } = await promisify(execFile)(process.execPath, [script, "--json"]);
  const traces: Record<Operation, TracedFiles> = JSON.parse(stdout);
  const ways = Object.entries(MOST).map(([operation, most]) => ({ files: traces[operation as Operation], most }));
  expect(ways.filter(({ files, most }) => Object.keys(files).length > most)).toEqual([]);
  // What did not run was not counted.
  for (const { files } of ways) expect(files).toHaveProperty(["dynamodb/store.ts"]);
});
