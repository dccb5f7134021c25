import { rm } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "@jest/globals";
import { DEFECTS } from "./all-defects.js";
import { compile, type Edited, MUTANTS, withDefect, writeLibrary } from "./edited-source.js";

test("the library compiles with each seeded defect", async () => {
  // As many defects at once as fit: few libraries to compile in place of one for each.
  const libraries: Edited[] = [];
  for (const defect of Object.values(DEFECTS)) {
    for (let at = 0, isIn = false; !isIn; at += 1) {
      await withDefect(defect, libraries[at]).then(
        (library) => {
          libraries[at] = library;
          isIn = true;
        },
        (error: unknown) => {
          // Another defect has replaced its text there. In a library of its own, the defect itself is stale.
          if (libraries[at] === undefined) throw error;
        },
      );
    }
  }
  const folder = join(MUTANTS, "defects");
  await rm(folder, { recursive: true, force: true });
  await Promise.all(libraries.map((edited, at) => writeLibrary(edited, join(folder, "src", String(at)))));
  expect(await compile(folder)).toBe("");
});
