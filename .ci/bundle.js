/**
 * Makes what is packed: dist/ holds one file for each entry point, and chunks that they
 * share. A program that imports one of them loads a file or two and not seventy, which took longer than all that they do.
 *
 * Each file is there twice, as an ES module (.js) for bundlers and as CommonJS (.cjs) for Node and Jest. The second is a
 * translation of the first, file by file, so that the entry points share classes and state there too. What Node gets from
 * an `import` (.mjs) exports the names of the CommonJS build, by way of .names.cjs: a process has one copy.
 *
 * Node does not get the ES module, because Node 20 parses all CommonJS files of the SDK for names where an ES module imports
 * it: `require("dynamutex")` then took 2.26 times as long as the SDK's client alone, and not 1.15 times. Bundlers do not get
 * CommonJS, with which a minified handler with the SDK was 580 kB and not 513 kB.
 *
 * What the manifest does not name as a dependency goes into the files as well, as far as it is used, with its license
 * beside it: zod, of which `zod/mini` alone would load all its languages, p-retry, and commander for the command.
 */
import { chmod, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { basename, join, relative } from "node:path";
import { build, transform } from "esbuild";
import ts from "typescript-5.9"; // the last major version of the compiler that is also a library
import { builtins } from "./builtins.js";
import { commonJsTypes, reachableTypes, withConstructorTexts } from "./declarations.js";
import { COMMANDS, DIST, MODULES } from "./entries.js";

/** The compiler has checked it, and its declarations are in dist/ already. */
const SOURCE = "lib";
/** Nobody reads the comments of what is packed: the declarations have those that users need. esbuild would keep some. */
const uncommented = {
  name: "uncommented",
  setup: ({ onLoad }) =>
    onLoad({ filter: /\blib\b.*\.ts$/ }, async ({ path }) => {
      const options = { target: "es2022", module: "esnext", verbatimModuleSyntax: true, removeComments: true };
      const { outputText } = ts.transpileModule(await readFile(path, "utf8"), { compilerOptions: options });
      return { contents: outputText };
    }),
};
const LICENSES = join(DIST, "THIRD-PARTY-LICENSES");

const { dependencies = {}, peerDependencies = {} } = JSON.parse(await readFile("package.json", "utf8"));
const shared = { bundle: true, metafile: true, platform: "node", target: "node20.19", logLevel: "warning" };

const modules = await build({
  ...shared,
  entryPoints: [...MODULES, ...COMMANDS].map(({ file }) => join(SOURCE, `${file}.ts`)),
  outdir: DIST,
  outbase: SOURCE,
  chunkNames: "shared-[hash]",
  splitting: true,
  plugins: [builtins, uncommented],
  format: "esm",
  external: Object.keys({ ...dependencies, ...peerDependencies }).flatMap((name) => [name, `${name}/*`]),
});

await build({
  ...shared,
  entryPoints: loadedBy(MODULES).map((file) => join(DIST, file)),
  outdir: DIST,
  outbase: DIST,
  outExtension: { ".js": ".cjs" },
  format: "cjs",
  packages: "external",
  // Jest refuses a dynamic import without a flag of Node's.
  supported: { "dynamic-import": false },
  plugins: [{ name: "file by file", setup: ({ onResolve }) => onResolve({ filter: /^\.\.?\// }, commonJsFile) }],
});

// Only bundlers and the command load these. Bundlers would make them as small; until then they only fill the tarball.
for (const file of Object.keys(modules.metafile.outputs)) {
  const { code } = await transform(await readFile(file, "utf8"), { minify: true, format: "esm", target: "node20.19" });
  await writeFile(file, code);
}
for (const { file } of COMMANDS) await chmod(join(DIST, `${file}.js`), 0o755);

const reachable = reachableTypes(MODULES.map(({ file }) => `${file}.d.ts`));
for (const file of await readdir(DIST, { recursive: true })) {
  if (file.endsWith(".d.ts") && !reachable.has(file)) await rm(join(DIST, file));
}
await removeEmptyFolders(DIST);
for (const file of reachable) await writeFile(join(DIST, file), withConstructorTexts(file));
for (const { file } of MODULES) await writeFile(join(DIST, `${file}.d.cts`), commonJsTypes(`${file}.d.ts`));

for (const { file } of MODULES) {
  const names = modules.metafile.outputs[`${DIST}/${file}.js`].exports.join(", ");
  const name = basename(file);
  await writeFile(join(DIST, `${file}.mjs`), `export { ${names} } from "./${name}.names.cjs";\n`);
  await writeFile(join(DIST, `${file}.names.cjs`), namesOf(name, names));
}

await writeFile(LICENSES, (await Promise.all(bundledPackages().map(notice))).join("\n"));

/**
 * Node parses the CommonJS file that an ES module imports for what it exports, which takes longer than to load it: 80 ms
 * for 300 kB on Node 20. So that file is a small one. `module.exports = require(…)` would have Node parse the other as well.
 */
function namesOf(name, names) {
  return `"use strict";
const all = require("./${name}.cjs");
module.exports = all;
0 && (module.exports = { ${names} });
`;
}

/** What a translated file requires instead of the ES module that its source imports. */
function commonJsFile({ kind, path }) {
  return kind === "entry-point" ? undefined : { path: path.replace(/\.js$/, ".cjs"), external: true };
}

/** The emitted files that these entries load, and they themselves. */
function loadedBy(entries) {
  const found = new Set(entries.map(({ file }) => `${file}.js`));
  for (const file of found) {
    const { imports } = modules.metafile.outputs[`${DIST}/${file}`];
    for (const { path, external: isPackage } of imports) if (!isPackage) found.add(relative(DIST, path));
  }
  return [...found];
}

async function removeEmptyFolders(folder) {
  const inside = await readdir(folder, { withFileTypes: true });
  for (const entry of inside) if (entry.isDirectory()) await removeEmptyFolders(join(folder, entry.name));
  if ((await readdir(folder)).length === 0) await rm(folder, { recursive: true });
}

/** The folders of the packages that went into the files. */
function bundledPackages() {
  const folders = Object.values(modules.metafile.outputs)
    .flatMap(({ inputs }) => Object.entries(inputs))
    .filter(([, { bytesInOutput }]) => bytesInOutput > 0)
    .flatMap(([file]) => /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(file) ?? []);
  return [...new Set(folders)].sort();
}

async function notice(folder) {
  const { name, version, license } = JSON.parse(await readFile(join(folder, "package.json"), "utf8"));
  const file = (await readdir(folder)).find((entry) => /^licen[cs]e(\.|$)/i.test(entry));
  if (file === undefined) throw new Error(`${folder} has no license, which dist/ must carry`);
  const text = await readFile(join(folder, file), "utf8");
  return `${DIST}/ contains parts of ${name} ${version}, under this license (${license}):\n\n${text}`;
}
