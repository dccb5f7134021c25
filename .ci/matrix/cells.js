/**
 * The cells of the matrix. Each belongs to a set of installed packages, writes a project below it, may build it once, and
 * is run on each Node. What `run` gives is a program's arguments; what it prints has to be {@link PRINTED}, unless
 * the cell says what else shows that it passed.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { MODULES } from "../entries.js";
import {
  BOTH,
  BOTH_BUNDLED,
  CLIENT_OF_THE_APPLICATION,
  COMMONJS,
  CONTEND_TS,
  CTS,
  ENTRY_POINTS,
  ESM,
  HANDLER,
  INFERRED_TYPES,
  INVOKE,
  JEST_DOM_GLOBALS,
  JEST_DOM_IMPORT,
  JEST_DOM_TEST,
  JEST_ENTRY_POINTS,
  JEST_ESM_TEST,
  JEST_TEST,
  MTS,
  NEST_TS,
  NEXT_CHECK,
  NEXT_CONFIG,
  NODE_TEST,
  RUNTIME,
  SHIPPING,
  TWO_COPIES,
  VITEST_DOM_TEST,
  VITEST_TEST,
} from "./programs.js";
import { run } from "./projects.js";

const PLATFORM = `${process.platform}-${process.arch}`;

const manifest = (type) => JSON.stringify({ name: "project", private: true, type });

/** Plain programs. */
const PLAIN = [
  cell("ESM", "module", { "main.js": ESM }, ["main.js"]),
  cell("CommonJS", "commonjs", { "main.js": COMMONJS }, ["main.js"]),
  cell("ESM and CommonJS in one process: one copy", "module", { "main.js": BOTH }, ["main.js"]),
  cell("every entry point, by import and by require(): one copy", "module", { "main.js": ENTRY_POINTS }, ["main.js"]),
  cell("both builds in one process: their errors are each other's", "module", { "main.js": TWO_COPIES }, ["main.js"]),
];

/** Other runtimes than Node, each as the package that has its binary for this machine, and how it runs a program. */
export const RUNTIMES = [
  { name: "Bun", package: `@oven/bun-${PLATFORM}`, binary: "bin/bun", words: [] },
  {
    name: "Deno",
    package: `@deno/${PLATFORM}${process.platform === "linux" ? "-glibc" : ""}`,
    binary: "deno",
    words: ["run", "-A"],
  },
];
const OTHERS = RUNTIMES.map((runtime) => ({
  ...cell(runtime.name, "module", { "main.js": RUNTIME }, ["main.js"]),
  runtime,
}));

const jest = (...flags) => [...flags, "../node_modules/jest/bin/jest.js", "--colors=false", "--ci"];

const TEST_RUNNERS = [
  // Its output goes to stderr, and tells how many passed.
  runner(
    "Jest, default set-up, require()",
    "commonjs",
    { "lock.test.js": JEST_TEST, "entry-points.test.js": JEST_ENTRY_POINTS },
    jest(),
  ),
  runner(
    "Jest, --experimental-vm-modules, import",
    "module",
    { "lock.test.js": JEST_ESM_TEST, "jest.config.json": JSON.stringify({ transform: {} }) },
    jest("--experimental-vm-modules"),
  ),
  runner("vitest", "module", { "lock.test.js": VITEST_TEST }, ["../node_modules/vitest/vitest.mjs", "run"]),
  runner("node:test", "module", { "lock.test.js": NODE_TEST }, ["--test"]),
];

/** Tests on a simulated DOM: its AbortSignals and its timers are not those of Node. */
const DOMS = [
  ...[
    ["jsdom", "jsdom"],
    ["happy-dom", "@happy-dom/jest-environment"],
  ].flatMap(([name, testEnvironment]) => [
    runner(`Jest with ${name}: dynamutex/testing`, "commonjs", jestOn(testEnvironment, JEST_DOM_TEST), jest()),
    runner(
      `Jest with ${name}: dynamutex, imported`,
      "commonjs",
      {
        ...jestOn(testEnvironment, JEST_DOM_IMPORT, { customExportConditions: ["node", "node-addons"] }),
        "globals.js": JEST_DOM_GLOBALS,
      },
      jest(),
    ),
  ]),
  ...["jsdom", "happy-dom"].map((name) =>
    runner(`vitest with ${name}`, "module", { "lock.test.js": VITEST_DOM_TEST }, [
      "../node_modules/vitest/vitest.mjs",
      "run",
      `--environment=${name}`,
    ]),
  ),
];

function jestOn(testEnvironment, test, testEnvironmentOptions = {}) {
  const setupFiles = test === JEST_DOM_IMPORT ? ["./globals.js"] : [];
  const config = { testEnvironment, testEnvironmentOptions, setupFiles };
  return { "lock.test.js": test, "jest.config.json": JSON.stringify(config) };
}

/** What a user copies from examples/testing: a table in memory, with the fake timers of each runner. */
const TESTING = [
  testing("jest", jest("--experimental-vm-modules"), {
    "jest.config.json": '{ "testMatch": ["**/*.test.mjs"], "transform": {} }',
  }),
  testing("vitest", ["../node_modules/vitest/vitest.mjs", "run"]),
  testing("node", ["--test"]),
];

function testing(name, args, config = {}) {
  const files = ["report.mjs", `report.${name}.test.mjs`].map((file) => [
    file,
    readFileSync(join("examples", "testing", file), "utf8"),
  ]);
  return runner(`dynamutex/testing with ${name}`, "module", { ...Object.fromEntries(files), ...config }, args);
}

/** Has the compiler read the declarations of every entry point. */
const TYPES_OF_ALL = MODULES.map(
  ({ name }, index) => `export * as all${index} from "dynamutex${name.slice(1)}";\n`,
).join("");

const COMPILERS = [
  ["5.9", "typescript-5.9"],
  ["7", "typescript"],
];

/** `module`, `moduleResolution` if it does not follow from that, and the types of project that it is for. */
const SETTINGS = [
  ["commonjs", undefined, ["commonjs"]],
  ["node16", undefined, ["module", "commonjs"]],
  ["node20", undefined, ["module", "commonjs"]],
  ["nodenext", undefined, ["module", "commonjs"]],
  ["esnext", "bundler", ["module"]],
  ["preserve", undefined, ["module"]], // its resolution is that of a bundler
];

const TYPESCRIPT = COMPILERS.flatMap((compiler) =>
  SETTINGS.flatMap(([module, moduleResolution, types]) =>
    types.map((type) => {
      const setting = `module ${module}${moduleResolution ? `, ${moduleResolution}` : ""}, type ${type}`;
      const options = { module, ...(moduleResolution && { moduleResolution }) };
      return compiled(compiler, setting, type, { "main.ts": CONTEND_TS }, options);
    }),
  ),
);

/** A LockTable made in an ES module is one for a CommonJS file beside it, in its types as well. */
const MIXED = COMPILERS.map((compiler) =>
  compiled(
    compiler,
    "module nodenext, .mts and .cts together",
    "module",
    { "use.cts": CTS, "main.mts": MTS },
    {
      module: "nodenext",
    },
  ),
);

function compiled([version, compiler], setting, type, sources, options) {
  const compilerOptions = {
    target: "es2022",
    lib: ["es2022"],
    types: ["node"],
    strict: true,
    outDir: "out",
    ...options,
  };
  const files = ["entry-points.ts", ...Object.keys(sources)];
  return {
    ...cell(
      `TypeScript ${version}, ${setting}`,
      type,
      { ...sources, "entry-points.ts": TYPES_OF_ALL, "tsconfig.json": JSON.stringify({ compilerOptions, files }) },
      [join("out", files.at(-1).replace(/ts$/, "js"))],
    ),
    build: (folder) => run(process.execPath, [join("..", "node_modules", compiler, "bin", "tsc")], { cwd: folder }),
  };
}

/** The majors of NestJS. */
export const NESTS = [10, 11, 12];

/** As a project of NestJS has it. */
const NEST = ["commonjs", "module"].flatMap((type) =>
  COMPILERS.map((compiler) =>
    compiled(
      compiler,
      `NestJS, type ${type}`,
      type,
      { "main.ts": NEST_TS },
      { module: "nodenext", skipLibCheck: true, experimentalDecorators: true, emitDecoratorMetadata: true },
    ),
  ),
);

/** A handler for Lambda. The format is that of the bundle. */
const BUNDLES = [
  ["cjs", "with the SDK", []],
  ["cjs", "the SDK outside", ["--external:@aws-sdk/*"]],
  ["esm", "with the SDK", ["--main-fields=module,main", `--banner:js=${requireInEsm()}`]],
  ["esm", "the SDK outside", ["--external:@aws-sdk/*"]],
].map(([format, sdk, flags]) => {
  const bundle = format === "esm" ? "handler.mjs" : "handler.cjs";
  return {
    ...cell(
      `esbuild for Lambda, ${format}, ${sdk}`,
      "commonjs",
      { "handler.js": HANDLER, "invoke.cjs": INVOKE(`./${bundle}`) },
      ["invoke.cjs"],
    ),
    build: (folder) => esbuild(folder, ["handler.js", ...bundling(format, bundle), ...flags]),
  };
});

/** Who imports and require()s in one bundle gets one copy: bundlers, too, take the ES module for both. */
const ONE_BUNDLE = {
  ...cell("esbuild, import and require() in one bundle: one copy", "commonjs", { "main.js": BOTH_BUNDLED }, [
    "out.cjs",
  ]),
  build: (folder) => esbuild(folder, ["main.js", ...bundling("cjs", "out.cjs")]),
};

/** As the AWS documentation and CDK do it. */
export function bundling(format, outfile) {
  return [
    "--bundle",
    "--minify",
    "--platform=node",
    "--target=node20",
    `--format=${format}`,
    `--outfile=${outfile}`,
    "--log-level=warning",
  ];
}

/** The AWS SDK require()s Node's own modules, and an ES module has no require(): that of the bundle needs one. */
function requireInEsm() {
  return 'import { createRequire } from "node:module"; const require = createRequire(import.meta.url);';
}

/** A package that does not depend on the SDK itself, where pnpm lets it find only what it depends on. */
const STRICT = [
  compiled(
    COMPILERS[1],
    "declarations of inferred types",
    "module",
    { "main.ts": INFERRED_TYPES },
    {
      module: "nodenext",
      declaration: true,
    },
  ),
].map(({ files: { "entry-points.ts": _, ...files }, ...rest }) => ({
  ...rest,
  name: `pnpm, ${rest.name}`,
  files: { ...files, "tsconfig.json": files["tsconfig.json"].replace('"entry-points.ts",', "") },
}));

/** The application's client is older than the SDK that npm has put below the library. */
const OLDER_CLIENT = cell(
  "ESM, a client older than the library's own",
  "module",
  { "main.js": CLIENT_OF_THE_APPLICATION },
  ["main.js"],
);

/** The program of the page, as it stands there: only the table has a name of its own. */
const NEXT = {
  ...cell(
    "Next.js, the program of guides/http-services.md",
    "commonjs",
    {
      ...filesOf("docs/guides/http-services.md", /^(lib\/|app\/|instrumentation|requests)/, (code) =>
        code.replaceAll('"locks"', "String(process.env.TABLE_NAME)"),
      ),
      "package.json": JSON.stringify({ private: true }),
      "lib/shipping.ts": SHIPPING,
      "next.config.mjs": NEXT_CONFIG,
      "main.mjs": NEXT_CHECK,
    },
    ["main.mjs"],
  ),
  build: (folder) =>
    run(process.execPath, [join("..", "node_modules", "next", "dist", "bin", "next"), "build"], { cwd: folder }),
};

/** With the newest versions of the dependencies that the package allows, and with the lowest. */
export const CELLS = {
  newest: [...PLAIN, ...OTHERS, ...TEST_RUNNERS, ...DOMS, ...TESTING, ...BUNDLES, ONE_BUNDLE, ...TYPESCRIPT, ...MIXED],
  ...Object.fromEntries(NESTS.map((nest) => [`NestJS ${nest}`, NEST])),
  lowest: [...PLAIN.slice(0, 2), TEST_RUNNERS[0], TYPESCRIPT.find(({ name }) => /5\.9, module nodenext/.test(name))],
  "older client": [OLDER_CLIENT],
  "Next.js": [NEXT],
  pnpm: STRICT,
};

/** The programs that a page has readers save under these names. */
function filesOf(page, names, adapt) {
  const blocks = readFileSync(page, "utf8").matchAll(/^<!-- file: (\S+) -->\n```ts\n(.*?)^```$/gms);
  const files = [...blocks].filter(([, file]) => names.test(file)).map(([, file, code]) => [file, adapt(code)]);
  if (files.length === 0) throw new Error(`${page} has no programs of this name: ${names}`);
  return Object.fromEntries(files);
}

function esbuild(folder, args) {
  return run(join("..", "node_modules", ".bin", "esbuild"), args, { cwd: folder });
}

function cell(name, type, files, args) {
  return { name, files: { "package.json": manifest(type), ...files }, args };
}

function runner(name, type, files, args) {
  return { ...cell(name, type, files, args), byExitCode: true };
}
