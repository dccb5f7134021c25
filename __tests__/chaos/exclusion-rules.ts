import type { Belief, Violation } from "./history.js";
import { holdingOf, mayMeet, PERMITS } from "./holding.js";
import { idOf, type Line } from "./register.js";

/** Sections whose lines stand between those of a section that they must not meet. */
export function interleaved(lines: readonly Line[]): Violation[] {
  const last = new Map<string, number>();
  return lines.flatMap((line, index): Violation[] => {
    const before = last.get(line.section);
    last.set(line.section, index);
    if (before === undefined) return [];
    const between = lines.slice(before + 1, index).filter(({ section }) => !mayMeet(section, line.section));
    if (between.length === 0) return [];
    const detail = `${idOf(lines[before] as Line)}, then ${between.map(idOf).join(", ")}, then ${idOf(line)}`;
    return [{ kind: "interleaved", detail }];
  });
}

/** Places in the log at which sections with too many permits were under way. */
export function crowdedPlaces(lines: readonly Line[]): Violation[] {
  const left = new Map<string, number>();
  for (const { section } of lines) left.set(section, (left.get(section) ?? 0) + 1);
  const there = new Set<string>();
  return lines.flatMap((line) => {
    const { section } = line;
    const isFirst = !there.has(section);
    there.add(section);
    const crowd = [...there];
    left.set(section, (left.get(section) ?? 0) - 1);
    if (left.get(section) === 0) there.delete(section);
    return isFirst ? crowdedBy(crowd, `at ${idOf(line)}`) : [];
  });
}

/** For each section, the widest span between two checks that passed. */
export function spansOf(lines: readonly Line[], beliefs: readonly Belief[]): Belief[] {
  const spans = new Map<string, Belief>();
  const said = lines.map(({ section, checkedFrom, checkedTo }) => ({ section, from: checkedTo, to: checkedFrom }));
  for (const { section, from, to } of [...said, ...beliefs]) {
    const span = spans.get(section) ?? { from, to };
    spans.set(section, { section, from: Math.min(span.from, from), to: Math.max(span.to, to) });
  }
  return [...spans.values()].filter(({ from, to }) => from <= to).sort((a, b) => a.from - b.from);
}

/** @param spans by their beginning. */
export function overlapping(spans: readonly Belief[]): Violation[] {
  let present: Belief[] = [];
  return spans.flatMap((span) => {
    present = present.filter(({ to }) => span.from < to);
    const met = present.filter(({ section }) => !mayMeet(section, span.section));
    const violations = met.map(({ section, to }): Violation => {
      const ms = Math.min(span.to, to) - span.from;
      return { kind: "overlap", detail: `${section} and ${span.section}, for ${ms.toFixed(1)} ms` };
    });
    present.push(span);
    const crowd = present.map(({ section }) => section);
    return [...violations, ...crowdedBy(crowd, `when ${span.section} began`)];
  });
}

/** Guarded lines that were sent when a section that their own must not meet had begun after the last check of theirs. */
export function sentLate(lines: readonly Line[], spans: readonly Belief[]): Violation[] {
  return lines.flatMap(({ sentAt, ...line }): Violation[] => {
    if (sentAt === undefined) return [];
    const later = spans.find(
      ({ section, from }) =>
        section !== line.section && !mayMeet(section, line.section) && line.checkedTo < from && from < sentAt,
    );
    if (later === undefined) return [];
    return [{ kind: "late", detail: `${idOf(line)} was sent when ${later.section} had the lock` }];
  });
}

function crowdedBy(sections: readonly string[], where: string): Violation[] {
  const crowd = sections.filter((section) => holdingOf(section).startsWith("permit"));
  return crowd.length > PERMITS ? [{ kind: "crowded", detail: `${crowd.join(", ")}, ${where}` }] : [];
}
