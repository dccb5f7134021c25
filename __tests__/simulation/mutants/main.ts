import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { DEFECTS, type Defect } from "./defects.js";
import { type Finding, hunt, makeMutant } from "./mutant.js";
import { QUEUE_DEFECTS } from "./queue-defects.js";

/** Beside what was compiled, so that packages are found from there. */
const FOLDER = fileURLToPath(new URL("../../../mutant-", import.meta.url));

/** How many are hunted at once. */
const AT_ONCE = 2;

/**
 * The check of the checker: `npm run mutants` builds in one defect after the other and lets the simulation look for it.
 * With a file name as argument, the table of what was found is written there.
 */
async function main(): Promise<void> {
  const seed = Number(process.env.SIM_SEED ?? 1);
  const runs = Number(process.env.SIM_RUNS ?? 1_000);
  const only = process.env.SIM_DEFECT;
  const defects = [...DEFECTS, ...QUEUE_DEFECTS].filter(({ name }) => only === undefined || name.includes(only));
  const findings = new Map<Defect, Finding>();
  const left = [...defects];
  const worker = async (): Promise<void> => {
    for (let defect = left.shift(); defect !== undefined; defect = left.shift()) {
      const finding = await findingOf(defect, seed, runs);
      findings.set(defect, finding);
      console.log(`${finding.invariant === undefined ? "MISSED" : "found "} ${defect.name}: ${textOf(finding)}`);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  const missed = defects.filter((defect) => findings.get(defect)?.invariant === undefined);
  console.log(`${defects.length - missed.length} of ${defects.length} defects found`);
  const [file] = process.argv.slice(2);
  if (file !== undefined) await writeFile(file, table(defects, findings, seed));
  if (missed.length > 0) process.exitCode = 1;
}

async function findingOf(defect: Defect, seed: number, runs: number): Promise<Finding> {
  const folder = await mkdtemp(FOLDER);
  try {
    await makeMutant(defect, folder);
    return await hunt(join(folder), seed, runs);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

function textOf({ invariant, runs }: Finding): string {
  return invariant === undefined ? `nothing in ${runs} schedules` : `${invariant}, after ${runs}`;
}

function table(defects: readonly Defect[], findings: ReadonlyMap<Defect, Finding>, seed: number): string {
  const rows = defects.map((defect) => {
    const finding = findings.get(defect);
    return `| ${defect.name} | ${finding?.invariant ?? "**not found**"} | ${finding?.runs} |`;
  });
  return `# What the simulation finds

Each of these defects is built into the compiled library, one at a time, and the simulation is let loose on it: \`npm run
mutants -- docs/simulation-defects.md\` writes this page. Seed ${seed}; the default length of \`npm test\` is 1 000 schedules.

| defect | the invariant that it broke | schedules needed |
|---|---|---|
${rows.join("\n")}
`;
}

main().catch((error: unknown) => {
  console.error(error);
  process.exitCode = 1;
});
