import { idOf, type Line } from "../chaos/register.js";

/** What a section held: a permit, or one side of a shared mutex. */
export type Side = "permit" | "shared" | "exclusive";

/** The name of a section tells what it held. */
export const sectionOf = (side: Side, name: string): string => `${side}:${name}`;

const sideOf = (section: string): Side => section.split(":")[0] as Side;

/** Sections that all held the same lock at one instant, and where in the log that shows. */
export interface Crowd {
  readonly at: string;
  readonly sections: readonly string[];
}

/**
 * Those who held a lock together, by a log into which each of its sections writes at least two lines: wherever one stands,
 * all sections whose first line is there or before, and whose last line is there or after, held the lock at one instant.
 *
 * Every writer reads the last line, then sees `assertHeld()` pass, then writes where nothing has been written since it read.
 * Take a line of X. Whoever has a line before it had been let pass before X read, hence before X was; whoever has a line
 * after it was let pass once more after having read X's, hence after X was. A section believes from its first pass to its
 * last, so at the moment of X's pass they all did. This needs no clock, and holds nothing against a late write.
 */
export function crowdsByOrder(lines: readonly Line[]): Crowd[] {
  const inOrder = [...lines].sort((one, other) => one.version - other.version);
  const left = new Map<string, number>();
  for (const { section } of inOrder) left.set(section, (left.get(section) ?? 0) + 1);
  const there = new Set<string>();
  return inOrder.map((line) => {
    const { section } = line;
    there.add(section);
    const crowd = { at: idOf(line), sections: [...there] };
    const rest = (left.get(section) ?? 0) - 1;
    left.set(section, rest);
    if (rest === 0) there.delete(section);
    return crowd;
  });
}

/** The same by the stopwatch that all processes of a machine share: from the first check that passed to the last. */
export function crowdsByTime(lines: readonly Line[]): Crowd[] {
  const spans = new Map<string, { from: number; to: number }>();
  for (const { section, checkedFrom, checkedTo } of lines) {
    const { from, to } = spans.get(section) ?? { from: checkedTo, to: checkedFrom };
    spans.set(section, { from: Math.min(from, checkedTo), to: Math.max(to, checkedFrom) });
  }
  const there = new Set<string>();
  const events = [...spans].flatMap(([section, { from, to }]) =>
    from <= to ? [{ section, at: from, comes: true } as const, { section, at: to, comes: false } as const] : [],
  );
  // Who goes at the moment at which another comes was there with it, as far as the stopwatch tells; that proves nothing.
  events.sort((one, other) => one.at - other.at || Number(one.comes) - Number(other.comes));
  return events.flatMap(({ section, at, comes }) => {
    if (!comes) {
      there.delete(section);
      return [];
    }
    there.add(section);
    return [{ at: `${at}`, sections: [...there] }];
  });
}

/** More at once than there are permits, or a writer beside anybody. */
export function forbidden(crowds: readonly Crowd[], permits: number): Crowd[] {
  return crowds.filter(({ sections }) => {
    const count = (wanted: Side): number => sections.filter((section) => sideOf(section) === wanted).length;
    return count("permit") > permits || (count("exclusive") > 0 && count("exclusive") + count("shared") > 1);
  });
}
