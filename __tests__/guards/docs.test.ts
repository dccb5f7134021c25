import { execFile } from "node:child_process";
import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { blocksOf } from "../support/readme.js";
import { createTestTable, testEndpoint } from "../support/table.js";

const run = promisify(execFile);
const ROOT = process.cwd();

/** What the one example that is no whole program leaves to the reader. */
const PRELUDE = `
import type { DynamoDBClient, TransactWriteItem } from "@aws-sdk/client-dynamodb";
import type { Mutex } from "dynamutex";
declare global {
  const mutex: Mutex;
  const client: DynamoDBClient;
  const items: readonly TransactWriteItem[];
}
`;

let folder: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "dynamutex-docs-"));
  const modules = join(folder, "node_modules");
  await mkdir(modules);
  await symlink(ROOT, join(modules, "dynamutex"), "junction");
  for (const scope of ["@types", "@aws-sdk"]) {
    await symlink(join(ROOT, "node_modules", scope), join(modules, scope), "junction");
  }
  await writeFile(join(folder, "package.json"), JSON.stringify({ type: "module", private: true }));
});

afterAll(() => rm(folder, { recursive: true, force: true }));

test("the examples of docs/fencing-and-guards.md compile, and the programs among them do what they say", async () => {
  const markdown = await readFile(join(ROOT, "docs", "fencing-and-guards.md"), "utf8");
  const [guards, part, fencing, ...others] = blocksOf(markdown).filter(({ language }) => language === "ts");
  expect([guards?.runs, part?.runs, fencing?.runs, others]).toEqual([true, false, true, []]);

  const files: Record<string, string | undefined> = { guards: guards?.text, fencing: fencing?.text };
  for (const [name, text = ""] of Object.entries(files)) {
    await writeFile(join(folder, `${name}.ts`), text.replaceAll('"locks"', JSON.stringify(await createTestTable())));
  }
  await writeFile(join(folder, "part.ts"), part?.text ?? "");
  await writeFile(join(folder, "prelude.ts"), PRELUDE);
  const tsc = [join(ROOT, "node_modules", "typescript", "bin", "tsc"), "--target", "es2022", "--module", "nodenext"];
  const compile = async (...names: string[]) =>
    await run(process.execPath, [...tsc, "--strict", "--types", "node", ...names], { cwd: folder }).catch((error) => {
      throw new Error(error.stdout);
    });
  await compile("guards.ts", "fencing.ts");
  await compile("prelude.ts", "part.ts");

  expect(await output("guards")).toBe("-10 10\n");
  expect(await output("fencing")).toMatch(/^Error: refused: token \d+ is older than \d+\nby the next holder\n$/);
});

/** What a program writes to stdout. */
async function output(name: string): Promise<string> {
  const env = {
    ...process.env,
    AWS_ENDPOINT_URL_DYNAMODB: testEndpoint(),
    AWS_REGION: "us-east-1",
    AWS_ACCESS_KEY_ID: "test",
    AWS_SECRET_ACCESS_KEY: "test",
  };
  const { stdout } = await run(process.execPath, [join(folder, `${name}.js`)], { cwd: folder, env, timeout: 30_000 });
  return stdout;
}
