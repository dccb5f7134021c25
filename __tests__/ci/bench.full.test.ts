import { spawnSync } from "node:child_process";
import { expect, test } from "@jest/globals";
import { compiled } from "../support/compiled.js";

test("the bench starts, and says which workloads there are where it is asked for one that there is not", () => {
  const program = compiled(new URL("../../bench/main.js", import.meta.url));
  const { status, stdout, stderr } = spawnSync(process.execPath, [program, "--only", "none"], { encoding: "utf8" });
  expect({ status, stdout }).toEqual({ status: 1, stdout: "" });
  expect(stderr).toMatch(/^There is no workload none: choose of uncontended, /m);
});
