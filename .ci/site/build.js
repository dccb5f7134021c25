/**
 * `npm run docs` builds a static site of README, docs/ and the API into temp/site/built, with search; beside each page lies
 * its Markdown, and llms.txt leads to these. With `--look` it opens every page of it in a headless Chromium.
 */
import { spawnSync } from "node:child_process";
import { cpSync, existsSync, writeFileSync } from "node:fs";
import { stage } from "./stage.js";

const HERE = ".ci/site";
const PAGES = "temp/site/pages";
const TWINS = "temp/site/twins";
const BUILT = "temp/site/built";

run("npm", ["ci", "--no-audit", "--no-fund"], HERE);
const staged = stage({ pages: PAGES, twins: TWINS });
writeFileSync("temp/site/pages.json", JSON.stringify(staged));
run("node", [".ci/api-docs.js"]);
run("node", [`${HERE}/node_modules/vitepress/bin/vitepress.js`, "build", HERE]);
cpSync(TWINS, BUILT, { recursive: true });
cpSync("temp/api", `${BUILT}/api`, { recursive: true });
console.log(`${staged.length} pages: ${BUILT}/index.html`);

if (process.argv.includes("--look")) {
  if (!existsSync(process.env.CHROMIUM ?? "/usr/bin/chromium")) {
    throw new Error("There is no Chromium: install it, or say where it is in CHROMIUM");
  }
  run("node", [`${HERE}/look.js`, BUILT]);
}

function run(command, words, cwd = ".") {
  const { status } = spawnSync(command, words, { stdio: "inherit", cwd });
  if (status !== 0) process.exit(status ?? 1);
}
