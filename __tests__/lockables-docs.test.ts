import { expect, test } from "@jest/globals";
import { brokenLinks, runExamples } from "./support/pages.js";
import { createTestTable } from "./support/table.js";

test.each([
  ["semaphores.md", ["at most 4 at once", "rebuilt under index\nrebuilt under builds\nrebuilt under catalogue"]],
  ["shared-mutexes.md", ["first, first, second"]],
  ["hand-off.md", ["false\norder 17, 3 items, true\nLOCK_LOST"]],
])("the examples of docs/%s run and print what they say", async (page, printed) => {
  const order = printed.map((_, index) => index);
  expect(await runExamples(page, { tableName: await createTestTable(), order })).toEqual(printed);
});

test.each(["semaphores.md", "shared-mutexes.md", "hand-off.md"])("docs/%s has no link that leads nowhere", (page) => {
  expect(brokenLinks(page)).toEqual([]);
});
