import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, dirname, join, relative } from "node:path";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { consumerEnv } from "../support/consumer-folder.js";
import { createTestTable } from "../support/table.js";

const run = promisify(execFile);
const ROOT = process.cwd();
const MODULES = join(ROOT, "node_modules");

/** The scripts are JavaScript without types. */
const script = (...path: string[]) => import(pathToFileURL(join(ROOT, ".ci", ...path)).href);

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

// A double of the consumer's own, and a function that takes it, or a lock of any kind.
class Fake implements Lockable<{ readonly name: string }> {
  async lock(_options?: LockOptions): Promise<{ readonly name: string }> {
    return { name: "fake" };
  }
  async tryLock(_options?: TryOptions): Promise<{ readonly name: string } | null> {
    return null;
  }
  async run<T>(fn: (lock: { readonly name: string }) => T | Promise<T>): Promise<T> {
    return await fn(await this.lock());
  }
  async tryRun<T>(_fn: (lock: { readonly name: string }) => T | Promise<T>): Promise<TryRun<T>> {
    return { ran: false, reason: "held", holder: undefined };
  }
}

async function nameIn(lockable: Lockable<{ readonly name: string }>): Promise<string> {
  return await lockable.run(({ name }) => name);
}

async function kinds(locks: LockTable): Promise<string[]> {
  const semaphore: Semaphore = locks.semaphore("api", { permits: 2 } satisfies SemaphoreOptions);
  const catalogue: SharedMutex = locks.sharedMutex("catalogue", {} satisfies SharedMutexOptions);
  const orders: Mutex<FencedLock> = locks.mutex("order", { fencing: true });
  const seen: string[] = [];
  for (const lockable of [new Fake(), semaphore, catalogue.shared, catalogue.exclusive, orders]) {
    seen.push(await nameIn(lockable));
  }
  const permit: Permit = await semaphore.lock();
  const { holders }: SemaphoreState = await semaphore.inspect();
  const infos: readonly PermitInfo[] = holders;
  seen.push(String(infos[0]?.permit === permit.permit));
  const lock: TransferableLock = await orders.lock();
  const token: string = await lock.handOff({ validForMs: 60_000 } satisfies HandOffOptions);
  await using resumed = await orders.resume(token, {} satisfies ResumeOptions);
  await using again = await semaphore.resume(await permit.handOff({ validForMs: 60_000 }));
  seen.push(String(resumed.fencingToken > 0n), String(again.permit === permit.permit));
  const state: SharedMutexState = await catalogue.inspect();
  seen.push(String(state.exclusive));
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
  console.log(...(await kinds(others)));
}

main().catch((error: unknown) => {
  console.error(error);
  process.exitCode = 1;
});
`;

const IMPORTS = `import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import {
  type FencedLock,
  type HandOffOptions,
  type Lockable,
  type LockOptions,
  LockTable,
  Mutex,
  type Permit,
  type PermitInfo,
  type ResumeOptions,
  Semaphore,
  type SemaphoreOptions,
  type SemaphoreState,
  SharedMutex,
  type SharedMutexOptions,
  type SharedMutexState,
  type TransferableLock,
  type TryOptions,
  type TryRun,
} from "dynamutex";
`;

const PRINTED = [
  "nightly-report true null true",
  "nightly-report true null true",
  "fake api catalogue catalogue order true true true null",
  "",
].join("\n");

let consumer: string;
let installed: string;
let packed: string;
/** What the addresses of files begin with that are in the repository alone. */
let base: string;

beforeAll(async () => {
  consumer = await mkdtemp(join(tmpdir(), "dynamutex-consumer-"));
  installed = join(consumer, "node_modules", "dynamutex");
  // As a release does it.
  const { filesAt, stage } = await script("release", "stage.js");
  const staged = join(consumer, "staged");
  base = filesAt({}, "0.1.0");
  await stage(ROOT, staged, base);
  const { stdout } = await run("npm", ["pack", "--json", "--pack-destination", consumer], { cwd: staged });
  const [{ filename }] = JSON.parse(stdout);
  packed = join(consumer, filename);
  await unpack(installed);

  // What npm would install beside it, and nothing else: an import that is no declared dependency fails here.
  const manifest = JSON.parse(await readFile(join(installed, "package.json"), "utf8"));
  for (const name of [...Object.keys(manifest.dependencies), "@types/node"]) await install(consumer, name);
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
  it("has the build, license, README, changelog, the guides with llms.txt, and nothing else", async () => {
    const files = await packedFiles();
    const modules = files
      .filter((file) => file.endsWith(".mjs"))
      .map((file) => file.slice("dist/".length, -".mjs".length));
    const perModule = modules.flatMap((module) =>
      [".js", ".cjs", ".mjs", ".names.cjs", ".d.ts", ".d.cts"].map((ending) => `dist/${module}${ending}`),
    );
    const chunks = files.filter((file) => /^dist\/shared-\w+\.c?js$/.test(file));
    const declarations = await reachableDeclarations(
      modules.map((module) => join(installed, "dist", `${module}.d.ts`)),
    );
    const { bin = {} } = JSON.parse(await readFile(join(installed, "package.json"), "utf8"));
    const expected = [
      ...["CHANGELOG.md", "LICENSE", "README.md", "dist/THIRD-PARTY-LICENSES", "package.json"],
      ...["docs/README.md", "llms.txt", ...(await script("pages.js")).guides()],
      ...perModule,
      ...chunks,
      ...declarations.map((file) => relative(installed, file)),
      ...Object.values<string>(bin).map((file) => file.replace("./", "")),
    ];
    expect(modules).toContain("index");
    expect(files).toEqual([...new Set(expected)].sort());
  });

  it("has pages whose links lead to each other, or to what is in the repository", async () => {
    const pages = (await packedFiles()).filter((file) => /\.(md|txt)$/.test(file));
    expect(pages.length).toBeGreaterThan(30);
    const wrong: string[] = [];
    for (const page of pages) {
      const text = (await readFile(join(installed, page), "utf8")).replaceAll(/^```[\s\S]*?^```/gm, "");
      for (const [, target = ""] of text.matchAll(/\]\((?!#|mailto:)([^)#\s]+)/g)) {
        const isElsewhere = /^https?:/.test(target) && !target.startsWith(base);
        const file = target.startsWith(base)
          ? join(ROOT, target.slice(base.length))
          : join(installed, dirname(page), target);
        if (!isElsewhere && !existsSync(file)) wrong.push(`${page}: ${target}`);
      }
    }
    expect(wrong).toEqual([]);
  });

  it("has each page that an error or a comment of its types names", async () => {
    const files = (await packedFiles()).filter((file) => /\.(cjs|js|ts)$/.test(file));
    const texts = await Promise.all(files.map((file) => readFile(join(installed, file), "utf8")));
    const named = new Set(texts.flatMap((text) => [...text.matchAll(/docs\/[\w./-]+\.md/g)].map(([page]) => page)));
    expect(named.size).toBeGreaterThan(2);
    expect([...named].filter((page) => !existsSync(join(installed, page)))).toEqual([]);
  });

  it("has no chunk that nothing loads", async () => {
    const scripts = (await packedFiles()).filter((file) => /js$/.test(file));
    const texts = await Promise.all(scripts.map((file) => readFile(join(installed, file), "utf8")));
    const chunks = scripts.filter((file) => file.startsWith("dist/shared-"));
    expect(chunks.filter((file) => !texts.some((text) => text.includes(`/${basename(file)}"`)))).toEqual([]);
  });

  it("carries the licenses of what is bundled with it", async () => {
    const licenses = await readFile(join(installed, "dist", "THIRD-PARTY-LICENSES"), "utf8");
    const bundled = [...licenses.matchAll(/contains parts of (\S+)/g)].map(([, name]) => name);
    expect(bundled).toEqual(["commander", "is-network-error", "p-retry", "zod"]);
    expect(licenses).toContain(await readFile(join(MODULES, "zod", "LICENSE"), "utf8"));
  });

  it("does not show zod in the types that its users see", async () => {
    const seen = await reachableDeclarations([join(installed, "dist", "index.d.ts")]);
    const texts = await Promise.all(seen.map((file) => readFile(file, "utf8")));
    expect(seen.filter((_, index) => /["']zod/.test(texts[index] ?? ""))).toEqual([]);
    expect(seen).toContain(join(installed, "dist", "lock-table.d.ts"));
  });

  it.each<readonly [entry: string, beside: readonly string[], program: string, printed: string]>([
    [
      "dynamutex/otel, which needs OpenTelemetry's API",
      ["@opentelemetry/api"],
      `
      import { createRequire } from "node:module";
      import { instrumentLocks } from "dynamutex/otel";
      instrumentLocks()[Symbol.dispose]();
      console.log("measured");
      // On Node 20, an import() whose CommonJS file requires what is not there ends the process.
      try { createRequire(import.meta.url)("dynamutex"); } catch ({ code }) { console.log(code); }`,
      "measured\nMODULE_NOT_FOUND\n",
    ],
    [
      "dynamutex/prom-client, which needs prom-client",
      ["prom-client"],
      `
      import { createRequire } from "node:module";
      import { instrumentLocks } from "dynamutex/prom-client";
      import { register } from "prom-client";
      instrumentLocks();
      console.log((await register.metrics()).includes("dynamutex_calls_total 0"));
      try { createRequire(import.meta.url)("dynamutex"); } catch ({ code }) { console.log(code); }`,
      "true\nMODULE_NOT_FOUND\n",
    ],
    [
      "dynamutex/node-cron, which loads it with dynamutex alone",
      [],
      `
      import { runCoordinator } from "dynamutex/node-cron";
      try { runCoordinator({}); } catch ({ code }) { console.log(code); }`,
      "LOCK_CONFIG\n",
    ],
  ])("works without the AWS SDK: %s", async (_entry, beside, program, printed) => {
    const alone = await mkdtemp(join(tmpdir(), "dynamutex-alone-"));
    try {
      await unpack(join(alone, "node_modules", "dynamutex"));
      for (const name of beside) await install(alone, name);
      await writeFile(join(alone, "main.mjs"), program);
      const { stdout } = await run(process.execPath, [join(alone, "main.mjs")]);
      expect(stdout).toBe(printed);
    } finally {
      await rm(alone, { recursive: true, force: true });
    }
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
      expect(await runConsumer(join(out, file))).toBe(PRINTED);
    });
  });
});

async function unpack(folder: string): Promise<void> {
  await mkdir(folder, { recursive: true });
  await run("tar", ["-xzf", packed, "-C", folder, "--strip-components=1"]);
}

/** Links a package that is installed here. */
async function install(project: string, name: string): Promise<void> {
  const link = join(project, "node_modules", name);
  await mkdir(dirname(link), { recursive: true });
  await symlink(join(MODULES, name), link, "junction");
}

/** The files in the tarball, in order. */
async function packedFiles(): Promise<string[]> {
  const entries = await readdir(installed, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => relative(installed, join(entry.parentPath, entry.name)))
    .sort();
}

/** The declarations that these refer to, and they themselves. */
async function reachableDeclarations(roots: readonly string[]): Promise<string[]> {
  const found = new Set(roots);
  for (const file of found) {
    const imported = (await readFile(file, "utf8")).matchAll(/["'](\.\.?\/[^"']+)\.js["']/g);
    for (const [, path = ""] of imported) found.add(join(dirname(file), `${path}.d.ts`));
  }
  return [...found];
}

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
  const env = { ...consumerEnv(), TABLE_NAME: await createTestTable() };
  const { stdout } = await run(process.execPath, [file], { cwd: consumer, env, timeout: 30_000 });
  return stdout;
}
