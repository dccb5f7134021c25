import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { BENCH_FOLDER } from "./contenders/peers.js";

/** Sees that what the bench compares with is installed in `bench/`, and says what is missing if it cannot be. */
export function provide(): void {
  const missing = missingPackages();
  if (missing.length === 0) return;
  console.error(`bench/ lacks ${missing.join(", ")}: running npm ci there`);
  const { status } = spawnSync("npm", ["ci", "--no-fund", "--no-audit"], {
    cwd: BENCH_FOLDER,
    stdio: ["ignore", 2, 2],
    shell: process.platform === "win32",
  });
  const still = missingPackages();
  if (status === 0 && still.length === 0) return;
  console.error(
    `The bench needs ${still.join(", ")} in bench/node_modules, and \`npm ci\` in bench/ did not bring them: ` +
      "see what it said above, and run it where a package registry can be reached.",
  );
  process.exit(1);
}

/** Those that are not there in the version that bench/package.json names. */
function missingPackages(): string[] {
  const { dependencies } = JSON.parse(readFileSync(join(BENCH_FOLDER, "package.json"), "utf8"));
  return Object.entries(dependencies as Record<string, string>)
    .filter(([name, version]) => installedVersion(name) !== version)
    .map(([name, version]) => `${name}@${version}`);
}

function installedVersion(name: string): string | undefined {
  const manifest = join(BENCH_FOLDER, "node_modules", name, "package.json");
  return existsSync(manifest) ? JSON.parse(readFileSync(manifest, "utf8")).version : undefined;
}
