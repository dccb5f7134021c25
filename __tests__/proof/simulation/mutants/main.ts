import { join } from "node:path";
import { parseArgs } from "node:util";
import { startDynamoDbLocal } from "../../../../examples/support/dynamodb-local.js";
import { originNow, reportPage, writeReport } from "../report.js";
import { DEFECTS } from "./all-defects.js";
import type { Defect } from "./defect.js";
import { NO_DEFECT, type Row, readReport, reportOf, rowOf, runLater } from "./defects-page.js";
import { endAll, MUTANTS } from "./edited-source.js";
import { type Finding, failureIn, hunt, makeMutant } from "./mutant.js";

/** How many are hunted at once. */
const AT_ONCE = 2;

const seed = Number(process.env.SIM_SEED ?? 1);
const runs = Number(process.env.SIM_RUNS ?? 1_000);

const ALL: readonly (readonly [name: string, defect: Defect])[] = [
  [NO_DEFECT, { takesOut: [] }],
  ...Object.entries(DEFECTS),
];

/**
 * Whether the tests see defects: `npm run proof -- defects` builds in one after the other and runs on each the test that is named for
 * it, or the simulation, where none is. `SIM_DEFECT=…` selects those whose name contains it, and `--sample 4` draws
 * four of them.
 * With `--report`, what was found is written into the report's page, and what was not run again stays; `--no-run` writes its tables
 * anew from what stands there.
 */
async function main(): Promise<void> {
  const { values } = parseArgs({
    options: { report: { type: "boolean" }, "no-run": { type: "boolean" }, sample: { type: "string" } },
  });
  const selected = values["no-run"] ? [] : ALL.filter(([name]) => name.includes(process.env.SIM_DEFECT ?? ""));
  const chosen = values.sample === undefined ? selected : sampleOf(selected, Number(values.sample));
  const found = chosen.length > 0 ? await huntAll(chosen) : new Map<string, Row>();
  if (!values.report) return;

  const before = readReport(await reportPage("defects"));
  const { date, commit } = originNow();
  const isWhole = chosen.length === ALL.length;
  const origin = isWhole
    ? `${date}, commit ${commit}, seed ${seed}, at most ${runs} schedules for each.`
    : before.origin;
  const more = [...found].map(([name, row]) => [name, isWhole ? row : runLater(row)] as const);
  await writeReport("defects", reportOf(origin, new Map([...before.rows, ...more])));
}

function sampleOf(all: typeof ALL, count: number): typeof ALL {
  // That nothing is found without a defect takes all of the tests.
  const left = all.filter(([name]) => name !== NO_DEFECT);
  while (left.length > count) left.splice(Math.floor(Math.random() * left.length), 1);
  return left;
}

async function huntAll(chosen: typeof ALL): Promise<Map<string, Row>> {
  // One engine serves the tests of all: each would start its own, which takes longer than most of them.
  const needsEngine = chosen.some(([name, { test }]) => test !== undefined || name === NO_DEFECT);
  await using engine =
    needsEngine && process.env.DYNAMODB_ENDPOINT === undefined ? await startDynamoDbLocal() : undefined;
  if (engine !== undefined) process.env.DYNAMODB_ENDPOINT = engine.endpoint;
  const rows = new Map<string, Row>();
  let expected = 0;
  const next = chosen.values();
  const worker = async (_: unknown, index: number): Promise<void> => {
    for (const [name, defect] of next) {
      const { invariant, test, runs: needed } = await findingOf(name, defect, join(MUTANTS, `mutant-${index}`));
      const what = invariant ?? test;
      const isAsExpected = (what === undefined) === (name === NO_DEFECT);
      if (isAsExpected) expected += 1;
      const row = rowOf(name, what, test === undefined ? String(needed) : "–");
      rows.set(name, row);
      console.log(`${isAsExpected ? "ok    " : "WRONG "} ${name}: ${row.found} (${row.schedules})`);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  console.log(`${expected} of ${chosen.length} as expected`);
  if (expected < chosen.length) process.exitCode = 1;
  return rows;
}

async function findingOf(name: string, defect: Defect, folder: string): Promise<Finding> {
  await makeMutant(defect, folder);
  // A test that is named says it in seconds, and schedules would seldom show what it shows.
  for (const file of name === NO_DEFECT ? new Set(Object.values(DEFECTS).map(({ test }) => test)) : [defect.test]) {
    const failed = file && (await failureIn(file, folder));
    if (failed !== undefined) return { invariant: undefined, runs: 0, test: `${file}.test.ts: ${failed}` };
  }
  return await hunt(folder, seed, runs);
}

// The programs are groups of their own, which the terminal does not interrupt.
for (const signal of ["SIGINT", "SIGTERM"] as const) {
  process.once(signal, () => {
    endAll();
    process.kill(process.pid, signal);
  });
}

main().catch((error: unknown) => {
  console.error(error);
  process.exitCode = 1;
});
