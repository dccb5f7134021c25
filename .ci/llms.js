/** llms.txt, and what README says first. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { DESIGN, index } from "./pages.js";

/**
 * llms.txt, as https://llmstxt.org describes it: its links lead to the pages beside it, in the site and in the tarball.
 * @param withDesign whether the pages for maintainers are there.
 */
export function llmsText({ root = ".", withDesign }) {
  const { name, paragraph } = overview(root);
  const groups = index(root)
    .filter(({ heading }) => withDesign || heading !== DESIGN)
    // "Optional" has a meaning there: what a reader with little room leaves out.
    .map(({ heading, pages }) => `## ${heading === DESIGN ? "Optional" : heading}\n\n${pages.map(line).join("\n")}`);
  const first = "- [Overview](README.md): install, take a lock, what is promised";
  return [`# ${name}`, `> ${paragraph}`, first, ...groups].join("\n\n").concat("\n");
}

/** What README says first: the paragraph, how to install it, the first program, and what it is the wrong choice for. */
export function overview(root = ".") {
  const { name } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  const readme = readFileSync(join(root, "README.md"), "utf8");
  const [program] = /^```ts\n[\s\S]*?^```$/m.exec(readme) ?? [];
  const [, paragraph] = /^# .+\n+((?:[A-Z].*\n)(?:.+\n)*)/.exec(readme) ?? [];
  const [install = ""] = /^```sh\n[\s\S]*?^```$/m.exec(readme) ?? [];
  const [wrong = ""] = /^It is the wrong choice (?:.+\n)+/m.exec(readme) ?? [];
  if (program === undefined || paragraph === undefined) {
    throw new Error("README.md does not begin with a paragraph and a program");
  }
  const plain = paragraph
    .trim()
    .replaceAll("\n", " ")
    .replaceAll(/\[([^\]]+)\]\([^)]+\)/g, "$1");
  return { name, paragraph: plain, install, program, wrong };
}

function line({ title, path, question }) {
  return `- [${title}](${path}): ${question}`;
}
