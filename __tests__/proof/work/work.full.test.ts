import { expect, test } from "@jest/globals";
import { readBaseline } from "./baseline.js";
import { changes, figuresOf, lineOf } from "./judge.js";
import { WORKLOADS, workOf } from "./workloads.js";
import type { Counts } from "./world.js";

/** A part of what `npm run proof -- work` plays, and how far the mean of so few seeds is from that of all. */
const SEEDS = 100;
const BOUND_PERCENT = 6;

test.each(Object.keys(WORKLOADS))("%s: as much is done as before, with as few requests", async (name) => {
  const counts: Counts[] = [];
  for (let seed = 1; seed <= SEEDS; seed += 1) counts.push(await workOf(name, seed));
  const { work } = await readBaseline();
  const changed = changes(work, { [name]: figuresOf(counts) }, BOUND_PERCENT).map(lineOf);
  expect(changed).toEqual([]);
});
