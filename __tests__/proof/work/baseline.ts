import { readFile, writeFile } from "node:fs/promises";
import type { Work } from "./judge.js";

/** Beside this file's source: the tests run in the folder of the repository. */
const FILE = "__tests__/proof/work/baseline.json";

/** How many seeds the means are of. */
export const SEEDS = 1_000;

/** By how much a mean of all seeds may differ, in per cent. */
export const BOUND_PERCENT = 2;

/** The work as it was accepted, and why each change of it was. */
export interface Baseline {
  readonly seeds: number;
  readonly work: Work;
  /** The latest first. */
  readonly accepted: readonly Accepted[];
}

interface Accepted {
  readonly date: string;
  readonly commit: string;
  readonly why: string;
  readonly changes: readonly string[];
}

export async function readBaseline(): Promise<Baseline> {
  const text = await readFile(FILE, "utf8").catch(() => undefined);
  return text === undefined ? { seeds: SEEDS, work: {}, accepted: [] } : (JSON.parse(text) as Baseline);
}

export async function writeBaseline(baseline: Baseline): Promise<void> {
  await writeFile(FILE, `${JSON.stringify(baseline, undefined, 2)}\n`);
}
