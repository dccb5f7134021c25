import { expect, test } from "@jest/globals";
import { brokenLinks, runExamples } from "./support/pages.js";

test("the examples of docs/shutdown.md compile", async () => {
  expect(await runExamples("shutdown.md", { tableName: "locks", order: [] })).toEqual([]);
});

test("the page has no link that leads nowhere", () => {
  expect(brokenLinks("shutdown.md")).toEqual([]);
});
