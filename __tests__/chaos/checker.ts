import { guardViolationsIn } from "./guard-rules.js";
import type { Belief, History, Violation } from "./history.js";
import { idOf, type Line } from "./register.js";

/**
 * Whether a lock excluded, and whether an update was lost, by three rules. Each of them is sound: what it reports has
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
 * **Lost update.** Places in the log have no gaps, every line follows the one that its writer had read, and every line
 * that the table acknowledged is still in its place. After a kill of the engine this also says that it kept its word.
 *
 * For a lock with fencing tokens and guards, `guard-rules.ts` has three more.
 */
export function violationsIn(history: History): Violation[] {
  const lines = [...history.lines].sort((a, b) => a.version - b.version);
  return [
    ...interleaved(lines),
    ...overlapping(spansOf(lines, history.beliefs)),
    ...lost(lines, history.acknowledged),
    ...guardViolationsIn(lines, history),
  ];
}

function interleaved(lines: readonly Line[]): Violation[] {
  const violations: Violation[] = [];
  const ended = new Map<string, Line>();
  let previous: Line | undefined;
  for (const line of lines) {
    if (previous !== undefined && previous.section !== line.section) ended.set(previous.section, previous);
    const before = ended.get(line.section);
    if (before !== undefined && previous !== undefined && previous.section !== line.section) {
      const between = lines.filter(({ version }) => version > before.version && version < line.version);
      violations.push({
        kind: "interleaved",
        detail: `${idOf(before)}, then ${between.map(idOf).join(", ")}, then ${idOf(line)}`,
      });
    }
    previous = line;
  }
  return violations;
}

/** For each section, the widest span between two checks that passed. */
function spansOf(lines: readonly Line[], beliefs: readonly Belief[]): Belief[] {
  const spans = new Map<string, Belief>();
  const said = lines.map(({ section, checkedFrom, checkedTo }) => ({ section, from: checkedTo, to: checkedFrom }));
  for (const { section, from, to } of [...said, ...beliefs]) {
    const span = spans.get(section) ?? { from, to };
    spans.set(section, { section, from: Math.min(span.from, from), to: Math.max(span.to, to) });
  }
  return [...spans.values()].filter(({ from, to }) => from <= to);
}

function overlapping(spans: readonly Belief[]): Violation[] {
  const violations: Violation[] = [];
  let latest: Belief | undefined;
  for (const span of [...spans].sort((a, b) => a.from - b.from)) {
    if (latest !== undefined && span.from < latest.to) {
      const ms = Math.min(span.to, latest.to) - span.from;
      violations.push({ kind: "overlap", detail: `${latest.section} and ${span.section}, for ${ms.toFixed(1)} ms` });
    }
    if (latest === undefined || span.to > latest.to) latest = span;
  }
  return violations;
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
