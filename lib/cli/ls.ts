import { isatty } from "node:tty";
import { styleText } from "node:util";
import type { LockInfo } from "../index.js";
import { EXIT } from "./failure.js";
import { countWaiters, inOrder, type LockView, leftOf, viewOf } from "./lock-view.js";
import { type OpenTable, onTable, type TableArguments } from "./open-table.js";
import { arrayToJson, print, printable } from "./output.js";

export interface LsOptions extends TableArguments {
  readonly prefix?: string;
  readonly includeFree?: boolean;
  readonly watch?: boolean;
  readonly json?: boolean;
}

/** The pause between two looks: each of them reads the whole table. */
const WATCH_MS = 2_000;

/** Lists locks, once or for ever. */
export async function ls(options: LsOptions): Promise<number> {
  return await onTable(options, async (table) => {
    for (;;) {
      print(textOf(await look(table, options), options));
      if (!options.watch) return EXIT.done;
      await table.clock.sleep(WATCH_MS);
    }
  });
}

async function look(
  { locks, clock, keys }: OpenTable,
  { prefix, includeFree }: LsOptions,
): Promise<readonly LockView[]> {
  const listed: LockInfo[] = [];
  for await (const lock of locks.list({ prefix, includeFree })) listed.push(lock);
  const waiting = keys.sort !== undefined ? await countWaiters(locks, listed) : undefined;
  const bounds = clock.wall();
  return inOrder(listed.map((lock) => viewOf(lock, bounds, waiting?.get(lock))));
}

function textOf(views: readonly LockView[], { json, watch, includeFree, table = "" }: LsOptions): string {
  if (json) return `${arrayToJson(views)}\n`;
  if (!watch || !isatty(1)) return `${linesOf(views, { includeFree }).join("\n")}\n${watch ? "\n" : ""}`;
  const [rows, columns] = [process.stdout.rows || 24, process.stdout.columns || 80]; // a terminal may not know: 0
  const title = `${views.length} locks in table ${printable(table)}, every ${WATCH_MS / 1_000} s, until Ctrl-C`;
  return inPlace([title.slice(0, columns), "", ...linesOf(views, { columns, includeFree })], rows);
}

const HEADINGS = ["NAME", "KIND", "STATE", "LEFT", "WAITING", "OWNER", "SINCE", "LAST RUN"];

const STYLES = {
  held: "reset",
  "handed-off": "yellow",
  expired: "red",
  blocked: "yellow",
  free: "dim",
  bad: "red",
} as const;

/**
 * Locks as lines of a table, the first of which has the headings: in colours, if stdout is a terminal that has some.
 * `columns` is what a line may be long: a terminal would wrap it. With `includeFree`, the last column has when each tick was run last.
 */
export function linesOf(
  views: readonly LockView[],
  { columns, includeFree }: { readonly columns?: number; readonly includeFree?: boolean | undefined } = {},
): string[] {
  const all = [HEADINGS, ...views.map(cellsOf)];
  const rows = includeFree ? all : all.map((cells) => cells.slice(0, -1));
  const widths = HEADINGS.map((_, column) => Math.max(...rows.map((cells) => cells[column]?.length ?? 0)));
  return rows.map((cells, index) => {
    const padded = cells.map((cell, column) => cell.padEnd(widths[column] ?? 0));
    const line = padded.join("  ").trimEnd().slice(0, columns);
    const state = views[index - 1]?.state;
    return styleText(state === undefined ? "bold" : STYLES[state], line);
  });
}

function cellsOf(view: LockView): string[] {
  const { kind, state, owner, acquired, waiting } = view;
  const since = state === "bad" ? "-" : inSeconds(acquired);
  const taken = [
    printable(view.name),
    kind,
    state,
    leftOf(view),
    waiting ? String(waiting) : "-",
    printable(owner),
    since,
  ];
  return [...taken, lastRunOf(view)];
}

const inSeconds = (date: Date): string => date.toISOString().replace(/\.\d+Z$/, "Z");

const ENDS = { true: " succeeded", false: " due", undefined: "" } as const;

const lastRunOf = ({ lastRun, succeeded }: LockView): string =>
  lastRun === undefined ? "-" : `${inSeconds(lastRun.began)}${ENDS[`${succeeded}`]}`;

const HOME = "\u001b[H";
const CLEAR_LINE = "\u001b[K";
const CLEAR_BELOW = "\u001b[J";

/**
 * What draws these lines over those that were drawn before, from the upper left corner: nothing is cleared that is drawn
 * again, so nothing flickers. What does not fit is left out, and said to be.
 */
export function inPlace(lines: readonly string[], rows: number): string {
  const room = rows - 1; // for the line that the cursor is left on
  const rest = lines.length - room + 1;
  const shown = lines.length <= room ? lines : [...lines.slice(0, room - 1), `… and ${rest} more: use --prefix`];
  return `${HOME}${shown.map((line) => `${line}${CLEAR_LINE}\n`).join("")}${CLEAR_BELOW}`;
}
