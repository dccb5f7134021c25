import { CONTENDERS, type ContenderName } from "./contenders/index.js";
import { show } from "./numbers.js";
import type { Line, Workload } from "./results.js";

/** The cells of the one table: a heading for each workload, then its lines. */
export function tableRows(
  results: readonly { readonly workload: Workload; readonly lines: readonly Line[] }[],
): readonly (readonly string[])[] {
  const heading = ["", "goal", ...CONTENDERS.map(({ title }) => title), "against the best other", ""];
  const rows: (readonly string[])[] = [heading];
  for (const { workload, lines } of results) {
    if (lines.length === 0) continue;
    rows.push([`**${workload.title}**`, ...heading.slice(1).map(() => "")]);
    rows.push(...lines.map(rowOf));
  }
  return rows;
}

function rowOf(line: Line): readonly string[] {
  const { title, unit = "", better, values, goal } = line;
  const sign = better === "more" ? "≥" : "≤";
  return [
    unit === "" || unit === "×" ? title : `${title}, ${unit}`,
    goal === undefined ? "" : `${sign} ${show(goal)}`,
    ...CONTENDERS.map(({ name }) => cell(values[name])),
    against(line),
    verdict(line),
  ];
}

function cell(value: number | undefined): string {
  return value === undefined || Number.isNaN(value) ? "" : show(value);
}

/** Ours over the best of the peers; the floor is no peer. */
function against({ better, values }: Line): string {
  const peers = (["deliveryhero", "lock-client"] satisfies ContenderName[])
    .map((name) => values[name])
    .filter((value) => value !== undefined && Number.isFinite(value)) as number[];
  const ours = values.dynamutex;
  if (ours === undefined || peers.length === 0) return "";
  const best = better === "more" ? Math.max(...peers) : Math.min(...peers);
  return best === 0 ? "" : `${show(ours / best)} ×`;
}

function verdict({ better, values, goal }: Line): string {
  const ours = values.dynamutex ?? values.fair;
  if (goal === undefined || ours === undefined) return "";
  return (better === "more" ? ours >= goal : ours <= goal) ? "reached" : "**missed**";
}

export function markdown(rows: readonly (readonly string[])[]): string {
  const [head = [], ...body] = rows;
  const line = (cells: readonly string[]): string => `| ${cells.join(" | ")} |`;
  return [line(head), line(head.map((_, index) => (index === 0 ? "---" : "---:"))), ...body.map(line)].join("\n");
}

/** The same for a terminal: columns under one another, no marks. */
export function plain(rows: readonly (readonly string[])[]): string {
  const cells = rows.map((row) => row.map((cell) => cell.replaceAll(/[*`]/g, "")));
  const columns = cells[0]?.length ?? 0;
  const isHeading = (row: readonly string[]): boolean => row.slice(1).every((cell) => cell === "");
  const widths = Array.from({ length: columns }, (_, index) =>
    Math.max(...cells.map((row) => (index === 0 && isHeading(row) ? 0 : (row[index]?.length ?? 0)))),
  );
  const line = (row: readonly string[]): string =>
    isHeading(row)
      ? `\n${row[0]}`
      : row
          .map((cell, index) => (index === 0 ? `  ${cell.padEnd(widths[0] ?? 0)}` : cell.padStart(widths[index] ?? 0)))
          .join("  ");
  return cells.map(line).join("\n");
}
