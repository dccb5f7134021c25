import { interleaved, sentLate, spansOf } from "./exclusion-rules.js";
import { afterRelease } from "./guard-rules.js";
import type { History, Violation } from "./history.js";
import { holdingOf } from "./holding.js";
import { idOf, type Line } from "./register.js";

/**
 * What guards promise for the log of both sides of a shared mutex, all of whose lines are written by guarded transactions.
 * Each line was applied while its section had its side, so the section had it from its beginning until then. No rule but the
 * last needs a clock, and none asks what the writer believed.
 *
 * **Beside.** No exclusive line of another section was applied since the section began: a line of the shared side says which
 * was the last of them when its section began, and the table applied it before the next one. And between an exclusive line
 * and what its section had read before it, no line of the shared side was applied: it says how many there were.
 *
 * **Interleaved.** No line stands between two of an exclusive section.
 *
 * **Late.** Nothing is applied that was sent when a section of the other side had begun.
 */
export function sideViolationsIn(history: History): Violation[] {
  const lines = [...history.lines].sort((a, b) => a.version - b.version || order(a) - order(b));
  const exclusive = lines.filter(isExclusive);
  return [
    ...interleaved(lines),
    ...beside(lines),
    ...sentLate(lines, spansOf(lines, history.beliefs)),
    ...afterRelease(lines, history.sentAfterRelease),
    ...lost(exclusive, lines, history.acknowledged),
  ];
}

const isExclusive = ({ section }: Pick<Line, "section">): boolean => holdingOf(section) === "exclusive";

/** Those of the shared side stand before the exclusive one that has their place. */
const order = (line: Line): number => Number(isExclusive(line));

function beside(lines: readonly Line[]): Violation[] {
  return lines.flatMap((line): Violation[] => {
    const { section, version, first, seen } = line;
    const between = lines.filter(
      (other) =>
        isExclusive(other) && other.section !== section && other.version > (first ?? 0) && other.version < version,
    );
    const violations: Violation[] = between.map((other) => ({
      kind: "beside",
      detail: `${idOf(other)}, after ${section} had begun and before ${idOf(line)}`,
    }));
    if (!isExclusive(line)) return violations;
    const shared = lines.filter((other) => !isExclusive(other) && other.version === version);
    if (shared.length === seen) return violations;
    const detail = `${idOf(line)} had read ${seen} before it, and there are ${shared.map(idOf).join(", ") || "none"}`;
    return [...violations, { kind: "beside", detail }];
  });
}

function lost(exclusive: readonly Line[], lines: readonly Line[], acknowledged: History["acknowledged"]): Violation[] {
  const there = new Set(lines.map((line) => `${line.version} ${idOf(line)}`));
  const gone = acknowledged.filter((line) => !there.has(`${line.version} ${idOf(line)}`));
  const misplaced = exclusive.filter(({ version, after }, index) => {
    const before = exclusive[index - 1];
    return version !== index + 1 || after !== (before === undefined ? "" : idOf(before));
  });
  return [
    ...misplaced.map((line) => `${idOf(line)} has place ${line.version} and was written after ${line.after}`),
    ...gone.map((line) => `${idOf(line)} is not in its place ${line.version}`),
  ].map((detail) => ({ kind: "lost update", detail }));
}
