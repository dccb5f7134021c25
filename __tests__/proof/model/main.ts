import { readFile, writeFile } from "node:fs/promises";
import { originNow, withReport } from "../simulation/report.js";
import { STAGES, SWITCHES } from "./models.js";
import type { Explored } from "./search.js";

/**
 * Explores the protocol within the large bounds, and with each rule switched off within the small ones: `npm run model`.
 * `MODEL_STAGE=…` and `MODEL_SWITCH=…` select those whose name contains it. With a file name as argument, the report is
 * written there, between its marks.
 */
async function main(): Promise<void> {
  const { MODEL_STAGE, MODEL_SWITCH, MODEL_BOUNDS } = process.env;
  const stages = STAGES.filter(({ stage }) => stage.includes(MODEL_STAGE ?? "") && MODEL_SWITCH === undefined);
  const explored = stages.map(({ stage, small, large }) => {
    const result = (MODEL_BOUNDS === "small" ? small : large)();
    tell(stage, result, "nothing");
    const { states, transitions, depth, seconds } = result;
    return `| ${stage} | ${states} | ${transitions} | ${depth} | ${seconds.toFixed(0)} | ${brokenIn(result, "nothing")} |`;
  });
  const all = MODEL_STAGE === undefined || MODEL_SWITCH !== undefined ? SWITCHES : [];
  const switches = all.filter(({ name }) => name.includes(MODEL_SWITCH ?? ""));
  const found = switches.map(({ name, stage, breaks, explore }) => {
    const result = explore();
    tell(`\n${name} (${stage})`, result, breaks);
    const { states, violation } = result;
    return `| ${name} | ${stage} | ${brokenIn(result, breaks)} | ${violation?.steps.length ?? ""} | ${states} |`;
  });
  const [file] = process.argv.slice(2);
  if (file !== undefined) await writeFile(file, withReport(await readFile(file, "utf8"), report(explored, found)));
}

/** In bold where that was not to be expected. */
function brokenIn({ violation }: Explored, expected: string): string {
  const broken = violation?.broken ?? "nothing";
  return broken === expected ? broken : `**${broken}**`;
}

function tell(what: string, { states, transitions, depth, seconds, violation }: Explored, expected: string): void {
  const end =
    violation === undefined ? "exhausted, no violation" : `${violation.broken}, in ${violation.steps.length} steps`;
  console.log(`${what}: ${states} states, ${transitions} transitions, ${depth} deep, ${seconds.toFixed(1)} s: ${end}`);
  if (violation !== undefined) console.log(violation.trace);
  if ((violation?.broken ?? "nothing") === expected) return;
  console.log(`expected: ${expected}`);
  process.exitCode = 1;
}

function report(stages: readonly string[], switches: readonly string[]): string {
  const { date, commit } = originNow();
  return `${date}, commit ${commit}.

| stage | states | transitions | depth | seconds | what breaks |
|---|---|---|---|---|---|
${stages.join("\n")}

| the rule that is switched off | stage | what breaks | steps of the shortest trace | states until then |
|---|---|---|---|---|
${switches.join("\n")}
`;
}

await main();
