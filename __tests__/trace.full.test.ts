import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "@jest/globals";
import { OPERATIONS, type Trace } from "./trace/coverage.js";

test("the ways of lock(), of a renewal and of unlock() through the house stay short", async () => {
  const script = join(process.cwd(), ".jest", "__tests__", "trace", "main.js");
  const { stdout } = await promisify(execFile)(process.execPath, [script, "--json"]);
  const traces = JSON.parse(stdout) as readonly Trace[];
  const filesOf = (operation: string) =>
    traces.find((trace) => trace.operation === operation)?.files.map(({ file }) => file) ?? [];
  const most = { [OPERATIONS.lock]: 26, [OPERATIONS.renewal]: 14, [OPERATIONS.unlock]: 17 };
  const tooLong = Object.entries(most).filter(([operation, count]) => filesOf(operation).length > count);
  expect(tooLong.map(([operation]) => [operation, filesOf(operation)])).toEqual([]);
  // What did not run was not counted.
  for (const operation of Object.keys(most)) expect(filesOf(operation)).toContain("dynamodb/store.ts");
});
