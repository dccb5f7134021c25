import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { svg } from "./chart.js";
import { CONTENDERS } from "./contenders/index.js";
import { type Measured, ROOT, remember } from "./record.js";
import { summary } from "./summary.js";
import { markdown, tableRows } from "./table.js";
import { WORKLOADS } from "./workloads/index.js";

const FOLDER = join(ROOT, "docs", "design", "bench");

/** The first has the most; of the others, users read some tables. */
const PAGES = ["design/bench.md", "guides/performance.md", "guides/costs.md"].map((page) => join(ROOT, "docs", page));

/** Writes what was measured into the pages, between their markers, and draws the charts. */
export function writePage(measured: readonly Measured[]): void {
  mkdirSync(FOLDER, { recursive: true });
  const all = remember(measured);
  for (const chart of all.flatMap(({ charts = [] }) => charts)) {
    writeFileSync(join(FOLDER, `${chart.file}.svg`), svg(chart));
  }
  write("table", mainTable(all));
  write("summary", summary(all));
  for (const { workload, detail } of all) {
    if (detail !== undefined) write(workload, markdown([detail.columns, ...detail.rows]));
  }
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

/** Replaces what stands between the markers of this name, on the page that has them. */
function write(name: string, content: string): void {
  const [start, end] = [`<!-- bench:${name} -->`, `<!-- /bench:${name} -->`];
  const path = PAGES.find((page) => readFileSync(page, "utf8").includes(start));
  if (path === undefined) throw new Error(`No page has a place for ${name}: ${start} … ${end}`);
  const page = readFileSync(path, "utf8");
  const from = page.indexOf(start) + start.length;
  writeFileSync(path, `${page.slice(0, from)}\n\n${content}\n\n${page.slice(page.indexOf(end))}`);
}
