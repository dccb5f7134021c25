// Counts the words of README and docs/, and fails above the bounds: the pages for users, and apart from them those for maintainers.
// What a tool writes does not count: the API reports, and what stands between the marks of a report or of the bench.
import { readFileSync } from "node:fs";
import { DESIGN, guides, index } from "./pages.js";

const WRITTEN = /<!-- report -->[\s\S]*?<!-- end of report -->|<!-- bench:(\w+) -->[\s\S]*?<!-- \/bench:\1 -->/g;
const README_BOUND = 1_300;

const design =
  index()
    .find(({ heading }) => heading === DESIGN)
    ?.pages.map(({ path }) => path) ?? [];
const groups = [
  { readers: "users", bound: 46_000, pages: ["README.md", "docs/README.md", ...guides()] },
  { readers: "maintainers", bound: 4_500, pages: design },
].map((group) => ({ ...group, counts: new Map(group.pages.filter(isOurs).map((path) => [path, wordsOf(path)])) }));

for (const { readers, bound, counts } of groups) {
  if (process.argv.includes("--all")) {
    for (const [path, count] of [...counts].sort(([, one], [, other]) => other - one)) console.log(`${count}\t${path}`);
  }
  const sum = [...counts.values()].reduce((total, count) => total + count, 0);
  console.log(`${sum} words for ${readers}, of at most ${bound}`);
  if (sum > bound) fail();
}
if (wordsOf("README.md") > README_BOUND) fail();

function fail() {
  console.error(`make it shorter; README has ${wordsOf("README.md")} words, of at most ${README_BOUND}`);
  process.exitCode = 1;
}

/** A page of docs/ that nobody generates. */
function isOurs(path) {
  return path === "README.md" || (path.startsWith("docs/") && !path.endsWith(".api.md"));
}

function wordsOf(path) {
  const text = readFileSync(path, "utf8").replaceAll(WRITTEN, "");
  return text.split(/\s+/).filter((word) => word !== "").length;
}
