import { readFile, writeFile } from "node:fs/promises";
import { originNow, withReport } from "../simulation/report.js";
import { type Explored, explore } from "./explore.js";
import { LARGE, SMALL } from "./stages.js";
import type { Switch } from "./switch.js";
import { SWITCHES } from "./switches.js";
import { traceOf } from "./trace.js";

/**
 * Explores the protocol within the large bounds, and with each rule switched off within the small ones: `npm run model`.
 * `MODEL_STAGE=…` and `MODEL_SWITCH=…` select those whose name contains it. With a file name as argument, the report is
 * written there, between its marks.
 */
async function main(): Promise<void> {
  const { MODEL_STAGE, MODEL_SWITCH, MODEL_BOUNDS } = process.env;
  const stages = Object.entries(MODEL_BOUNDS === "small" ? SMALL : LARGE).filter(([stage]) => {
    return stage.includes(MODEL_STAGE ?? "") && MODEL_SWITCH === undefined;
  });
  const explored = new Map<string, Explored>();
  for (const [stage, bounds] of stages) {
    const result = explore(bounds);
    explored.set(stage, result);
    console.log(`${stage}: ${countsOf(result)}`);
    if (result.violation !== undefined) fail(traceOf(result.violation));
  }
  const found = new Map<Switch, Explored>();
  for (const it of MODEL_STAGE === undefined || MODEL_SWITCH !== undefined ? SWITCHES : []) {
    if (!it.name.includes(MODEL_SWITCH ?? "")) continue;
    const result = explore({ ...SMALL[it.stage], ...it.more }, it.off);
    found.set(it, result);
    console.log(`\n${it.name} (${it.stage}): ${countsOf(result)}`);
    if (result.violation?.invariant !== it.breaks) fail(`expected: ${it.breaks ?? "nothing"}`);
    if (result.violation !== undefined) console.log(traceOf(result.violation));
  }
  const [file] = process.argv.slice(2);
  if (file !== undefined) await writeFile(file, withReport(await readFile(file, "utf8"), report(explored, found)));
}

function countsOf({ states, transitions, depth, seconds, violation }: Explored): string {
  const end =
    violation === undefined ? "exhausted, no violation" : `${violation.invariant}, in ${violation.steps.length} steps`;
  return `${states} states, ${transitions} transitions, ${depth} deep, ${seconds.toFixed(1)} s: ${end}`;
}

function fail(why: string): void {
  console.log(why);
  process.exitCode = 1;
}

function report(explored: ReadonlyMap<string, Explored>, found: ReadonlyMap<Switch, Explored>): string {
  const { date, commit } = originNow();
  const stages = [...explored].map(([stage, { states, transitions, depth, seconds, violation }]) => {
    const end = violation === undefined ? "none" : `**${violation.invariant}**`;
    return `| ${stage} | ${states} | ${transitions} | ${depth} | ${seconds.toFixed(0)} | ${end} |`;
  });
  const switches = [...found].map(([{ name, stage, breaks }, { states, violation }]) => {
    return `| ${name} | ${stage} | ${violation?.invariant ?? (breaks === undefined ? "nothing" : "**not found**")} | ${violation?.steps.length ?? ""} | ${states} |`;
  });
  return `${date}, commit ${commit}.

| stage | states | transitions | depth | seconds | violations |
|---|---|---|---|---|---|
${stages.join("\n")}

| the rule that is switched off | stage | what breaks | steps of the shortest trace | states until then |
|---|---|---|---|---|
${switches.join("\n")}
`;
}

main().catch((error: unknown) => {
  console.error(error);
  process.exitCode = 1;
});
