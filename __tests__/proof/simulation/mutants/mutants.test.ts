import { existsSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "@jest/globals";
import { SWITCHES } from "../../model/models.js";
import { DEFECTS } from "./all-defects.js";
import { compile, type Edited, MUTANTS, ROOT, withDefect, writeLibrary } from "./edited-source.js";
import { pageRules, ruleNamed } from "./page-rules.js";

describe("seeded defects", () => {
  it("apply to the source and compile", async () => {
    const stale: string[] = [];
    // As many defects at once as fit: few libraries to compile in place of one for each.
    const libraries: Edited[] = [];
    for (const [name, defect] of Object.entries(DEFECTS)) {
      try {
        await withDefect(defect);
      } catch (error) {
        stale.push(`"${name}": ${error}`);
        continue;
      }
      for (let at = 0, isIn = false; !isIn; at += 1) {
        await withDefect(defect, libraries[at]).then(
          (library) => {
            libraries[at] = library;
            isIn = true;
          },
          // Another defect has replaced its text there.
          () => undefined,
        );
      }
    }
    expect(stale).toEqual([]);
    const folder = join(MUTANTS, "defects");
    await rm(folder, { recursive: true, force: true });
    await Promise.all(libraries.map((edited, at) => writeLibrary(edited, join(folder, "src", String(at)))));
    expect(await compile(folder)).toBe("");
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
