import { parseArgs } from "node:util";
import { figureOf, textOf } from "./chaos-report.js";
import { DEFECTS, type Defect } from "./defects.js";
import { startEngine } from "./engine.js";
import { LOCK_GROUPS } from "./lock-groups.js";
import { runChaos } from "./run.js";

const HELP = `npm run proof -- chaos [--minutes 5] [--seed N] [--history FILE] [--defect ${DEFECTS.join("|")}] \
  [--only ${LOCK_GROUPS.map(({ tag }) => tag).join("|")}]...`;

const { values } = parseArgs({
  options: {
    minutes: { type: "string" },
    seed: { type: "string" },
    history: { type: "string" },
    defect: { type: "string" },
    only: { type: "string", multiple: true },
  },
});
const PROGRESS = ["seconds", "sections done", "takeovers", "losses told", "requests that met a fault"];
const minutes = Number(values.minutes ?? 5);
const seed = Number(values.seed ?? Math.floor(2 ** 31 * Math.random()));
const groups = LOCK_GROUPS.filter(({ tag }) => values.only?.includes(tag) ?? true);
const defect = DEFECTS.find((known) => known === values.defect);
if (groups.length < (values.only?.length ?? 1)) throw new Error(HELP);
if (!(minutes > 0) || !Number.isSafeInteger(seed) || (values.defect !== undefined && defect === undefined)) {
  throw new Error(HELP);
}

// At once: where sockets were reset, the cleanup of Node 20 can wait for them for ever once the program has ended.
process.exit(await main(defect));

async function main(broken: Defect | undefined): Promise<number> {
  await using engine = await startEngine();
  // What reads it asks for region and credentials alone; the address of the engine is passed on.
  process.env.DYNAMODB_ENDPOINT = engine.endpoint;
  console.log(`chaos for ${minutes} minutes, seed ${seed}${broken === undefined ? "" : `, lock broken: ${broken}`}`);
  const report = await runChaos({
    seconds: 60 * minutes,
    hostsPerGroup: 3,
    seed,
    engine,
    defect: broken,
    groups,
    file: values.history,
    onProgress: (soFar) => console.log(PROGRESS.map((title) => `${figureOf(soFar, title)} ${title}`).join(", ")),
  });
  console.log(`\n${textOf(report)}\n`);
  for (const violation of report.violations.slice(0, 50)) console.error(violation);
  return report.violations.length === 0 ? 0 : 1;
}
