/**
 * Copies what the site shows into one folder: README, docs/, the other pages of the root, and a page for each file of examples/
 * that one of them links to. Links keep working as they are written, because everything keeps its place.
 */
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, extname, join } from "node:path";

const ROOT_PAGES = ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "LICENSE"];
const LINK = /\]\((?!https?:|#|mailto:)([^)#\s]+)(#[^)\s]*)?\)/g;

/** Stages the site in `folder`, and returns the paths of its pages. */
export function stage(folder) {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  cpSync("docs", join(folder, "docs"), { recursive: true });
  const waiting = [...ROOT_PAGES, ...readdirSync("docs").map((name) => `docs/${name}`)];
  const pages = new Set();
  for (const path of waiting) {
    if (pages.has(path) || !isShown(path)) continue;
    pages.add(path);
    const text = textOf(path).replaceAll(LINK, (link, target, anchor = "") => {
      const linked = join(dirname(path), target).replace(/\/$/, "");
      if (!existsSync(linked)) throw new Error(`${path} links to ${target}, which is not there`);
      if (!isShown(linked)) return link; // a picture
      waiting.push(linked);
      return `](/${pageOf(linked)}${anchor})`;
    });
    const file = join(folder, pageOf(path));
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text);
  }
  return [...pages].map(pageOf);
}

function isShown(path) {
  return statSync(path).isDirectory() || ["", ".md", ".ts", ".js", ".json", ".sh"].includes(extname(path));
}

/** Where the page of a file or folder is: Markdown as itself, and everything else beside its own name. */
function pageOf(path) {
  if (path === "README.md") return "index.md";
  if (path.endsWith("/README.md")) return path.replace(/README\.md$/, "index.md");
  return path.endsWith(".md") ? path : `${path.replaceAll(".", "-")}.md`;
}

function textOf(path) {
  if (path.endsWith(".md")) return readFileSync(path, "utf8");
  const files = statSync(path).isDirectory() ? readdirSync(path).map((name) => join(path, name)) : [path];
  return [`# ${path}`, ...files.filter((file) => statSync(file).isFile()).map(blockOf)].join("\n\n");
}

function blockOf(file) {
  const language = extname(file).slice(1) || "text";
  const text = readFileSync(file, "utf8");
  if (language === "md") return `## ${file}\n\nSee [${file}](/${pageOf(file)}).`;
  return `## ${file}\n\n\`\`\`\`${language}\n${text.trimEnd()}\n\`\`\`\``;
}
