/** What the package weighs, as it is installed, bundled and imported. */
import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { bundling } from "./cells.js";
import { SMALL_HANDLER } from "./programs.js";
import { readJson, run, write } from "./projects.js";

/** What each was when somebody last looked, in bytes. docs/reference/packaging.md has the figures for users. */
const RECORDED = { installed: 1_372_000, tarball: 416_000, withSdk: 764_000, withoutSdk: 229_000, loaded: 464_000 };
/** A size that grows by more than this is an accident, or a decision to record. */
const ROOM = 1.05;
/**
 * What an import costs in CPU time differs between machines, and beside other work: by `require()` on Node.js 20, 1.16 to 1.39 were
 * seen. So growth is told by the size of what is loaded, which is the same everywhere, and this bound is for code that does much as
 * it is loaded.
 */
const MOST_IMPORT_RATIO = 1.6;

/** An import is measured so often, and its fastest counts: noise only adds. */
const ROUNDS = 15;

const NAMES = ["dynamutex", "@aws-sdk/client-dynamodb"];

const LOADS = {
  ESM: (name) => ["--input-type=module", "-e", timed(`await import(${JSON.stringify(name)})`)],
  CommonJS: (name) => ["--input-type=commonjs", "-e", timed(`require(${JSON.stringify(name)})`)],
};

/** Prints a line for each figure. @returns how many have grown too much. */
export async function sizes({ root, tarball, nodes }) {
  let tooLarge = 0;
  const tell = (what, value, most, format = kilobytes) => {
    const isFine = value <= most;
    if (!isFine) tooLarge += 1;
    console.log(`${isFine ? "ok    " : "FAIL  "}${what}: ${format(value)}, at most ${format(most)}`);
  };
  const tellSize = (what, bytes, recorded) => tell(what, bytes, recorded * ROOM);

  tellSize("the tarball", tarball.size, RECORDED.tarball);
  tellSize("installed, without the SDK", await installedSize(root), RECORDED.installed);
  for (const format of ["esm", "cjs"]) {
    tellSize(`a minified handler (${format}), with the SDK`, await bundleSize(root, format, []), RECORDED.withSdk);
    const outside = await bundleSize(root, format, ["--external:@aws-sdk/*"]);
    tellSize(`a minified handler (${format}), the SDK outside`, outside, RECORDED.withoutSdk);
  }
  for (const { major, path } of nodes) {
    tellSize(`loaded by an import on Node ${major}, without the client`, await loadedSize(root, path), RECORDED.loaded);
    for (const [way, argsFor] of Object.entries(LOADS)) {
      const [library, client] = await fastest(root, path, argsFor, NAMES);
      const what = `import on Node ${major}, ${way}: ${ms(library)} of CPU time, the DynamoDB client's ${ms(client)}`;
      tell(what, library / client, MOST_IMPORT_RATIO, (ratio) => `${ratio.toFixed(2)} x`);
    }
  }
  return tooLarge;
}

/** The package, and what npm installs for it, except the SDK and what that brings. */
async function installedSize(root) {
  const seen = new Set(["dynamutex"]);
  let bytes = 0;
  for (const name of seen) {
    const folder = join(root, "node_modules", name);
    bytes += await folderSize(folder);
    const { dependencies = {} } = await readJson(folder, "package.json");
    for (const dependency of Object.keys(dependencies)) if (!dependency.startsWith("@aws-sdk/")) seen.add(dependency);
  }
  return bytes;
}

async function folderSize(folder) {
  let bytes = 0;
  for (const file of await readdir(folder, { recursive: true, withFileTypes: true })) {
    if (file.isFile()) bytes += (await stat(join(file.parentPath, file.name))).size;
  }
  return bytes;
}

async function bundleSize(root, format, flags) {
  const folder = join(root, "measured");
  const outfile = `${format}-${flags.length}.js`;
  await write(folder, { "handler.mjs": SMALL_HANDLER });
  await run(join("..", "node_modules", ".bin", "esbuild"), ["handler.mjs", ...bundling(format, outfile), ...flags], {
    cwd: folder,
  });
  return (await stat(join(folder, outfile))).size;
}

/** The size of the files that the package loads, other than those that the client loads. An `import` loads the same as a `require()`. */
async function loadedSize(cwd, node) {
  const [files, ofClient] = await Promise.all(
    NAMES.map(async (name) => {
      const program = `require(${JSON.stringify(name)}); process.stdout.write(JSON.stringify(Object.keys(require.cache)));`;
      return JSON.parse(await run(node, ["--input-type=commonjs", "-e", program], { cwd }));
    }),
  );
  const own = files.filter((file) => !ofClient.includes(file));
  const sizesOfFiles = await Promise.all(own.map(async (file) => (await stat(file)).size));
  return sizesOfFiles.reduce((sum, size) => sum + size, 0);
}

/** The fastest of several imports of each, taken in turn. */
async function fastest(cwd, node, argsFor, names) {
  const best = names.map(() => Number.POSITIVE_INFINITY);
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const [index, name] of names.entries()) {
      best[index] = Math.min(best[index], Number(await run(node, argsFor(name), { cwd })));
    }
  }
  return best;
}

function timed(load) {
  return `const before = process.cpuUsage(); ${load}; const { user, system } = process.cpuUsage(before); process.stdout.write(String((user + system) / 1000));`;
}

function ms(value) {
  return `${Math.round(value)} ms`;
}

function kilobytes(bytes) {
  return `${(bytes / 1_000).toFixed(1)} kB`;
}
