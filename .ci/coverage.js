/**
 * What the full suite runs of lib/, the command's own processes included: `npm run coverage`. It prints the totals and every
 * uncovered line, and exits with 1 below the bounds, or if a line of the folders that a lock depends on is not run.
 *
 * Jest counts what its own processes run. The command runs in processes of its own, from .jest/lib/cli/ in place of the
 * packed file, and Node writes what they ran into a folder. Both are made into one map.
 *
 *   npm run coverage                everything
 *   npm run coverage -- cli         the test files whose path contains "cli", without the bounds
 */
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import coverageLibrary from "istanbul-lib-coverage";
import v8ToIstanbul from "v8-to-istanbul";

const LEAST = { statements: 95, branches: 90 };
/** Folders in lib/ of which every line is run. */
const WHOLE = ["protocol", "taking", "holding"];
/** Except brackets, and lines that the compiler has shown to be unreachable. */
const UNREACHABLE = /^[\s{}()\];,]*$|\bsatisfies never;$/;

const patterns = process.argv.slice(2);
const processes = mkdtempSync(join(tmpdir(), "dynamutex-coverage-"));
try {
  const jest = [
    "--experimental-vm-modules",
    "node_modules/jest/bin/jest.js",
    ...["--selectProjects", "memory", "engine", "full"],
    "--coverage",
  ];
  // The reporters are a list: what followed would be one of them.
  const { status } = spawnSync(process.execPath, [...jest, ...patterns, "--coverageReporters=json"], {
    env: { ...process.env, CLI_COVERAGE: processes },
    stdio: "inherit",
  });
  const map = coverageLibrary.createCoverageMap(JSON.parse(readFileSync("coverage/coverage-final.json", "utf8")));
  map.merge(await ofProcesses(processes));
  process.exitCode = report(map) && status === 0 ? 0 : 1;
} finally {
  rmSync(processes, { recursive: true, force: true });
}

/** What the processes of the command have run of lib/. */
async function ofProcesses(folder) {
  const map = coverageLibrary.createCoverageMap({});
  for (const file of readdirSync(folder)) {
    const { result } = JSON.parse(readFileSync(join(folder, file), "utf8"));
    for (const { url, functions } of result) {
      if (!url.startsWith("file:")) continue;
      const path = fileURLToPath(url);
      if (!path.startsWith(join(process.cwd(), ".jest", "lib")) || !existsSync(path)) continue;
      const converter = v8ToIstanbul(path);
      await converter.load();
      converter.applyCoverage(functions);
      map.merge(converter.toIstanbul());
    }
  }
  return map;
}

/** @returns whether it is enough. */
function report(map) {
  const total = coverageLibrary.createCoverageSummary();
  const problems = [];
  for (const path of map.files().sort()) {
    const file = relative(process.cwd(), path).replace(/^\.jest\//, "");
    const of = map.fileCoverageFor(path);
    const summary = of.toSummary();
    total.merge(summary);
    const lines = of.getUncoveredLines().map(Number);
    if (lines.length > 0) console.log(`${file}: ${summary.statements.pct} %, not run: ${lines.join(" ")}`);
    if (!WHOLE.some((folder) => file.startsWith(`lib/${folder}/`))) continue;
    const text = readFileSync(path, "utf8").split("\n");
    for (const line of lines) {
      const code = text[line - 1] ?? "";
      if (!UNREACHABLE.test(code)) problems.push(`${file}:${line} is not run: ${code.trim()}`);
    }
  }
  const { statements, branches, functions } = total.toJSON();
  console.log(
    `coverage of lib/: ${statements.pct} % of statements, ${branches.pct} % of branches, ${functions.pct} % of functions`,
  );
  if (patterns.length > 0) return true;
  for (const [kind, least] of Object.entries(LEAST)) {
    if (total[kind].pct < least) problems.push(`${kind}: ${total[kind].pct} % is less than ${least} %`);
  }
  for (const problem of problems) console.error(problem);
  return problems.length === 0;
}
