import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "@jest/globals";
import { docsPages, pageAt } from "../support/pages.js";

const TABLE = "__tests__/pages/promises.md";

/** The rows of the table: a promise as its page begins to say it, and the titles of tests in a file. */
const ROWS = [...pageAt(TABLE).text.matchAll(/^\| (\w.*\.md) \| (.+) \| `(.+\.test\.ts)` \| (.+) \|$/gm)].map(
  ([, page = "", promise = "", file = "", title = ""]) => ({ page: `docs/${page}`, promise, file, title }),
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

  test.each(PROMISES)("$page: $point has a test in the table", ({ page, point }) => {
    expect(ROWS.filter((row) => row.page === page && point.startsWith(row.promise))).not.toEqual([]);
  });

  test.each(ROWS)(
    "$page: $promise is said there, and $file has the test that is named",
    ({ page, promise, file, title }) => {
      expect(pageAt(page).text.replaceAll(/\s+/g, " ")).toContain(promise);
      const path = join(process.cwd(), "__tests__", file);
      expect(existsSync(path) && readFileSync(path, "utf8")).toContain(`"${title}`);
    },
  );
});
