/**
 * Makes one file of each entry point of the compiled library, and one of what they share: a program that imports it loads,
 * parses and links one or two modules and not seventy, which took longer than all that they do. The declarations stay as they
 * are, and so does every name in a stack trace.
 *
 * What the manifest does not name as a dependency goes into them as well, as far as it is used, with its license
 * beside it: zod, of which `zod/mini` alone would load all its languages, and p-retry, for the time that it takes to load.
 */
import { chmod, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { build } from "esbuild";
import { builtins } from "./builtins.js";

const DIST = "dist";
const COMMAND = join(DIST, "cli", "main.js");
const ENTRIES = ["index", "testing/index", "otel/index", "cli/main"];
const LICENSES = join(DIST, "THIRD-PARTY-LICENSES");

const { dependencies, peerDependencies } = JSON.parse(await readFile("package.json", "utf8"));
const { metafile } = await build({
  entryPoints: ENTRIES.map((entry) => ({ in: join(DIST, `${entry}.js`), out: entry })),
  outdir: DIST,
  plugins: [builtins],
  allowOverwrite: true,
  bundle: true,
  splitting: true,
  chunkNames: "shared-[hash]",
  external: Object.keys({ ...dependencies, ...peerDependencies }).flatMap((name) => [name, `${name}/*`]),
  metafile: true,
  platform: "node",
  format: "esm",
  target: "node20.19",
  sourcemap: true,
  sourcesContent: false,
  logLevel: "warning",
});

const parts = (await readdir(DIST, { recursive: true })).filter((file) => /\.js(\.map)?$/.test(file));
for (const file of parts) if (!(join(DIST, file) in metafile.outputs)) await rm(join(DIST, file));
await chmod(COMMAND, 0o755);

await writeFile(LICENSES, (await Promise.all(bundledPackages().map(notice))).join("\n"));

/** The folders of the packages that went into the files. */
function bundledPackages() {
  const folders = Object.values(metafile.outputs)
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
  return `dist/ contains parts of ${name} ${version}, under this license (${license}):\n\n${text}`;
}
