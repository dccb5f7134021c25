/** The first page of the site, and llms.txt: what the library is, its first program, and the index. */
import { readFileSync } from "node:fs";
import { DESIGN, index } from "../pages.js";

/** The start page: its front matter, which VitePress shows as a head, and its text. */
export function startPage() {
  const { name, paragraph, program } = overview();
  const matter = {
    layout: "home",
    hero: {
      name,
      tagline: paragraph,
      actions: [
        { theme: "brand", text: "Get started", link: "/docs/getting-started" },
        { theme: "alt", text: "Overview", link: "/README" },
        { theme: "alt", text: "Which page has my answer?", link: "/docs/" },
      ],
    },
  };
  const groups = index().map((group) => `<div>\n\n### ${group.heading}\n\n${listOf(group, titled)}\n\n</div>`);
  return { matter, text: `${program}\n\n## Where to go\n\n<div class="groups">\n\n${groups.join("\n\n")}\n\n</div>\n` };
}

/**
 * llms.txt, as https://llmstxt.org describes it: what lies beside it, in the site and in the tarball.
 * @param withDesign whether the pages for maintainers are there.
 */
export function llmsText({ withDesign = true } = {}) {
  const { name, paragraph } = overview();
  const groups = index()
    .filter(({ heading }) => withDesign || heading !== DESIGN)
    // "Optional" has a meaning there: what a reader with little room leaves out.
    .map((group) => `## ${group.heading === DESIGN ? "Optional" : group.heading}\n\n${listOf(group, questioned)}`);
  const first = "- [Overview](README.md): install, take a lock, what is promised";
  return [`# ${name}`, `> ${paragraph}`, first, ...groups].join("\n\n").concat("\n");
}

/** What README says first. */
function overview() {
  const { name } = JSON.parse(readFileSync("package.json", "utf8"));
  const readme = readFileSync("README.md", "utf8");
  const [program] = /^```ts\n[\s\S]*?^```$/m.exec(readme) ?? [];
  const [, paragraph] = /^# .+\n+((?:[A-Z].*\n)(?:.+\n)*)/.exec(readme) ?? [];
  if (program === undefined || paragraph === undefined)
    throw new Error("README.md begins without a paragraph or program");
  const plain = paragraph
    .trim()
    .replaceAll("\n", " ")
    .replaceAll(/\[([^\]]+)\]\([^)]+\)/g, "$1");
  return { name, paragraph: plain, program };
}

function listOf({ pages }, line) {
  return pages.map(line).join("\n");
}

function titled({ title, path }) {
  return `- [${title}](${path})`;
}

function questioned({ title, path, question }) {
  return `- [${title}](${path}): ${question}`;
}
