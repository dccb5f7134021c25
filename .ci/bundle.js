/**
 * Makes one file of the compiled library: a program that imports it loads, parses and links one module and not seventy,
 * which took longer than all that they do. The declarations stay as they are, and so does every name in a stack trace.
 */
import { readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { build } from "esbuild";

const DIST = "dist";
const ENTRY = join(DIST, "index.js");

await build({
  entryPoints: [ENTRY],
  outfile: ENTRY,
  allowOverwrite: true,
  bundle: true,
  packages: "external",
  platform: "node",
  format: "esm",
  target: "node20.19",
  sourcemap: true,
  sourcesContent: false,
  logLevel: "warning",
});

const parts = (await readdir(DIST, { recursive: true })).filter((file) => /\.js(\.map)?$/.test(file));
for (const file of parts) if (!file.startsWith("index.js")) await rm(join(DIST, file));
