import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";

/** The scripts are JavaScript without types. */
const script = (...path: string[]) => import(pathToFileURL(join(process.cwd(), ".ci", ...path)).href);

interface Group {
  readonly heading: string;
  readonly pages: readonly { readonly path: string; readonly title: string; readonly question: string }[];
}
interface Staged {
  readonly path: string;
  readonly isFound: boolean;
}

const folder = mkdtempSync(join(tmpdir(), "dynamutex-site-"));
const [pages, twins] = [join(folder, "pages"), join(folder, "twins")];
let staged: readonly Staged[];
let groups: readonly Group[];

beforeAll(async () => {
  staged = (await script("site", "stage.js")).stage({ pages, twins });
  groups = (await script("pages.js")).index();
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe("the site", () => {
  test("has each page once, and beside it the same as Markdown, whose links lead to others of them", () => {
    const paths = staged.map(({ path }) => path);
    expect([...new Set(paths)]).toEqual(paths);
    const wrong = paths.flatMap((path) => {
      const text = readFileSync(join(twins, path), "utf8").replaceAll(/^(`{3,4})[\s\S]*?^\1$/gm, "");
      const targets = [...text.matchAll(/\]\((?!https?:|#|mailto:)([^)#\s]+)/g)].map(([, target = ""]) => target);
      return targets.filter((target) => !existsSync(join(twins, dirname(path), target))).map((to) => `${path}: ${to}`);
    });
    expect(wrong).toEqual([]);
  });

  test("lets the search find the guides, and neither pages for maintainers nor sources of examples", () => {
    const found = staged.filter(({ isFound }) => isFound).map(({ path }) => path);
    const guides = groups.filter(({ heading }) => heading !== "Design").flatMap((group) => group.pages);
    expect(found).toEqual(expect.arrayContaining(guides.map(({ path }) => path)));
    const others = found.filter((path) => !guides.some((guide) => guide.path === path));
    expect(others.sort()).toEqual(["CHANGELOG.md", "README.md", "docs/index.md", "examples/index.md"]);
    for (const { path, isFound } of staged) {
      const hides = /"search":false/.test(readFileSync(join(pages, path), "utf8"));
      expect([path, hides]).toEqual([path, !isFound]);
    }
  });

  test("lists each page in the group of its folder", () => {
    for (const { heading, pages: listed } of groups) {
      const folder = { Design: "design", Reference: "reference" }[heading];
      for (const { path } of listed) {
        if (folder !== undefined) expect(path).toMatch(new RegExp(`^docs/${folder}/`));
        else expect(path).toMatch(/^docs\/guides\/|^[A-Z]+\.md$/);
      }
    }
  });

  test("has an llms.txt that leads to every page of the index, those for maintainers last", () => {
    const lines = readFileSync(join(twins, "llms.txt"), "utf8").split("\n");
    expect(lines[0]).toBe("# dynamutex");
    expect(lines[2]).toMatch(/^> .+DynamoDB.+\.$/);
    const listed = lines.filter((line) => line.startsWith("- [")).slice(1);
    const all = groups.flatMap((group) => group.pages);
    expect(listed).toEqual(all.map(({ title, path, question }) => `- [${title}](${path}): ${question}`));
    expect(lines.filter((line) => line.startsWith("## ")).at(-1)).toBe("## Optional");
  });

  test("starts with how to install it, the first program, what it is not for, and a way to each page for users", () => {
    const start = readFileSync(join(pages, "index.md"), "utf8");
    expect(start).toContain("await using locks = new LockTable(");
    expect(start).toContain("npm install dynamutex");
    expect(start).toContain("It is the wrong choice for");
    for (const { heading, pages: listed } of groups) {
      for (const { title, path } of listed) {
        expect([path, start.includes(`[${title}](${path})`)]).toEqual([path, heading !== "Design"]);
      }
    }
  });

  test("links to the repository, and to where a page is edited, once package.json names one", async () => {
    const { repositoryLinks } = await script("site", "repository-links.js");
    expect(repositoryLinks({})).toEqual({});
    expect(repositoryLinks({ repository: { type: "git", url: "git+https://host.invalid/a/b.git" } })).toMatchObject({
      editLink: { pattern: "https://host.invalid/a/b/edit/main/:path" },
      socialLinks: [{ link: "https://host.invalid/a/b" }],
    });
  });
});
