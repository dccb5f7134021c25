/**
 * What the package consists of, and what package.json says of it.
 *
 *   node .ci/entries.js --write      writes that into package.json
 */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { isDeepStrictEqual } from "node:util";

/** Where the bundler writes. */
export const DIST = "dist";

/**
 * What is packed as a program or as something to import: each has a source in lib/. `file` is its path there and in
 * dist/, without its ending; `name` is what follows the package's name in an import. One whose source is not there is
 * left out.
 */
export const ENTRIES = [
  { name: ".", file: "index" },
  { name: "./testing", file: "testing/index" },
  { name: "./otel", file: "otel/index" },
  { name: "./prom-client", file: "prom-client/index" },
  { name: "./node-cron", file: "node-cron/index" },
  { name: "./nestjs", file: "nestjs/index" },
  { command: "dynamutex", file: "cli/main" },
].filter(({ file }) => existsSync(`lib/${file}.ts`));

/** Those that can be imported. */
export const MODULES = ENTRIES.filter(({ name }) => name !== undefined);

/** The fields of the manifest that name files in dist/. */
export function manifestFields() {
  const commands = ENTRIES.filter(({ command }) => command !== undefined);
  const others = MODULES.filter(({ name }) => name !== ".");
  return {
    // What does not read `exports`: TypeScript's `moduleResolution: node10`, and old tools.
    main: `./${DIST}/index.cjs`,
    types: `./${DIST}/index.d.ts`,
    typesVersions:
      others.length === 0
        ? undefined
        : { "*": Object.fromEntries(others.map(({ name, file }) => [name.slice(2), [`./${DIST}/${file}.d.ts`]])) },
    exports: {
      ...Object.fromEntries(MODULES.map(({ name, file }) => [name, conditions(file)])),
      "./package.json": "./package.json",
    },
    bin:
      commands.length === 0
        ? undefined
        : Object.fromEntries(commands.map(({ command, file }) => [command, `./${DIST}/${file}.js`])),
  };
}

/**
 * Bundlers get the ES module, by `import` and by `require()`. Everybody else gets the CommonJS build, by `import` as well:
 * so a process has one copy. bundle.js says why.
 */
function conditions(file) {
  const types = `./${DIST}/${file}.d.ts`;
  return {
    module: { types, default: `./${DIST}/${file}.js` },
    require: { types: `./${DIST}/${file}.d.cts`, default: `./${DIST}/${file}.cjs` },
    default: { types, default: `./${DIST}/${file}.mjs` },
  };
}

/** Throws unless package.json names exactly what is built. */
export function checkManifest() {
  const manifest = JSON.parse(readFileSync("package.json", "utf8"));
  for (const [field, value] of Object.entries(manifestFields())) {
    if (isDeepStrictEqual(manifest[field], value)) continue;
    throw new Error(`package.json: "${field}" does not name what is built: run node .ci/entries.js --write`);
  }
}

if (process.argv[1] === import.meta.filename && process.argv[2] === "--write") {
  const manifest = JSON.parse(readFileSync("package.json", "utf8"));
  const { exports, ...fields } = manifestFields();
  const written = {};
  for (const [field, value] of Object.entries(manifest)) {
    if (field === "exports") Object.assign(written, fields, { exports });
    else if (!(field in fields)) written[field] = value;
  }
  writeFileSync("package.json", `${JSON.stringify(written, null, 2)}\n`);
}
