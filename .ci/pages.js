/**
 * The index of docs/ as data. The sidebar and the search of the site, llms.txt and the tarball go by it, so that what is a page
 * for maintainers is said once: by its group in docs/README.md. `root` is the folder of the project.
 */
import { readFileSync } from "node:fs";
import { join, posix } from "node:path";

/** The group of the pages for maintainers: no search finds them, and they are not in the tarball. */
export const DESIGN = "Design";

/**
 * The groups in order: `heading`, and its `pages`, each with its `path` from the root, the `question` that it answers and its
 * `title`.
 */
export function index(root = ".") {
  const [, ...groups] = readFileSync(join(root, "docs/README.md"), "utf8").split("\n## ");
  return groups.map((group) => ({
    heading: group.split("\n")[0],
    pages: [...group.matchAll(/^- \[(.+?)\]\(([^)]+\.md)\)$/gm)].map(([, question, link]) => {
      const path = posix.join("docs", link);
      return { path, question, title: titleOf(path, root) };
    }),
  }));
}

/** The paths of the guides: all pages of the index but those for maintainers. */
export function guides(root = ".") {
  return index(root).flatMap(({ heading, pages }) => (heading === DESIGN ? [] : pages.map(({ path }) => path)));
}

/** The first heading of a page; a listing of an entry point has its name. */
export function titleOf(path, root = ".") {
  const [, entry] = /([\w-]+)\.api\.md$/.exec(path) ?? [];
  if (entry !== undefined) return entry.replace("-", "/");
  const [, title] = /^# (.+)$/m.exec(readFileSync(join(root, path), "utf8")) ?? [];
  if (title === undefined) throw new Error(`${path} has no heading`);
  return title;
}
