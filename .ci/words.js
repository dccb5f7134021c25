// Counts the words of README and docs/, and fails above the bounds. What a tool writes does not count: the API reports, and what
// stands between the marks of a report or of the bench.
import { readdirSync, readFileSync } from "node:fs";

const WRITTEN = /<!-- report -->[\s\S]*?<!-- end of report -->|<!-- bench:(\w+) -->[\s\S]*?<!-- \/bench:\1 -->/g;
const BOUND = 45_000;
const README_BOUND = 1_300;

const pages = readdirSync("docs").filter((name) => name.endsWith(".md") && !name.endsWith(".api.md"));
const counts = new Map(["README.md", ...pages.map((name) => `docs/${name}`)].map((path) => [path, wordsOf(path)]));
const sum = [...counts.values()].reduce((total, count) => total + count, 0);

if (process.argv.includes("--all")) {
  for (const [path, count] of [...counts].sort(([, one], [, other]) => other - one)) console.log(`${count}\t${path}`);
}
console.log(`${sum} words in README and docs/, of which ${counts.get("README.md")} in README`);
if (sum > BOUND || counts.get("README.md") > README_BOUND) {
  console.error(`at most ${BOUND} and ${README_BOUND}: make it shorter`);
  process.exitCode = 1;
}

function wordsOf(path) {
  const text = readFileSync(path, "utf8").replaceAll(WRITTEN, "");
  return text.split(/\s+/).filter((word) => word !== "").length;
}
