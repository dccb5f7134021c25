import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "@jest/globals";
import { docsPage, docsPages, pageAt } from "../support/pages.js";

const TABLE = "__tests__/pages/promises.md";

/** The rows of the table: a promise as its page begins to say it, and the titles of tests in a file. */
const ROWS = [...pageAt(TABLE).text.matchAll(/^\| (\w.*\.md) \| (.+) \| `(.+\.test\.ts)` \| (.+) \|$/gm)].map(
  ([, page = "", promise = "", file = "", title = ""]) => ({ page: docsPage(page).path, promise, file, title }),
);

/** The points of the sections that say what is promised, up to what is not. */
const PROMISES = docsPages().flatMap(({ path, text }) => {
  const [, section = ""] = text.split("\n## What is promised\n");
  const [promised = ""] = section.split(/^(?:What is not|## )/m);
  return [...promised.matchAll(/^- (.*)$/gm)].map(([, point = ""]) => ({ page: path, point }));
});

describe("what the pages promise", () => {
  test("is found", () => {
    expect(PROMISES.length).toBeGreaterThan(15);
    expect(ROWS.length).toBeGreaterThanOrEqual(PROMISES.length);
  });

  test("has a test in the table", () => {
    const isListed = ({ page, point }: (typeof PROMISES)[number]): boolean =>
      ROWS.some((row) => row.page === page && point.startsWith(row.promise));
    expect(PROMISES.filter((promise) => !isListed(promise))).toEqual([]);
  });

  test("is what the table says, and each file has the test that is named there", () => {
    const isSaid = ({ page, promise }: (typeof ROWS)[number]): boolean =>
      pageAt(page).text.replaceAll(/\s+/g, " ").includes(promise);
    const isTested = ({ file, title }: (typeof ROWS)[number]): boolean => {
      const path = join(process.cwd(), "__tests__", file);
      return existsSync(path) && readFileSync(path, "utf8").includes(`"${title}`);
    };
    expect(ROWS.filter((row) => !isSaid(row) || !isTested(row))).toEqual([]);
  });
});
