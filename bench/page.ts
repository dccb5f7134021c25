import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { svg } from "./chart.js";
import { CONTENDERS } from "./contenders/index.js";
import { type Measured, ROOT, remember } from "./record.js";
import { markdown, tableRows } from "./table.js";
import { WORKLOADS } from "./workloads/index.js";

const FOLDER = join(ROOT, "docs", "design", "bench");
const PAGE = join(ROOT, "docs", "guides", "performance.md");

/** Writes what was measured into docs/guides/performance.md, between its markers, and draws the charts. */
export function writePage(measured: readonly Measured[]): void {
  mkdirSync(FOLDER, { recursive: true });
  const all = remember(measured);
  for (const chart of all.flatMap(({ charts = [] }) => charts)) {
    writeFileSync(join(FOLDER, `${chart.file}.svg`), svg(chart));
  }
  let page = readFileSync(PAGE, "utf8");
  page = between(page, "table", mainTable(all));
  for (const { workload, detail } of all) {
    if (detail !== undefined) page = between(page, workload, markdown([detail.columns, ...detail.rows]));
  }
  writeFileSync(PAGE, page);
}

function mainTable(all: readonly Measured[]): string {
  const results = WORKLOADS.map((workload) => ({
    workload,
    lines: all.find((one) => one.workload === workload.name)?.lines ?? [],
  }));
  const settings = CONTENDERS.map(({ title, settings: how }) => `- ${title}: ${how}`);
  const notes = WORKLOADS.flatMap(({ name, title }) =>
    (all.find(({ workload }) => workload === name)?.notes ?? []).map((note) => `- ${title}: ${note}`),
  );
  return [origin(all), "", markdown(tableRows(results)), "", ...settings, ...notes].join("\n");
}

/** On what and when, once for all that were measured together. */
function origin(all: readonly Measured[]): string {
  const runs = new Map<string, string[]>();
  for (const { name } of WORKLOADS) {
    const one = all.find(({ workload }) => workload === name);
    if (one === undefined) continue;
    const run = `${one.date}, ${one.machine}, commit ${one.commit}`;
    runs.set(run, [...(runs.get(run) ?? []), name]);
  }
  const said = [...runs].map(([run, names]) => (runs.size === 1 ? run : `${names.join(", ")}: ${run}`));
  return `Measured ${said.join("; ")}.`;
}

/** Replaces what stands between the markers of this name. */
function between(page: string, name: string, content: string): string {
  const [start, end] = [`<!-- bench:${name} -->`, `<!-- /bench:${name} -->`];
  const from = page.indexOf(start);
  const to = page.indexOf(end);
  if (from === -1 || to === -1)
    throw new Error(`docs/guides/performance.md has no place for ${name}: ${start} … ${end}`);
  return `${page.slice(0, from + start.length)}\n\n${content}\n\n${page.slice(to)}`;
}
