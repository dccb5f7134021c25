import { originNow, writeReport } from "../simulation/report.js";
import { STAGES, SWITCHES } from "./models.js";
import type { Explored } from "./search.js";

/**
 * Explores the protocol within the large bounds, and with each rule switched off within the small ones: `npm run proof -- model`.
 * `MODEL_STAGE=…` and `MODEL_SWITCH=…` select those whose name contains it. With `--report`, the report's page is written.
 */
async function main(): Promise<void> {
  const { MODEL_STAGE, MODEL_SWITCH, MODEL_BOUNDS } = process.env;
  const stages = STAGES.filter(({ stage }) => stage.includes(MODEL_STAGE ?? "") && MODEL_SWITCH === undefined);
  const explored = stages.map(({ stage, small, large }) => {
    const result = (MODEL_BOUNDS === "small" ? small : large)();
    tell(stage, result, "nothing");
    return { stage, ...result };
  });
  const all = MODEL_STAGE === undefined || MODEL_SWITCH !== undefined ? SWITCHES : [];
  const switches = all.filter(({ name }) => name.includes(MODEL_SWITCH ?? ""));
  const found = switches.map(({ name, stage, breaks, explore }) => {
    const result = explore();
    tell(`\n${name} (${stage})`, result, breaks);
    return { name, broken: brokenIn(result, breaks) };
  });
  if (process.argv.includes("--report")) await writeReport("model", report(explored, found));
}

/** Which promise, and whether that was not to be expected. */
function brokenIn({ violation }: Explored, expected: string): string {
  const broken = violation?.broken ?? "nothing";
  return broken === expected ? broken : `NOT EXPECTED: ${broken}`;
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

interface ExploredStage extends Explored {
  readonly stage: string;
}

interface RuleOff {
  readonly name: string;
  readonly broken: string;
}

function report(stages: readonly ExploredStage[], rules: readonly RuleOff[]): string {
  const { date, commit } = originNow();
  const seconds = stages.reduce((sum, stage) => sum + stage.seconds, 0);
  const states = stages.map((stage) => {
    const found = brokenIn(stage, "nothing");
    return `${String(stage.states).padStart(9)}  ${stage.stage}${found === "nothing" ? "" : `, ${found}`}`;
  });
  const promises = [...new Set(rules.map(({ broken }) => broken))].map((promise) => {
    const names = rules.filter(({ broken }) => broken === promise).map(({ name }) => `  ${name}`);
    return `${promise}:\n${names.join("\n")}`;
  });
  const isWell = stages.every(({ violation }) => violation === undefined);
  const head = `${date}, commit ${commit}: ${isWell ? "nothing breaks" : "**a promise is broken**"}, in ${seconds.toFixed(0)} s.`;
  const parts = [head, blockOf(["   states  stage", ...states])];
  if (rules.length > 0) parts.push("Each promise, and the rules without which it breaks:", blockOf(promises));
  return parts.join("\n\n");
}

const blockOf = (lines: readonly string[]): string => `\`\`\`\n${lines.join("\n")}\n\`\`\``;

await main();
