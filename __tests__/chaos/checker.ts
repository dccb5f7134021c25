import { crowdedPlaces, interleaved, overlapping, sentLate, spansOf } from "./exclusion-rules.js";
import { guardViolationsIn } from "./guard-rules.js";
import type { History, Violation } from "./history.js";
import { idOf, type Line } from "./register.js";
import { heldByTokens, resumedTwice } from "./token-rules.js";

/**
 * Whether a lock excluded, and whether an update was lost, by four rules. Each of them is sound: what it reports has
 * happened, on any schedule and whatever the network did.
 *
 * **Interleaved.** The lines of one section stand together. Suppose that the log shows A … B … A. Every writer reads
 * the last line, then sees `assertHeld()` pass, then writes where nothing has been written since it read. So B's check
 * came after A's first line was in the table, because B read it or a later one; hence after A's first check. And A's
 * last check came after A had read a log with B's line in it; hence after B's check. A's belief begins once and ends
 * once, so A believed at the moment of B's check, and so did B: two holders at one instant. This needs no clock, only
 * the order in the table and the order within each program.
 *
 * It has nothing against a late write, which no lock can prevent without a guard: a holder that is suspended between
 * its check and its write may write when its lease is over. If somebody else has written since, the register refuses
 * it; if nobody has, its line comes before all lines of the next holder, who must read again.
 *
 * **Overlap.** All processes of a machine share one stopwatch. A section believed throughout from the reading after
 * the first check that passed to the one before the last, so two such spans with an instant in common are two holders.
 * This sees overlaps in which one of the two wrote nothing.
 *
 * Of two sections that may meet, each with a permit or each of the shared side, neither rule asks anything.
 *
 * **Crowded.** No more than there are permits have one at once, by the same two proofs: wherever B's line stands, all whose
 * first line is there or before, and whose last is there or after, believed at the moment of B's check.
 *
 * **Lost update.** Places in the log have no gaps, every line follows the one that its writer had read, and every line
 * that the table acknowledged is still in its place. After a kill of the engine this also says that it kept its word.
 *
 * A token that a section has handed its lock off for counts as a section itself (`token-rules.ts`), and is resumed once at
 * most. For a lock with guards, `guard-rules.ts` has more rules, and `sides-rules.ts` for both sides of a shared mutex.
 */
export function violationsIn(history: History): Violation[] {
  const lines = [...history.lines].sort((a, b) => a.version - b.version);
  const spans = spansOf(lines, [...history.beliefs, ...heldByTokens(history)]);
  return [
    ...interleaved(lines),
    ...overlapping(spans),
    ...crowdedPlaces(lines),
    ...lost(lines, history.acknowledged),
    ...guardViolationsIn(lines, history),
    ...sentLate(lines, spans),
    ...resumedTwice(history.resumptions),
  ];
}

function lost(lines: readonly Line[], acknowledged: History["acknowledged"]): Violation[] {
  const violations: Violation[] = [];
  const at = new Map(lines.map((line) => [line.version, line]));
  lines.forEach((line, index) => {
    const before = lines[index - 1];
    if (line.version !== index + 1) {
      violations.push({
        kind: "lost update",
        detail: `${idOf(line)} is line ${index + 1} and has place ${line.version}`,
      });
    } else if (line.after !== (before === undefined ? "" : idOf(before))) {
      violations.push({ kind: "lost update", detail: `${idOf(line)} was written after ${line.after}` });
    }
  });
  for (const claimed of acknowledged) {
    const line = at.get(claimed.version);
    if (line !== undefined && idOf(line) === idOf(claimed)) continue;
    const instead = line === undefined ? "nothing" : idOf(line);
    violations.push({ kind: "lost update", detail: `${idOf(claimed)}: its place ${claimed.version} has ${instead}` });
  }
  return violations;
}
