/**
 * Measures this library against the floor and its peers, prints one table, and writes it and its charts to docs/.
 *
 *   npm run bench -- [--json] [--only <workload,…>] [--quick] [--before <folder>]
 *
 * --json    print what was measured as JSON instead of the table
 * --only    only these workloads; the others' figures in docs/ stay as they are
 * --quick   fewer rounds, to see that all works: docs/ is left alone
 * --before  instead of all that: this library against another checkout of it, which was built, in turns; docs/ is left alone
 *
 * A workload that fails costs the others nothing; the exit status is then 1.
 */
import { parseArgs } from "node:util";
import { CONTENDERS } from "./contenders/index.js";
import { Ground } from "./ground.js";
import { writePage } from "./page.js";
import { provide } from "./peers-at-hand.js";
import { type Measured, stamp } from "./record.js";
import type { Workload } from "./results.js";
import { plain, tableRows } from "./table.js";
import { before } from "./workloads/before.js";
import { WORKLOADS } from "./workloads/index.js";

const { values: options } = parseArgs({
  options: {
    json: { type: "boolean" },
    only: { type: "string" },
    quick: { type: "boolean" },
    before: { type: "string" },
  },
});

const chosen = options.before === undefined ? choose(options.only) : [before(options.before)];
const leavesDocs = options.quick || options.before !== undefined;
if (options.before === undefined) provide();
const began = performance.now();
const measured: Measured[] = [];
for (const workload of chosen) {
  const say = (progress: string): void => {
    const seconds = Math.round((performance.now() - began) / 1_000);
    process.stderr.write(`${`${seconds} s`.padStart(6)} ${workload.name}: ${progress}\n`);
  };
  try {
    measured.push(await measure(workload, say));
    // At once: what follows may fail.
    if (!leavesDocs) writePage(measured);
  } catch (error) {
    say(`failed: ${error instanceof Error ? error.stack : error}`);
    process.exitCode = 1;
  }
}
if (options.json) console.log(JSON.stringify(measured, undefined, 2));
else print(measured);

async function measure(workload: Workload, say: (progress: string) => void): Promise<Measured> {
  // A fresh engine for each: what one left in its tables slows the next.
  await using ground = await Ground.start();
  const outcome = await workload.run({ ground, quick: options.quick ?? false, say });
  return { workload: workload.name, ...stamp(), ...outcome };
}

function choose(only: string | undefined): readonly Workload[] {
  if (only === undefined) return WORKLOADS;
  return only.split(",").map((name) => {
    const workload = WORKLOADS.find((one) => one.name === name);
    if (workload === undefined) {
      console.error(`There is no workload ${name}: choose of ${WORKLOADS.map((one) => one.name).join(", ")}`);
      process.exit(1);
    }
    return workload;
  });
}

function print(all: readonly Measured[]): void {
  const results = chosen.map((workload) => ({
    workload,
    lines: all.find((one) => one.workload === workload.name)?.lines ?? [],
  }));
  if (results.some(({ lines }) => lines.length > 0)) console.log(plain(tableRows(results)));
  for (const { workload, detail } of all) {
    if (detail !== undefined) console.log(`\n${workload}\n${plain([detail.columns, ...detail.rows])}`);
  }
  console.log("");
  for (const { title, settings } of CONTENDERS) console.log(`${title}: ${settings.replaceAll("`", "")}`);
  for (const { workload, notes = [] } of all)
    for (const note of notes) console.log(`${workload}: ${note.replaceAll("`", "")}`);
}
