import { execFile } from "node:child_process";
import { mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { createTestTable, testEndpoint } from "./support/table.js";

const run = promisify(execFile);
const ROOT = process.cwd();
const MODULES = join(ROOT, "node_modules");

/** The consumer's program, but for its imports: what the README promises, on a table that exists. */
const PROGRAM = `
async function section(locks: LockTable): Promise<string[]> {
  const mutex = locks.mutex("nightly-report");
  const seen: string[] = [];
  {
    await using lock = await mutex.lock();
    seen.push(lock.name, String(lock.held));
    await using second = await mutex.tryLock();
    seen.push(String(second));
  }
  {
    await using lock = await mutex.tryLock();
    seen.push(String(lock?.held));
  }
  return seen;
}

async function main(): Promise<void> {
  const tableName = process.env["TABLE_NAME"]!;
  // The client of one comes from the environment, the other gets the consumer's own.
  const locks = new LockTable({ tableName });
  console.log(...(await section(locks)));
  await locks.close();
  await using others = new LockTable({ tableName, client: new DynamoDBClient({}) });
  console.log(...(await section(others)));
}

main().catch((error: unknown) => {
  console.error(error);
  process.exitCode = 1;
});
`;

const IMPORTS = `import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { LockTable } from "dynamutex";
`;

let consumer: string;
let installed: string;

beforeAll(async () => {
  consumer = await mkdtemp(join(tmpdir(), "dynamutex-consumer-"));
  installed = join(consumer, "node_modules", "dynamutex");
  const { stdout } = await run("npm", ["pack", "--json", "--ignore-scripts", "--pack-destination", consumer]);
  const [{ filename }] = JSON.parse(stdout);
  await mkdir(installed, { recursive: true });
  await run("tar", ["-xzf", join(consumer, filename), "-C", installed, "--strip-components=1"]);

  // What npm would install beside it, and nothing else: an import that is no declared dependency fails here.
  const manifest = JSON.parse(await readFile(join(installed, "package.json"), "utf8"));
  for (const name of [...Object.keys(manifest.dependencies), "@types/node"]) {
    const link = join(consumer, "node_modules", name);
    await mkdir(dirname(link), { recursive: true });
    await symlink(join(MODULES, name), link, "junction");
  }
  await writeFile(join(consumer, "package.json"), JSON.stringify({ name: "consumer", private: true, type: "module" }));
  await writeFile(join(consumer, "esm.mts"), IMPORTS + PROGRAM);
  await writeFile(join(consumer, "commonjs.cts"), IMPORTS + PROGRAM);
  await writeFile(
    join(consumer, "tsconfig.json"),
    JSON.stringify({
      compilerOptions: { target: "es2022", lib: ["es2022"], module: "nodenext", types: ["node"], strict: true },
      files: ["esm.mts", "commonjs.cts"],
    }),
  );
});

afterAll(() => rm(consumer, { recursive: true, force: true }));

describe("the packed tarball", () => {
  it("has the build, what its maps refer to, and licence, README, changelog", async () => {
    const top = await readdir(installed);
    expect(top.sort()).toEqual(["CHANGELOG.md", "LICENSE", "README.md", "dist", "lib", "package.json"]);
  });

  it("carries the licenses of what is bundled with it", async () => {
    const licenses = await readFile(join(installed, "dist", "THIRD-PARTY-LICENSES"), "utf8");
    const bundled = [...licenses.matchAll(/contains parts of (\S+)/g)].map(([, name]) => name);
    expect(bundled).toEqual(["is-network-error", "p-retry", "zod"]);
    expect(licenses).toContain(await readFile(join(MODULES, "zod", "LICENSE"), "utf8"));
  });

  it("does not show zod in the types that its users see", async () => {
    const seen = new Set<string>();
    const showing: string[] = [];
    const visit = async (file: string): Promise<void> => {
      if (seen.has(file)) return;
      seen.add(file);
      const declarations = await readFile(file, "utf8");
      if (/["']zod/.test(declarations)) showing.push(file);
      const imported = declarations.matchAll(/["'](\.\.?\/[^"']+)\.js["']/g);
      for (const [, path = ""] of imported) await visit(join(dirname(file), `${path}.d.ts`));
    };
    await visit(join(installed, "dist", "index.d.ts"));
    expect(showing).toEqual([]);
    expect(seen).toContain(join(installed, "dist", "lock-table.d.ts"));
  });

  describe.each([
    ["7", "typescript"],
    ["5.9", "typescript-5.9"],
  ])("with TypeScript %s, lib es2022 and no skipLibCheck", (version, compiler) => {
    const out = `out-${version}`;

    it("compiles `await using` from ESM and from CommonJS", async () => {
      expect(await tsc(compiler, ["--outDir", out])).toBe("");
    });

    it.each([["esm.mjs"], ["commonjs.cjs"]])("runs as %s", async (file) => {
      expect(await runConsumer(join(out, file))).toBe("nightly-report true null true\nnightly-report true null true\n");
    });
  });
});

/** @returns what the compiler complains about. */
async function tsc(compiler: string, args: string[]): Promise<string> {
  const bin = join(MODULES, compiler, "bin", "tsc");
  return run(process.execPath, [bin, "-p", "tsconfig.json", ...args], { cwd: consumer }).then(
    ({ stdout }) => stdout,
    (error) => error.stdout || String(error),
  );
}

/** @returns what the program printed. */
async function runConsumer(file: string): Promise<string> {
  const env = {
    ...process.env,
    TABLE_NAME: await createTestTable(),
    AWS_ENDPOINT_URL_DYNAMODB: testEndpoint(),
    AWS_REGION: "us-east-1",
    AWS_ACCESS_KEY_ID: "test",
    AWS_SECRET_ACCESS_KEY: "test",
  };
  const { stdout } = await run(process.execPath, [file], { cwd: consumer, env, timeout: 30_000 });
  return stdout;
}
