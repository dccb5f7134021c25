import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "@jest/globals";
import type { Operation, TracedFiles } from "./trace/main.js";

const MOST: Readonly<Record<Operation, number>> = { "lock()": 26, "a renewal": 14, "unlock()": 18 };

test("the ways of lock(), of a renewal and of unlock() through the house stay short", async () => {
  const script = join(process.cwd(), ".jest", "__tests__", "trace", "main.js");
  const { stdout } = await promisify(execFile)(process.execPath, [script, "--json"]);
  const traces: Record<Operation, TracedFiles> = JSON.parse(stdout);
  const ways = Object.entries(MOST).map(([operation, most]) => ({ files: traces[operation as Operation], most }));
  expect(ways.filter(({ files, most }) => Object.keys(files).length > most)).toEqual([]);
  // What did not run was not counted.
  for (const { files } of ways) expect(files).toHaveProperty(["dynamodb/store.ts"]);
});
