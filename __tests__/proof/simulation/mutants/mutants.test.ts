import { existsSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, test } from "@jest/globals";
import { SWITCHES } from "../../model/models.js";
import { DEFECTS } from "./all-defects.js";
import { endAll, ROOT, run, withDefect } from "./edited-source.js";
import { pageRules, ruleNamed } from "./page-rules.js";

describe("seeded defects", () => {
  it("apply to the source", async () => {
    const stale = await Promise.all(
      Object.entries(DEFECTS).map(async ([name, defect]) => {
        return await withDefect(defect).then(
          () => [],
          (error: unknown) => [`"${name}": ${error}`],
        );
      }),
    );
    expect(stale.flat()).toEqual([]);
  });

  it("name tests that exist", () => {
    const files = Object.values(DEFECTS).flatMap(({ test }) => test ?? []);
    expect(files.filter((file) => !existsSync(join(ROOT, `__tests__/${file}.test.ts`)))).toEqual([]);
  });

  it("and the switches of the model name rules that the pages state", () => {
    const rules = pageRules();
    expect(rules.length).toBeGreaterThan(200);
    expect(new Set(rules.map(({ id }) => id)).size).toBe(rules.length);
    const unnamed = [...Object.entries(DEFECTS), ...SWITCHES.map((off) => [off.name, off] as const)].flatMap(
      ([name, { takesOut }]) => {
        try {
          return takesOut.map((reference) => ruleNamed(reference, rules)).length > 0 ? [] : `${name}: names no rule`;
        } catch (error) {
          return `${name}: ${error}`;
        }
      },
    );
    expect(unnamed).toEqual([]);
  });
});

test("an interrupted hunt ends what it has started", async () => {
  const ran = run(["-e", "setInterval(() => undefined, 1_000)"]);
  endAll();
  expect(await ran).toEqual({ output: "", code: undefined });
});
