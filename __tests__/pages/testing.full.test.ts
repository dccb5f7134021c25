import { execFile } from "node:child_process";
import { cp, mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "@jest/globals";

const run = promisify(execFile);
const ROOT = process.cwd();
const EXAMPLES = join(ROOT, "examples", "testing");

test("the example for node:test passes", async () => {
  const { NODE_TEST_CONTEXT: _, ...env } = process.env;
  const { stdout } = await run(
    process.execPath,
    ["--test", "--test-reporter=tap", join(EXAMPLES, "report.node.test.mjs")],
    { env },
  );
  expect(stdout).toMatch(/^# pass 7$/m);
});

test("dynamutex/testing works where the SDK's client is not installed", async () => {
  const folder = await mkdtemp(join(tmpdir(), "dynamutex-testing-"));
  try {
    const installed = join(folder, "node_modules", "dynamutex");
    await mkdir(installed, { recursive: true });
    for (const part of ["package.json", "dist"]) await cp(join(ROOT, part), join(installed, part), { recursive: true });
    for (const name of ["@aws-sdk/util-dynamodb", "tslib"]) {
      await cp(join(ROOT, "node_modules", name), join(folder, "node_modules", name), { recursive: true });
    }
    const program = `
      import { createRequire } from "node:module";
      import { TestTable } from "dynamutex/testing";
      const table = new TestTable();
      console.log(await table.host().mutex("report").run(({ owner }) => owner));
      // On Node 20, an import() whose CommonJS file requires what is not there ends the process.
      try { createRequire(import.meta.url)("dynamutex"); } catch ({ code }) { console.log(code); }`;
    const { stdout } = await run(process.execPath, ["--input-type=module", "-e", program], { cwd: folder });
    expect(stdout).toBe("host-1\nMODULE_NOT_FOUND\n");
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});
