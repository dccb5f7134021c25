import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { expect, test } from "@jest/globals";
import { compiled } from "../../support/compiled.js";

const run = promisify(execFile);

test.each(["unused", "close"])("a process that makes tables without end keeps nothing of them: %s", async (how) => {
  const program = compiled(new URL("./hosts/tables.js", import.meta.url));
  const { stdout } = await run(process.execPath, ["--expose-gc", program, how]);
  // A weak reference is 60 bytes.
  expect(Number(stdout) / 20_000).toBeLessThan(30);
});
