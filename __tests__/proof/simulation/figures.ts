import type { Coverage } from "./coverage.js";

/** What the page shows of a run, which itself prints all that it has counted: faults, what came of them, and what was done. */
export const FIGURES = [
  "mishaps",
  "requests lost",
  "replies lost",
  "requests throttled",
  "requests failed by an outage",
  "stale reads",
  "wrong dates",
  "conflicts of Regions",
  "ambiguous writes",
  "late duplicates applied",
  "rows that a late copy brought back",
  "own writes recognised",
  "locks taken",
  "sets taken",
  "takeovers",
  "losses",
  "locks taken away by force",
  "sections on a lease passed on",
  "sections that joined others",
  "turns in a queue",
  "fencing tokens",
  "guarded writes",
  "locks handed off",
  "locks resumed",
  "attacks",
  "ticks",
  "ticks recorded",
  "results shared",
  "elections over",
  "closes without a loss",
  "closes that revoked sections",
  "sections that awaited a close of their own table",
] as const;

export function figuresOf(coverage: Coverage): string {
  return FIGURES.map((what) => `${String(coverage.sumOf(what)).padStart(9)}  ${what}`).join("\n");
}
