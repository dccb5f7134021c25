import { expect, test } from "@jest/globals";
import { brokenLinks, runExamples } from "../support/pages.js";
import { createTestTable } from "../support/table.js";

test("the example of docs/several-locks.md runs", async () => {
  const tableName = await createTestTable();
  expect(await runExamples("several-locks.md", { tableName, order: [0] })).toEqual(["70 and 30"]);
});

test("the page has no link that leads nowhere", () => {
  expect(brokenLinks("several-locks.md")).toEqual([]);
});
