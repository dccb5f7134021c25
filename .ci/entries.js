/**
 * What the package consists of, as package.json says. Each entry has a source in lib/: `file` is its path there and in dist/,
 * without its ending, and `name` is what follows the package's name in an import.
 *
 * Bundlers get the ES module, by `import` and by `require()`. Everybody else gets the CommonJS build, by `import` as well: so a
 * process has one copy. bundle.js says why. `main`, `types` and `typesVersions` are for what does not read `exports`:
 * TypeScript's `moduleResolution: node10`, and old tools.
 */
import { readFileSync } from "node:fs";
import { relative } from "node:path";

/** Where the bundler writes. */
export const DIST = "dist";

const { exports, bin } = JSON.parse(readFileSync("package.json", "utf8"));

/** Those that can be imported. */
export const MODULES = Object.entries(exports).flatMap(([name, { module }]) =>
  module === undefined ? [] : { name, file: fileOf(module.default) },
);

/** Those that are programs. */
export const COMMANDS = Object.values(bin).map((path) => ({ file: fileOf(path) }));

function fileOf(path) {
  return relative(DIST, path).replace(/\.js$/, "");
}
