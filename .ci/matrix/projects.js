/** Fresh projects that install the tarball, each set below a folder whose node_modules they share. */
import { execFile } from "node:child_process";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { filesAt, stage } from "../release/stage.js";

const execute = promisify(execFile);

/** Runs a program. @returns what it printed; a failure has all of its output in the message. */
export async function run(program, args, options = {}) {
  try {
    const { stdout } = await execute(program, args, { maxBuffer: 64 * 1024 * 1024, timeout: 300_000, ...options });
    return stdout;
  } catch (error) {
    const told = `${error.stdout ?? ""}${error.stderr ?? ""}`.trim();
    throw new Error(told === "" ? error.message : told);
  }
}

/** Builds nothing: packs what is in dist/, as a release does. @returns the path of the tarball. */
export async function pack(folder) {
  const staged = join(folder, "staged");
  const manifest = await readJson("package.json");
  await stage(".", staged, filesAt(manifest, manifest.version));
  const stdout = await run("npm", ["pack", "--json", "--pack-destination", folder], { cwd: staged });
  const [packed] = JSON.parse(stdout);
  return { ...packed, path: join(folder, packed.filename) };
}

/**
 * Installs packages into a folder as a user would.
 * @param prefer `offline` for what npm's cache has; `online` asks the registry for each list of versions. Without that, a `latest`
 * of today may be one that an older list in the cache does not have, and npm finds no version that fits.
 */
export async function install(folder, packages, prefer) {
  await write(folder, { "package.json": JSON.stringify({ name: "matrix", private: true }) });
  const flags = [`--prefer-${prefer}`, "--no-audit", "--no-fund", "--no-save", "--no-package-lock", "--loglevel=error"];
  await run("npm", ["install", ...flags, ...packages], { cwd: folder });
}

/** The same by pnpm, which lets a package import only what it depends on itself. */
export async function installByPnpm(folder, packages) {
  await write(folder, { "package.json": JSON.stringify({ name: "matrix", private: true }) });
  await run("npx", ["-y", "-p", "pnpm@10", "pnpm", "add", "--silent", ...packages], { cwd: folder });
}

export async function write(folder, files) {
  for (const [file, text] of Object.entries(files)) {
    await mkdir(dirname(join(folder, file)), { recursive: true });
    await writeFile(join(folder, file), text);
  }
}

export async function readJson(...path) {
  return JSON.parse(await readFile(join(...path), "utf8"));
}

/** The version of an installed package. */
export async function versionIn(folder, name) {
  return (await readJson(folder, "node_modules", name, "package.json")).version;
}

/** The lowest version that a caret range allows, or several of them, from the lowest on. */
export function lowest(range) {
  const [, version] = /^\^(\d+\.\d+\.\d+)(?: \|\| |$)/.exec(range) ?? [];
  if (version === undefined) throw new Error(`${range} is no caret range`);
  return version;
}
