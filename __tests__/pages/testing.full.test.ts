import { execFile } from "node:child_process";
import { cp, mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "@jest/globals";
import { blocksOf, pageAt } from "../support/pages.js";

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

test("the test of the page for Jest passes, in Jest's default set-up", async () => {
  const shown = blocksOf(pageAt("docs/guides/testing.md")).find(({ text }) => text.includes("jest.mock("))?.text ?? "";
  const folder = await mkdtemp(join(tmpdir(), "dynamutex-jest-"));
  try {
    await mkdir(join(folder, "node_modules"));
    await symlink(ROOT, join(folder, "node_modules", "dynamutex"), "junction");
    const files = {
      "package.json": "{}",
      "locks.js": 'throw new Error("the test replaces this module");',
      "report.js": `const { locks } = require("./locks.js");
exports.report = () => locks.mutex("report").run(() => "built", { waitMs: 5_000 });`,
      "report.test.js": shown,
    };
    for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text);
    const { stderr } = await run(process.execPath, [join(ROOT, "node_modules", "jest", "bin", "jest.js"), "--ci"], {
      cwd: folder,
    });
    expect(stderr).toMatch(/^Tests: +1 passed, 1 total$/m);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
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
