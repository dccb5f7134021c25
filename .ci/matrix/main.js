/**
 * Installs the packed tarball into fresh projects, one for each way that the package is used, and runs a contended lock in
 * each of them on Node 20 and 24. It prints a line per cell, and the sizes, and exits with 1 if anything fails.
 *
 *   npm run matrix                    everything
 *   npm run matrix -- Jest            the cells whose name contains "Jest"
 *   npm run matrix -- sizes           what is measured, alone
 */
import { mkdtemp, rm } from "node:fs/promises";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { startDynamoDbLocal } from "../../.jest/examples/support/dynamodb-local.js";
import { CELLS, NESTS, RUNTIMES } from "./cells.js";
import { PRINTED } from "./programs.js";
import { install, installByPnpm, lowest, pack, readJson, run, versionIn, write } from "./projects.js";
import { sizes } from "./sizes.js";

/** The majors of Node that everything runs on. */
const NODES = [20, 24];
/**
 * What is installed for all cells where the newest version cannot be: Jest does not require() ES modules, which NestJS 12 is. Nor
 * can the lowest be: the declarations of NestJS 10.0.0 do not compile without `skipLibCheck`.
 */
const IN_JEST = { "@nestjs/common": "^11.0.0" };
/** The last major of vitest that runs on Node 20. */
const VITEST = "vitest@4.1.12";
/** Simulated DOMs, for Jest and for vitest. */
const DOMS = [
  "jsdom@26.1.0",
  "jest-environment-jsdom@30.5.2",
  "happy-dom@20.14.5",
  "@happy-dom/jest-environment@20.14.5",
];

const pattern = process.argv[2] ?? "";
const begun = performance.now();
const folder = await mkdtemp(join(tmpdir(), "dynamutex-matrix-"));
const endpoint = process.env.DYNAMODB_ENDPOINT;
const engine = endpoint === undefined ? await startDynamoDbLocal() : undefined;
let failed = 0;
let passed = 0;
let tables = 0;
try {
  const tarball = await pack(folder);
  const { dependencies, devDependencies, peerDependencies = {} } = await readJson("package.json");
  const tools = ["typescript", "typescript-5.9", "jest", "esbuild", "@types/node"].map(
    (name) => `${name}@${devDependencies[name]}`,
  );
  const oldest = Object.entries(dependencies).map(([name, range]) => `${name}@${lowest(range)}`);
  const newest = Object.keys(dependencies).map((name) => `${name}@latest`);
  const peers = Object.entries(peerDependencies);
  const sets = {
    newest: [
      VITEST,
      ...DOMS,
      ...RUNTIMES.map((runtime) => `${runtime.package}@latest`),
      ...tools,
      ...newest,
      ...peers.map(([name, range]) => `${name}@${IN_JEST[name] ?? range}`),
    ],
    lowest: [...tools, ...oldest, ...peers.map(([name, range]) => `${name}@${IN_JEST[name] ?? lowest(range)}`)],
    ...Object.fromEntries(
      NESTS.map((nest) => [
        `NestJS ${nest}`,
        [...tools, ...newest, `@nestjs/common@${nest}`, `@nestjs/core@${nest}`, "reflect-metadata", "rxjs"],
      ]),
    ),
    "Next.js": [
      ...tools.filter((tool) => /^(typescript|@types\/node)@/.test(tool)),
      ...newest,
      ...["next@16", "react@19", "react-dom@19", "@types/react@19"],
    ],
    "older client": [...tools, ...oldest.filter((name) => name.includes("client-dynamodb"))],
    // What the package depends on is no dependency of its user.
    pnpm: tools.filter((tool) => /^(typescript|@types\/node)@/.test(tool)),
  };
  const nodes = await Promise.all(NODES.map(nodeOf));

  for (const [set, packages] of Object.entries(sets)) {
    const cells = CELLS[set].filter(({ name }) => name.includes(pattern));
    const isMeasured = set === "newest" && (pattern === "" || pattern === "sizes");
    if (cells.length === 0 && !isMeasured) continue;
    const root = join(folder, set);
    await write(root, {});
    if (set === "pnpm") await installByPnpm(root, [tarball.path, ...packages]);
    else await install(root, [tarball.path, ...packages], set === "newest" ? "online" : "offline");
    // The library's own copy, if it has one.
    const own = join(root, "node_modules", "dynamutex");
    const versionOf = async (name) => `${name} ${await versionIn(own, name).catch(() => versionIn(root, name))}`;
    const installed = set === "pnpm" ? ["found by pnpm"] : await Promise.all(Object.keys(dependencies).map(versionOf));
    console.log(`== the ${set} dependencies: ${installed.join(", ")}`);
    await each(cells, (cell, index) => runCell(root, cell, index, nodes));
    if (isMeasured) failed += await sizes({ root, tarball, nodes });
  }
} finally {
  await engine?.stop();
  await rm(folder, { recursive: true, force: true });
}
console.log(`matrix: ${passed} passed, ${failed} failed, in ${Math.round((performance.now() - begun) / 1_000)} s`);
process.exitCode = failed === 0 && passed + (pattern === "sizes" ? 1 : 0) > 0 ? 0 : 1;

/** Builds a cell's project and runs it on each Node, with a line for each. */
async function runCell(root, { name, files, args, build, byExitCode, runtime }, index, nodes) {
  const project = join(root, `project-${index}`);
  let unbuilt;
  await write(project, files);
  await build?.(project).catch((error) => {
    unbuilt = error;
  });
  const runners = runtime === undefined ? nodes.map(nodeRunner) : [await runnerOf(root, runtime)];
  for (const { label, path, words } of runners) {
    const start = performance.now();
    try {
      if (unbuilt !== undefined) throw unbuilt;
      const command = [path, ...words, join(root, "node_modules", "dynamutex", "dist", "cli", "main.js")];
      const env = { ...environment(`matrix-${process.pid}-${++tables}`), COMMAND: JSON.stringify(command) };
      const told = (await run(path, [...words, ...args], { cwd: project, env })).trim();
      if (!byExitCode && told !== PRINTED) throw new Error(`printed ${JSON.stringify(told)}`);
      passed += 1;
      console.log(`ok    ${label}  ${name}  (${Math.round(performance.now() - start)} ms)`);
    } catch (error) {
      failed += 1;
      console.log(`FAIL  ${label}  ${name}\n${error.message.replace(/^/gm, "        ")}`);
    }
  }
}

function nodeRunner({ major, path }) {
  return { label: `Node ${major}`, path, words: [] };
}

/** Another runtime, as it was installed beside the package. */
async function runnerOf(root, { name, package: binaries, binary, words }) {
  const label = `${name} ${await versionIn(root, binaries)}`;
  return { label, path: join(root, "node_modules", binaries, binary), words };
}

function environment(tableName) {
  const { NODE_OPTIONS: _, ...own } = process.env;
  return {
    ...own,
    TABLE_NAME: tableName,
    AWS_ENDPOINT_URL_DYNAMODB: endpoint ?? engine.endpoint,
    AWS_REGION: "us-east-1",
    AWS_ACCESS_KEY_ID: "test",
    AWS_SECRET_ACCESS_KEY: "test",
  };
}

/** This Node, if it is of that major, or one from the registry. */
async function nodeOf(major) {
  const isThis = Number(process.versions.node.split(".")[0]) === major;
  const path = isThis
    ? process.execPath
    : (await run("npx", ["-y", "-p", `node@${major}`, "node", "-p", "process.execPath"])).trim();
  const version = (await run(path, ["--version"])).trim();
  if (!version.startsWith(`v${major}.`)) throw new Error(`expected Node ${major}, and ${path} is ${version}`);
  return { major, path, version };
}

/** Calls `work` for all, as many at a time as this machine has processors. */
async function each(all, work) {
  const left = all.entries();
  const worker = async () => {
    for (const [index, item] of left) await work(item, index);
  };
  await Promise.all(Array.from({ length: availableParallelism() }, worker));
}
