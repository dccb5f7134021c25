import { readFileSync } from "node:fs";
import { expect, test } from "@jest/globals";
import { summary } from "../../bench/summary.js";
import { markdown } from "../../bench/table.js";
import { docsPages } from "../support/pages.js";

const RECORD = JSON.parse(readFileSync("docs/design/bench/measured.json", "utf8"));

/** What stands between the marks of the bench, on whichever page. */
const MARKED = new Map(
  docsPages().flatMap(({ text }) =>
    [...text.matchAll(/<!-- bench:([\w-]+) -->\n+(.*?)\n+<!-- \/bench:\1 -->/gs)].map(
      ([, name = "", table = ""]) => [name, table] as const,
    ),
  ),
);

test("the tables of the pages are those of the last measurement", () => {
  expect(MARKED.get("summary")).toBe(summary(RECORD));
  for (const { workload, detail } of RECORD) {
    if (detail !== undefined) expect(MARKED.get(workload)).toBe(markdown([detail.columns, ...detail.rows]));
  }
});
