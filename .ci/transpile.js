/**
 * Transpiles folders, a file at a time and in a second or two, for what runs as a process of its own. It checks no types:
 * `npm run check` does.
 *
 *   node .ci/transpile.js                       lib, tests, examples and bench, for tests and proofs, into .jest/
 *   node .ci/transpile.js .examples examples    examples into .examples/examples/
 */
import { readdirSync, readFileSync } from "node:fs";
import { mkdir, rm, writeFile } from "node:fs/promises";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { transpile } from "./transpiler.js";

const ROOT = join(import.meta.dirname, "..");
const FOLDERS = ["lib", "__tests__", "examples", "bench"];

/** Empties the target first: the program of a source that is gone would go on running. */
export async function transpileAll(target = ".jest", folders = FOLDERS) {
  const output = join(ROOT, target);
  await rm(output, { recursive: true, force: true });
  const sources = folders.flatMap((folder) => sourcesIn(join(ROOT, folder)));
  await Promise.all(sources.map((path) => transpileTo(path, join(output, relative(ROOT, path)).replace(/ts$/, "js"))));
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

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [target, ...folders] = process.argv.slice(2);
  await transpileAll(target, folders.length > 0 ? folders : FOLDERS);
}
