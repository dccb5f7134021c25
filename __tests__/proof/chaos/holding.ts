/** How many permits the semaphore has. */
export const PERMITS = 3;

/** What a section has of a lock that several may hold together. */
export type Holding = "exclusive" | "shared" | `permit ${number}` | `permits ${string}`;

/** Several permits, as in "permits 0+2", or one. */
export function holdingOfPermits(permits: readonly number[]): Holding {
  return permits.length === 1 ? `permit ${permits[0] ?? 0}` : `permits ${permits.join("+")}`;
}

/** The name of a section tells what it holds, where that is not the whole lock. */
export function sectionName(holding: Holding | undefined, id: string): string {
  return holding === undefined ? id : `${holding}: ${id}`;
}

/** What the section with this name holds; a whole lock is held by its exclusive side. */
export function holdingOf(section: string): Holding {
  const [holding, id] = section.split(": ");
  return id === undefined ? "exclusive" : (holding as Holding);
}

/** Whether these may hold their parts of one lock at the same time, as far as the two alone are concerned. */
export function mayMeet(one: string, other: string): boolean {
  const [first, second] = [holdingOf(one), holdingOf(other)];
  if (first === "exclusive" || second === "exclusive") return false;
  const taken = permitsIn(first);
  return first === "shared" || !permitsIn(second).some((permit) => taken.includes(permit));
}

function permitsIn(holding: Holding): readonly string[] {
  return holding.startsWith("permit") ? holding.replace(/^permits? /, "").split("+") : [];
}
