/**
 * Writes the API reference into temp/api, from the doc comments of all entry points. A warning is an error: a link that
 * leads nowhere, a type that is shown and not documented.
 *
 * typedoc does not work with TypeScript 7, so it comes from npx with a compiler of its own.
 */
import { spawnSync } from "node:child_process";
import { MODULES } from "./entries.js";

const packages = ["typedoc@0.28.20", "typescript@6.0.3"].flatMap((name) => ["-p", name]);
const entries = MODULES.map(({ file }) => `lib/${file}.ts`);
const { status } = spawnSync("npx", ["-y", ...packages, "typedoc", "--options", ".ci/typedoc.json", ...entries], {
  stdio: "inherit",
});
process.exitCode = status ?? 1;
