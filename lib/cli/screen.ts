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
