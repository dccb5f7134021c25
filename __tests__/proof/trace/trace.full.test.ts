import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "@jest/globals";
import type { Operation, TracedFiles } from "./main.js";

test("says which functions of lib/ run in lock(), in a renewal and in unlock()", async () => {
  const script = join(process.cwd(), ".jest", "__tests__", "proof", "trace", "main.js");
  const { stdout } = await promisify(execFile)(process.execPath, [script, "--json"]);
  const traces: Record<Operation, TracedFiles> = JSON.parse(stdout);
  expect(Object.keys(traces)).toEqual(["lock()", "a renewal", "unlock()"]);
  for (const files of Object.values(traces)) expect(files).toHaveProperty(["dynamodb/store.ts"]);
});
