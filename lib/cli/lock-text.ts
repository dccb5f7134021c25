import { styleText } from "node:util";
import type { LockView } from "./lock-view.js";
import { showDuration } from "./options.js";
import { printable } from "./output.js";

const HEADINGS = ["NAME", "KIND", "STATE", "LEFT", "WAITING", "OWNER", "SINCE"];

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
 * @param columns what a line may be long: a terminal would wrap it.
 */
export function linesOf(views: readonly LockView[], columns: number = Number.POSITIVE_INFINITY): string[] {
  const rows = [HEADINGS, ...views.map(cellsOf)];
  const widths = HEADINGS.map((_, column) => Math.max(...rows.map((cells) => cells[column]?.length ?? 0)));
  return rows.map((cells, index) => {
    const line = cells
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join("  ")
      .trimEnd()
      .slice(0, columns);
    const state = views[index - 1]?.state;
    return styleText(state === undefined ? "bold" : STYLES[state], line);
  });
}

function cellsOf(view: LockView): string[] {
  const { kind, state, owner, acquired, waiting } = view;
  const since = state === "bad" ? "-" : acquired.toISOString().replace(/\.\d+Z$/, "Z");
  return [printable(view.name), kind, state, leftOf(view), waiting ? String(waiting) : "-", printable(owner), since];
}

/** For how much longer it is taken, or how long ago that ended. */
export function leftOf({ leftMs }: Pick<LockView, "leftMs">): string {
  if (leftMs === undefined) return "-";
  return leftMs < 0 ? `${showDuration(-leftMs)} ago` : showDuration(leftMs);
}

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
