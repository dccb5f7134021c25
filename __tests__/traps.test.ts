import { readFileSync } from "node:fs";
import { expect, test } from "@jest/globals";

/** How many traps docs/protocol.md lists. */
const TRAPS = 25;

const rows = [...read("docs/protocol.md").matchAll(/^\| (\d+) \| .* \| (.*) \|$/gm)].map(([, trap, files]) => ({
  trap: Number(trap),
  files: [...(files ?? "").matchAll(/`([^`]+)`/g)].map(([, file]) => file ?? ""),
}));

test("docs/protocol.md lists every trap once", () => {
  expect(rows.map(({ trap }) => trap)).toEqual(Array.from({ length: TRAPS }, (_, index) => index + 1));
});

test.each(rows)("trap $trap is in the name of a test in each file that is listed for it", ({ trap, files }) => {
  expect(files.length).toBeGreaterThan(0);
  const missing = files.filter((file) => !read(`__tests__/${file}`).includes(`"trap ${trap}: `));
  expect(missing).toEqual([]);
});

function read(path: string): string {
  return readFileSync(new URL(`../../${path}`, import.meta.url), "utf8");
}
