import { execFile } from "node:child_process";
import { cp, mkdir, mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "@jest/globals";

const run = promisify(execFile);
const ROOT = process.cwd();
const EXAMPLES = join(ROOT, "examples", "testing");
const RUNNERS = ["jest", "vitest", "node"];

test("the example for node:test passes", async () => {
  const { NODE_TEST_CONTEXT: _, ...env } = process.env;
  const { stdout } = await run(
    process.execPath,
    ["--test", "--test-reporter=tap", join(EXAMPLES, "report.node.test.mjs")],
    { env },
  );
  expect(stdout).toMatch(/^# pass 7$/m);
});

test("the examples differ in what their runners differ in, and in nothing else", async () => {
  const texts = RUNNERS.map((runner) => readFile(join(EXAMPLES, `report.${runner}.test.mjs`), "utf8"));
  const [jest = "", ...others] = (await Promise.all(texts)).map(common);
  expect(jest).toContain("fake timers: time that passes on them");
  for (const other of others) expect(other).toBe(jest);
});

/** What all runners have: without the import of theirs, and what switches timers and lets time pass. */
function common(text: string): string {
  return text
    .replace(/^import .*(jest|vitest|node:test).*\n/m, "")
    .replaceAll(/^ +(jest|vi|mock)\..*\n/gm, "")
    .replace(/^ +(await (jest|vi)\.advance.*|for \(let second[\s\S]*?\n {4}\})\n/m, "");
}

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
