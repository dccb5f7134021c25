import { expect, test } from "@jest/globals";
import { brokenLinks, runExamples } from "../support/pages.js";
import { createTestTable } from "../support/table.js";

test("the examples of docs/cron.md do what the page says", async () => {
  const tableName = await createTestTable();
  expect(await runExamples("cron.md", { tableName, order: [0, 1, 2, 2] })).toEqual([
    expect.stringMatching(/^the report for \d{4}-\d\d-\d\dT\d\d:00:00.000Z$/),
    "imported 41\nimported 42\n42: done, the last was 42\n40: done, the last was 42",
    "cleaned up in no time",
    "",
  ]);
});

test("the page has no link that leads nowhere", () => {
  expect(brokenLinks("cron.md")).toEqual([]);
});
