import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { type Origin, originNow, withReport } from "../report.js";
import { DEFECTS } from "./defects.js";
import {
  AFTER_WORK_DEFECTS,
  BATCH_DEFECTS,
  CLOSE_DEFECTS,
  ELECTION_DEFECTS,
  FLIGHT_DEFECTS,
  SET_DEFECTS,
  TICK_DEFECTS,
} from "./feature-defects.js";
import { HAND_OVER_DEFECTS } from "./hand-over-defects.js";
import { KIND_DEFECTS } from "./kind-defects.js";
import { type Finding, hunt, makeMutant } from "./mutant.js";
import { NETWORK_DEFECTS } from "./network-defects.js";
import type { Patch } from "./patch.js";
import { PROTOCOL_DEFECTS } from "./protocol-defects.js";
import { QUEUE_DEFECTS } from "./queue-defects.js";
import { failureIn, TESTS } from "./tests.js";

/** Beside what was compiled, so that packages are found from there. */
const FOLDER = fileURLToPath(new URL("../../../mutant-", import.meta.url));

/** How many are hunted at once. */
const AT_ONCE = 2;

/** The library as it is: nothing may be found in it, by schedules or tests, or what is found in the others proves nothing. */
const NO_DEFECT = "none of them";

/**
 * Whether the simulation sees defects: `npm run mutants` builds in one after the other and runs the simulation on each, and the
 * test that is named for it where no schedule shows it.
 * With a file name as argument, the table of what was found is written there.
 */
async function main(): Promise<void> {
  const seed = Number(process.env.SIM_SEED ?? 1);
  const runs = Number(process.env.SIM_RUNS ?? 1_000);
  const only = process.env.SIM_DEFECT;
  const all = Object.entries({
    [NO_DEFECT]: [],
    ...PROTOCOL_DEFECTS,
    ...DEFECTS,
    ...QUEUE_DEFECTS,
    ...SET_DEFECTS,
    ...HAND_OVER_DEFECTS,
    ...CLOSE_DEFECTS,
    ...KIND_DEFECTS,
    ...BATCH_DEFECTS,
    ...FLIGHT_DEFECTS,
    ...AFTER_WORK_DEFECTS,
    ...ELECTION_DEFECTS,
    ...TICK_DEFECTS,
    ...NETWORK_DEFECTS,
  });
  const chosen = all.filter(([defect]) => only === undefined || defect.includes(only));
  const findings = new Map<string, Finding>();
  const left = [...chosen];
  const worker = async (): Promise<void> => {
    for (let next = left.shift(); next !== undefined; next = left.shift()) {
      const [defect, patches] = next;
      const finding = await findingOf(defect, patches, seed, runs);
      findings.set(defect, finding);
      console.log(`${isAsExpected(defect, finding) ? "ok    " : "WRONG "} ${defect}: ${textOf(finding)}`);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  const wrong = chosen.filter(([defect]) => !isAsExpected(defect, findings.get(defect)));
  console.log(`${chosen.length - wrong.length} of ${chosen.length} as expected`);
  const [file] = process.argv.slice(2);
  if (file !== undefined) {
    const report = table(
      chosen.map(([defect]) => defect),
      findings,
      { seed, runs },
      originNow(),
    );
    await writeFile(file, withReport(await readFile(file, "utf8"), report));
  }
  if (wrong.length > 0) process.exitCode = 1;
}

function isAsExpected(defect: string, finding: Finding | undefined): boolean {
  return (finding?.invariant === undefined && finding?.test === undefined) === (defect === NO_DEFECT);
}

async function findingOf(defect: string, patches: readonly Patch[], seed: number, runs: number): Promise<Finding> {
  const folder = await mkdtemp(FOLDER);
  try {
    await makeMutant(defect, patches, folder);
    const finding = await hunt(folder, seed, runs);
    if (finding.invariant !== undefined) return finding;
    const files = defect === NO_DEFECT ? new Set(Object.values(TESTS)) : [TESTS[defect] ?? []].flat();
    for (const file of files) {
      const failed = await failureIn(file, folder);
      if (failed !== undefined) return { ...finding, test: `${file}.test.ts: ${failed}` };
    }
    return finding;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

function textOf({ invariant, runs, test }: Finding): string {
  if (invariant !== undefined) return `${invariant}, after ${runs}`;
  return `nothing in ${runs} schedules${test === undefined ? "" : `, and ${test}`}`;
}

function table(
  defects: readonly string[],
  findings: ReadonlyMap<string, Finding>,
  { seed, runs }: { readonly seed: number; readonly runs: number },
  { date, commit }: Origin,
): string {
  const rows = defects.map((defect) => {
    const { invariant, test, runs } = findings.get(defect) ?? {};
    const found = invariant ?? test ?? (defect === NO_DEFECT ? "nothing" : "**not found**");
    return `| ${defect} | ${found} | ${test === undefined ? runs : "–"} |`;
  });
  return `${date}, commit ${commit}, seed ${seed}, at most ${runs} schedules for each.

| defect | the invariant, or the test, that it broke | schedules needed |
|---|---|---|
${rows.join("\n")}`;
}

main().catch((error: unknown) => {
  console.error(error);
  process.exitCode = 1;
});
