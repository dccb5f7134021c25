import { expect, test } from "@jest/globals";
import { brokenLinks, runExamples } from "../support/pages.js";
import { createTestTable } from "../support/table.js";

test("the examples of docs/leader-election.md compile, and the first does what the page says", async () => {
  const tableName = await createTestTable();
  const [printed = ""] = await runExamples("leader-election.md", { tableName, order: [0] });
  // The observer may look before the candidate has the lock, or after.
  const lines = printed.split("\n").filter((line) => line !== "nobody");
  expect(lines.sort()).toEqual(["ends its turn", "host-a at http://10.0.0.17", "leads"]);
});

test("the page has no link that leads nowhere", () => {
  expect(brokenLinks("leader-election.md")).toEqual([]);
});
