import { execFile } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "@jest/globals";
import { blocksOf } from "../support/readme.js";
import { createTestTable, testEndpoint } from "../support/table.js";

const run = promisify(execFile);
const ROOT = process.cwd();
const PAGE = readFileSync(join(ROOT, "docs", "cron.md"), "utf8");

test("the examples of docs/cron.md compile, run, and do what the page says", async () => {
  const tableName = await createTestTable();
  const folder = await mkdtemp(join(tmpdir(), "dynamutex-cron-"));
  try {
    await mkdir(join(folder, "node_modules"));
    await symlink(ROOT, join(folder, "node_modules", "dynamutex"), "junction");
    await symlink(join(ROOT, "node_modules", "@types"), join(folder, "node_modules", "@types"), "junction");
    await writeFile(join(folder, "package.json"), JSON.stringify({ type: "module", private: true }));
    const examples = blocksOf(PAGE).map(({ text }) =>
      text.replaceAll('tableName: "locks"', `tableName: "${tableName}"`),
    );
    await Promise.all(examples.map((text, index) => writeFile(join(folder, `${index}.ts`), text)));
    const tsc = join(ROOT, "node_modules", "typescript", "bin", "tsc");
    const options = ["--target", "es2022", "--lib", "es2023,esnext.disposable", "--module", "nodenext", "--strict"];
    const files = examples.map((_, index) => `${index}.ts`);
    await run(process.execPath, [tsc, ...options, "--types", "node", ...files], { cwd: folder });
    const env = {
      ...process.env,
      AWS_ENDPOINT_URL_DYNAMODB: testEndpoint(),
      AWS_REGION: "us-east-1",
      AWS_ACCESS_KEY_ID: "test",
      AWS_SECRET_ACCESS_KEY: "test",
    };
    const said = (index: number) =>
      run(process.execPath, [join(folder, `${index}.js`)], { env }).then(({ stdout }) => stdout.trimEnd());
    const hour = /^the report for \d{4}-\d\d-\d\dT\d\d:00:00.000Z$/;
    expect(await Promise.all([0, 1, 2].map(said))).toEqual([
      expect.stringMatching(hour),
      "imported 41\nimported 42\n42: done, the last was 42\n40: done, the last was 42",
      "cleaned up in no time",
    ]);
    expect(await said(2)).toBe("");
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});

test("the page has no link that leads nowhere", () => {
  const links = [...PAGE.matchAll(/\]\(([^)#]+)\)/g)].map(([, link = ""]) => link);
  expect(links.filter((link) => !existsSync(join(ROOT, "docs", link)))).toEqual([]);
});
