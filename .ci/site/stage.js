/**
 * Copies what the site shows into one folder: README, docs/, the other pages of the root, and a page for each file of examples/
 * that one of them links to, with links between them. Everything keeps its place, except that README.md of a folder is its index.
 */
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { basename, dirname, extname, join, relative } from "node:path";
import { llmsText } from "../llms.js";
import { guides } from "../pages.js";
import { startPage } from "./start-page.js";

const ROOT_PAGES = ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "AGENTS.md", "LICENSE"];
const LINK = /\]\((?!https?:|#|mailto:)([^)#\s]+)(#[^)\s]*)?\)/g;

/**
 * Stages the site in `pages`, and in `twins` what lies beside the built pages: each as Markdown, and llms.txt.
 * @returns the pages: the `path` of each, and whether it is `found` by the search.
 */
export function stage({ pages, twins }) {
  for (const folder of [pages, twins]) {
    rmSync(folder, { recursive: true, force: true });
    mkdirSync(folder, { recursive: true });
  }
  cpSync(join(import.meta.dirname, "public"), join(pages, "public"), { recursive: true });
  for (const folder of [pages, twins])
    cpSync("docs", join(folder, "docs"), { recursive: true, filter: (path) => !isPage(path) });
  const found = new Set([...guides(), "README.md", "CHANGELOG.md", "docs/README.md"]);
  const staged = [];
  const add = (page, twin, matter, isFound) => {
    write(join(pages, page), `${frontMatter({ ...matter, ...(isFound ? {} : { search: false }) })}${twin}`);
    write(join(twins, page), twin);
    staged.push({ path: page, isFound });
  };

  const { matter, text } = startPage();
  write(join(pages, "index.md"), `${frontMatter({ ...matter, search: false })}${text}`);
  for (const name of ["index.md", "llms.txt"]) write(join(twins, name), llmsText({ withDesign: true }));
  staged.push({ path: "index.md", isFound: false });

  const waiting = [
    ...ROOT_PAGES,
    ...readdirSync("docs", { recursive: true })
      .filter(isPage)
      .map((name) => `docs/${name}`),
  ];
  const seen = new Set();
  for (const path of waiting) {
    if (seen.has(path) || !isShown(path)) continue;
    seen.add(path);
    const page = pageOf(path);
    const twin = textOf(path).replaceAll(LINK, (link, target, anchor = "") => {
      const linked = join(dirname(path), target).replace(/\/$/, "");
      if (!existsSync(linked)) throw new Error(`${path} links to ${target}, which is not there`);
      if (!isShown(linked)) return link; // a picture
      waiting.push(linked);
      return `](${relative(dirname(page), pageOf(linked))}${anchor})`;
    });
    const isExample = path.startsWith("examples/") && path.endsWith(".md");
    const isFound = found.has(path) || isExample;
    // The long lines of a source wrap; those of a guide are short.
    add(
      page,
      twin,
      { ...(page === path ? {} : { editLink: false }), ...(isFound ? {} : { pageClass: "sources" }) },
      isFound,
    );
  }
  return staged;
}

function write(file, text) {
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
}

/** JSON is YAML. */
function frontMatter(matter) {
  return Object.keys(matter).length === 0 ? "" : `---\n${JSON.stringify(matter)}\n---\n\n`;
}

function isPage(path) {
  return path.endsWith(".md");
}

function isShown(path) {
  return statSync(path).isDirectory() || ["", ".md", ".ts", ".js", ".json", ".sh", ".yml"].includes(extname(path));
}

/** Where the page of a file or folder is: Markdown as itself, and everything else beside its own name. */
function pageOf(path) {
  if (basename(path) === "README.md" && path !== "README.md") return join(dirname(path), "index.md");
  return path.endsWith(".md") ? path : `${path.replaceAll(".", "-")}.md`;
}

function textOf(path) {
  if (path.endsWith(".md")) return readFileSync(path, "utf8");
  const files = statSync(path).isDirectory() ? readdirSync(path).map((name) => join(path, name)) : [path];
  return [`# ${path}`, ...files.filter((file) => statSync(file).isFile()).map((file) => blockOf(file, path))].join(
    "\n\n",
  );
}

function blockOf(file, of) {
  const language = extname(file).slice(1) || "text";
  const text = readFileSync(file, "utf8");
  if (language === "md") return `## ${file}\n\nSee [${file}](${relative(dirname(of), file)}).`;
  return `## ${file}\n\n\`\`\`\`${language}\n${text.trimEnd()}\n\`\`\`\``;
}
