import { readdirSync, readFileSync } from "node:fs";
import { expect, test } from "@jest/globals";

const rows = [...read("docs/design/protocol.md").matchAll(/^\| (\d+) \| .* \| (.*) \|$/gm)].map(([, trap, files]) => ({
  trap: Number(trap),
  files: [...(files ?? "").matchAll(/`([^`]+)`/g)].map(([, file]) => file ?? ""),
}));

test("docs/design/protocol.md lists every trap that a test names, once and in order", () => {
  const sources = readdirSync("__tests__", { recursive: true, encoding: "utf8" });
  const named = sources
    .filter((file) => file.endsWith(".test.ts"))
    .flatMap((file) => [...read(`__tests__/${file}`).matchAll(/"trap (\d+): /g)].map(([, trap]) => Number(trap)));
  const traps = [...new Set(named)].sort((one, other) => one - other);
  expect(traps.length).toBeGreaterThanOrEqual(25);
  expect(rows.map(({ trap }) => trap)).toEqual(traps);
});

test("each trap is in the name of a test in each file that is listed for it", () => {
  expect(rows.filter(({ files }) => files.length === 0)).toEqual([]);
  const missing = rows.flatMap(({ trap, files }) =>
    files.filter((file) => !read(`__tests__/${file}`).includes(`"trap ${trap}: `)).map((file) => `${trap}: ${file}`),
  );
  expect(missing).toEqual([]);
});

function read(path: string): string {
  return readFileSync(path, "utf8");
}
