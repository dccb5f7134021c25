/**
 * Transpiles folders, a file at a time and in a second or two, for what runs as a process of its own. It checks no types:
 * `npm run check` does. It replaces what has changed and removes what has no source any more: programs that run from there go on.
 *
 *   node .ci/transpile.js                       lib, tests, examples and bench, for tests and proofs, into .jest/
 *   node .ci/transpile.js .examples examples    examples into .examples/examples/
 */
import { existsSync, readdirSync } from "node:fs";
import { mkdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { transpile } from "./transpiler.js";

const ROOT = join(import.meta.dirname, "..");
const FOLDERS = ["lib", "__tests__", "examples", "bench"];

export async function transpileAll(target = ".jest", folders = FOLDERS) {
  const sources = folders.flatMap((folder) => filesIn(join(ROOT, folder))).filter((path) => /(?<!\.d)\.ts$/.test(path));
  const outputOf = (path) => join(ROOT, target, relative(ROOT, path)).replace(/ts$/, "js");
  await Promise.all(sources.map((path) => transpileTo(path, outputOf(path))));
  const outputs = new Set(sources.map(outputOf));
  const stale = filesIn(join(ROOT, target)).filter(
    (path) => /\.js(\.map)?$/.test(path) && !outputs.has(path.replace(/\.map$/, "")),
  );
  await Promise.all(stale.map((path) => rm(path, { force: true })));
}

async function transpileTo(path, output) {
  const { code, map } = await transpile(await readFile(path, "utf8"), path);
  await mkdir(dirname(output), { recursive: true });
  await replace(`${output}.map`, map);
  await replace(output, `${code}\n//# sourceMappingURL=${output.split("/").at(-1)}.map\n`);
}

/** In one step, and only where it differs. */
async function replace(path, text) {
  if ((await readFile(path, "utf8").catch(() => undefined)) === text) return;
  const half = `${path}.${process.pid}`;
  await writeFile(half, text);
  await rename(half, path);
}

function filesIn(folder) {
  if (!existsSync(folder)) return [];
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return entry.name === "node_modules" ? [] : filesIn(path);
    return [path];
  });
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [target, ...folders] = process.argv.slice(2);
  await transpileAll(target, folders.length > 0 ? folders : FOLDERS);
}
