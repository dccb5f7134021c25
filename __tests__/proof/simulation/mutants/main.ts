import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { originNow, withReport } from "../report.js";
import { DEFECTS } from "./all-defects.js";
import type { Defect } from "./defect.js";
import { COMPILED } from "./edited-source.js";
import { type Finding, failureIn, hunt, makeMutant } from "./mutant.js";

/** How many are hunted at once. */
const AT_ONCE = 2;

/** The library as it is: nothing may be found in it, by schedules or tests, or what is found in the others proves nothing. */
const NO_DEFECT = "none of them";

const seed = Number(process.env.SIM_SEED ?? 1);
const runs = Number(process.env.SIM_RUNS ?? 1_000);

interface Row {
  readonly name: string;
  /** What the page says of it. */
  readonly found: string;
  readonly schedules: string;
  readonly isAsExpected: boolean;
}

/**
 * Whether the simulation sees defects: `npm run mutants` builds in one after the other and runs the simulation on each, and the
 * test that is named for it where no schedule shows it.
 * With a file name as argument, the table of what was found is written there.
 */
async function main(): Promise<void> {
  const chosen = Object.entries({ [NO_DEFECT]: {}, ...DEFECTS }).filter(([name]) =>
    name.includes(process.env.SIM_DEFECT ?? ""),
  );
  const rows: Row[] = [];
  const next = chosen.entries();
  const worker = async (_: unknown, index: number): Promise<void> => {
    for (const [at, [name, defect]] of next) {
      const row = rowOf(name, await findingOf(name, defect, join(COMPILED, `mutant-${index}`)));
      rows[at] = row;
      console.log(`${row.isAsExpected ? "ok    " : "WRONG "} ${name}: ${row.found} (${row.schedules})`);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  const expected = rows.filter(({ isAsExpected }) => isAsExpected).length;
  console.log(`${expected} of ${rows.length} as expected`);
  const [file] = process.argv.slice(2);
  if (file !== undefined) await writeFile(file, withReport(await readFile(file, "utf8"), table(rows)));
  if (expected < rows.length) process.exitCode = 1;
}

async function findingOf(name: string, defect: Defect, folder: string): Promise<Finding> {
  await makeMutant(defect, folder);
  const finding = await hunt(folder, seed, runs);
  if (finding.invariant !== undefined) return finding;
  for (const file of name === NO_DEFECT ? new Set(Object.values(DEFECTS).map(({ test }) => test)) : [defect.test]) {
    const failed = file && (await failureIn(file, folder));
    if (failed !== undefined) return { ...finding, test: `${file}.test.ts: ${failed}` };
  }
  return finding;
}

function rowOf(name: string, { invariant, test, runs }: Finding): Row {
  const found = invariant ?? test;
  const isAsExpected = (found === undefined) === (name === NO_DEFECT);
  const nothing = isAsExpected ? "nothing" : "**not found**";
  return { name, found: found ?? nothing, schedules: test === undefined ? String(runs) : "–", isAsExpected };
}

function table(rows: readonly Row[]): string {
  const { date, commit } = originNow();
  return `${date}, commit ${commit}, seed ${seed}, at most ${runs} schedules for each.

| defect | the invariant, or the test, that it broke | schedules needed |
|---|---|---|
${rows.map(({ name, found, schedules }) => `| ${name} | ${found} | ${schedules} |`).join("\n")}`;
}

main().catch((error: unknown) => {
  console.error(error);
  process.exitCode = 1;
});
