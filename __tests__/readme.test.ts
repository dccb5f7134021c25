import { execFile } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { DeleteTableCommand, ResourceNotFoundException, ScanCommand } from "@aws-sdk/client-dynamodb";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { LockTable } from "dynamutex";
import { mutexSettings } from "../lib/options/mutex.js";
import type { ReadmeSectionConfig } from "./hosts/readme-section.js";
import { startHost } from "./support/host-process.js";
import { blocksOf, firstColumn, readme } from "./support/readme.js";
import { createTestTable, testClient, testEndpoint } from "./support/table.js";

const run = promisify(execFile);
const ROOT = process.cwd();
const README = readme();
const BLOCKS = blocksOf(README);
const EXAMPLES = BLOCKS.filter(({ language }) => language === "ts").map((block, index) => ({
  ...block,
  file: `example-${index}`,
}));
const RUNNING = EXAMPLES.filter(({ runs }) => runs);

/** What the examples leave to the reader. The whole program, which is the first, gets none of it. */
const PRELUDE = `
import type { LockTable, Mutex } from "dynamutex";
declare global {
  const locks: LockTable;
  const mutex: Mutex;
  const customer: string;
  const customers: readonly string[];
  const request: Request;
  function charge(customer: string, signal: AbortSignal): Promise<void>;
  function cron(schedule: string, job: () => Promise<void>): void;
  function sql(text: TemplateStringsArray, ...values: readonly unknown[]): Promise<{ readonly count: number }>;
  function sendInvoices(signal: AbortSignal): Promise<void>;
}
`;

/** What each target makes of \`await using\`: TypeScript's helpers, or what Node 24 has of its own. */
const TARGETS = [
  { target: "es2022", runs: true },
  { target: "esnext", runs: Number(process.versions.node.split(".")[0]) >= 24 },
];

let folder: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "dynamutex-readme-"));
  await mkdir(join(folder, "node_modules"));
  await symlink(ROOT, join(folder, "node_modules", "dynamutex"), "junction");
  for (const scope of ["@types", "@aws-sdk"]) {
    await symlink(join(ROOT, "node_modules", scope), join(folder, "node_modules", scope), "junction");
  }
  await writeFile(join(folder, "package.json"), JSON.stringify({ type: "module", private: true }));
  await writeFile(join(folder, "prelude.ts"), PRELUDE);
  for (const { file, text } of EXAMPLES) await writeFile(join(folder, `${file}.ts`), text);
});

afterAll(() => rm(folder, { recursive: true, force: true }));

describe.each(TARGETS)("the README's examples, compiled for $target", ({ target, runs }) => {
  beforeAll(async () => {
    const [program, ...others] = EXAMPLES.map(({ file }) => file);
    expect(await compile(target, [`${program}.ts`])).toBe("");
    expect(await compile(target, ["prelude.ts", ...others.map((file) => `${file}.ts`)])).toBe("");
  });

  it("compile, all of them", () => {
    for (const { file } of EXAMPLES) expect(existsSync(join(folder, target, `${file}.js`))).toBe(true);
  });

  (runs ? it : it.skip)("begin with a whole program, which runs as it is", async () => {
    const client = testClient();
    const scratch = await mkdtemp(join(folder, "run-"));
    const env = {
      ...process.env,
      AWS_ENDPOINT_URL_DYNAMODB: testEndpoint(),
      AWS_REGION: "us-east-1",
      AWS_ACCESS_KEY_ID: "test",
      AWS_SECRET_ACCESS_KEY: "test",
    };
    try {
      await run(process.execPath, [compiled(target, 0)], { cwd: scratch, env, timeout: 30_000 });
      expect(await readFile(join(scratch, "report.txt"), "utf8")).toMatch(/^built by .+ at 20/);
      const { Items } = await client.send(new ScanCommand({ TableName: "locks" }));
      expect(Items).toEqual([]); // released
    } finally {
      await client.send(new DeleteTableCommand({ TableName: "locks" })).catch((error) => {
        if (!(error instanceof ResourceNotFoundException)) throw error;
      });
    }
  });

  (runs ? it : it.skip).each([
    { isLost: true, throws: true, says: "customers was lost (deleted): look at what was charged, then try again\n" },
    { isLost: true, throws: false, says: "customers was lost (deleted): look at what was charged, then try again\n" },
    { isLost: false, throws: true, says: "rejected: Error: the card was declined\n" },
    { isLost: false, throws: false, says: "" },
  ])("tell a lost lock from a failed section: lost $isLost, throws $throws", async ({ isLost, throws, says }) => {
    const config: ReadmeSectionConfig = {
      tableName: await createTestTable(),
      examples: [2, 1].map((index) => pathToFileURL(compiled(target, index)).href), // who listens first hears it
      isLost,
      throws,
    };
    const env = { AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED: "true" };
    await using host = startHost(new URL("./hosts/readme-section.js", import.meta.url), { config, env });
    expect((await host.exit).code).toBe(0);
    const warning = isLost ? "lock customers was lost: deleted\n" : "";
    expect(host.stderr).toBe(warning + says);
  });
});

describe("the README", () => {
  it("marks the examples that these tests run", () => {
    expect(
      RUNNING.map(({ text }) => [/locks\.create/, /findLockLost/, /subscribe/].findIndex((is) => is.test(text))),
    ).toEqual([0, 1, 2]);
  });

  it("names every option, and none that is not there", () => {
    const tableOptions = ["tableName", "client", "keys", "keyPrefix", "owner", "clock"];
    const options = [...tableOptions, ...Object.keys(mutexSettings({}))];
    expect([...firstColumn(README, "Options")].sort()).toEqual(options.sort());
  });

  it("names every code of an error", async () => {
    const library = await readFile(join(ROOT, "lib", "errors.ts"), "utf8");
    const codes = [...library.matchAll(/super\("(LOCK_\w+)"/g)].map(([, code]) => code);
    expect(codes.length).toBeGreaterThan(3);
    expect(firstColumn(README, "Errors")).toEqual(expect.arrayContaining(codes));
  });

  it("names every channel", async () => {
    const library = await readFile(join(ROOT, "lib", "diagnostics.ts"), "utf8");
    const channels = new Set([...library.matchAll(/"(dynamutex:[\w-]+)"/g)].map(([, channel]) => channel));
    expect([...firstColumn(README, "Diagnostics")].sort()).toEqual([...channels].sort());
  });

  it("names exactly the permissions that are used", async () => {
    const client = testClient();
    const used = new Set<string>();
    client.middlewareStack.add(
      (next, context) => (input) => {
        used.add(`dynamodb:${String(context.commandName).replace(/Command$/, "")}`);
        return next(input);
      },
      { step: "initialize" },
    );
    const tableName = `readme-${crypto.randomUUID()}`;
    await using locks = new LockTable({ tableName, client });
    await locks.create();
    try {
      expect([...used].sort()).toEqual(permissions("`create()`"));
      used.clear();
      await using lock = await locks.mutex("a").lock();
      await lock.extend();
      await using others = new LockTable({ tableName, client });
      await expect(others.mutex("a").lock({ waitMs: 1_000 })).rejects.toMatchObject({ code: "LOCK_TIMEOUT" });
      await lock.unlock();
      expect([...used].sort()).toEqual(permissions("take, wait for, renew and release locks"));
      const policy = BLOCKS.find(({ language }) => language === "json")?.text ?? "{}";
      expect([...used].sort()).toEqual(JSON.parse(policy).Statement[0].Action.sort());
    } finally {
      await client.send(new DeleteTableCommand({ TableName: tableName }));
    }
  });

  it("has no link that leads nowhere", () => {
    const anchorsOf = (markdown: string): string[] =>
      [...markdown.matchAll(/^#+ (.+)$/gm)].map(([, heading = ""]) => anchorOf(heading));
    const links = [...README.matchAll(/\]\(([^)]+)\)/g)].map(([, link = ""]) => link);
    const broken = links.filter((link) => {
      if (/^https?:/.test(link)) return false;
      const [file = "", anchor] = link.split("#");
      if (!existsSync(join(ROOT, file))) return true;
      if (anchor === undefined) return false;
      const markdown = file === "" ? README : readFileSync(join(ROOT, file), "utf8");
      return !anchorsOf(markdown).includes(anchor);
    });
    expect(links.length).toBeGreaterThan(10);
    expect(broken).toEqual([]);
  });
});

/** Compiles files as a consumer would. @returns what the compiler complains about. */
async function compile(target: string, files: readonly string[]): Promise<string> {
  const tsc = join(ROOT, "node_modules", "typescript", "bin", "tsc");
  const options = ["--target", target, "--lib", "es2022", "--module", "nodenext", "--strict"];
  return run(process.execPath, [tsc, ...options, "--types", "node", "--outDir", target, ...files], {
    cwd: folder,
  }).then(
    ({ stdout }) => stdout,
    (error) => error.stdout || String(error),
  );
}

/** The program that became of an example that runs. */
function compiled(target: string, index: number): string {
  return join(folder, target, `${RUNNING[index]?.file}.js`);
}

function permissions(to: string): readonly string[] {
  const row = README.split("\n").find((line) => line.startsWith(`| ${to} |`)) ?? "";
  return [...row.matchAll(/dynamodb:\w+/g)].map(([action]) => action).sort();
}

/** The anchor that GitHub makes of a heading. */
function anchorOf(heading: string): string {
  return heading
    .toLowerCase()
    .replace(/[^\w\- ]/g, "")
    .replaceAll(" ", "-");
}
