/**
 * Transpiles lib, tests, examples and bench into .jest/, a file at a time and in a second: for what tests and proofs start as
 * processes of their own. It checks no types; `npm run check` does.
 */
import { readdirSync, readFileSync } from "node:fs";
import { mkdir, rm, writeFile } from "node:fs/promises";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { transpile } from "./transpiler.js";

const ROOT = join(import.meta.dirname, "..");
const FOLDERS = ["lib", "__tests__", "examples", "bench"];

/** Empties .jest/ first: the program of a source that is gone would go on running. */
export async function transpileAll(target = join(ROOT, ".jest")) {
  await rm(target, { recursive: true, force: true });
  const sources = FOLDERS.flatMap((folder) => sourcesIn(join(ROOT, folder)));
  await Promise.all(sources.map((path) => transpileTo(path, join(target, relative(ROOT, path)).replace(/ts$/, "js"))));
}

async function transpileTo(path, output) {
  const { code, map } = await transpile(readFileSync(path, "utf8"), path);
  await mkdir(dirname(output), { recursive: true });
  await writeFile(`${output}.map`, map);
  await writeFile(output, `${code}\n//# sourceMappingURL=${output.split("/").at(-1)}.map\n`);
}

function sourcesIn(folder) {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return entry.name === "node_modules" ? [] : sourcesIn(path);
    return /(?<!\.d)\.ts$/.test(entry.name) ? [path] : [];
  });
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await transpileAll();
