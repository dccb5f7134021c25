import { readdirSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";

const ROOT = process.cwd();

/** A Markdown file of the repository. */
export interface Page {
  /** From the root: `docs/guides/cron.md`. */
  readonly path: string;
  readonly text: string;
}

/** A fenced block. */
export interface Block {
  readonly page: string;
  readonly language: string;
  readonly line: number;
  readonly text: string;
  /** Whether the page marks it as one that the tests run, with `<!-- runs -->` above it. */
  readonly runs: boolean;
  /** Where the reader saves it, or adds it, with `<!-- file: worker.ts -->` above it: tests start such a program by that name. */
  readonly files: readonly string[];
}

export function pageAt(path: string): Page {
  return { path, text: readFileSync(join(ROOT, path), "utf8") };
}

/** The pages in docs/ and its folders, in order. */
export function docsPages(): readonly Page[] {
  const names = readdirSync(join(ROOT, "docs"), { recursive: true, encoding: "utf8" });
  return names
    .filter((name) => name.endsWith(".md"))
    .sort()
    .map((name) => pageAt(`docs/${name}`));
}

/** The page in docs/ that has this name, whatever its folder: `cron.md`. */
export function docsPage(name: string): Page {
  const [page, ...more] = docsPages().filter(({ path }) => basename(path) === name);
  if (page === undefined || more.length > 0)
    throw new Error(`docs/ has ${more.length + (page ? 1 : 0)} pages named ${name}`);
  return page;
}

/** The pages in examples/, if there are any. */
export function examplesPages(): readonly Page[] {
  const names = readdirSync(join(ROOT, "examples"), { recursive: true, encoding: "utf8" });
  return names.filter((name) => name.endsWith(".md")).map((name) => pageAt(join("examples", name)));
}

export function blocksOf({ path, text }: Page): readonly Block[] {
  const fences = /((?:^<!-- [^\n]* -->\n)*)^```(\w+)\n(.*?)^```$/gms;
  return [...text.matchAll(fences)].map(({ 1: marks = "", 2: language = "", 3: code = "", index }) => ({
    page: path,
    language,
    line: text.slice(0, index).split("\n").length,
    text: code,
    runs: marks.includes("<!-- runs -->"),
    files: [...marks.matchAll(/<!-- file: (\S+) -->/g)].map(([, file = ""]) => file),
  }));
}

/** The text of a page without its blocks, which may have lines that look like headings, links or tables. */
export function withoutBlocks({ text }: Page): string {
  return text.replaceAll(/^```.*?^```$/gms, "");
}

/** The anchor that GitHub makes of a heading. */
export function anchorOf(heading: string): string {
  return heading
    .toLowerCase()
    .replace(/[^\w\- ]/g, "")
    .replaceAll(" ", "-");
}

/** The first cells of the table under a heading, without their backticks. */
export function firstColumn({ text }: Page, heading: string): readonly string[] {
  const [, section = ""] = text.split(new RegExp(`^#+ ${heading}$`, "m"));
  const [body = ""] = section.split(/^#/m);
  const rows = body.split("\n").filter((line) => line.startsWith("| `"));
  return rows.map((row) => (row.split("|")[1] ?? "").replaceAll("`", "").trim());
}
