import type { Belief, HandedOff, History, Resumption, Violation } from "./history.js";
import { holdingOf, sectionName } from "./holding.js";

/** Tokens that two sections go on with. */
export function resumedTwice(resumptions: readonly Resumption[]): Violation[] {
  const sections = new Map<string, string>();
  return resumptions.flatMap(({ of, section }): Violation[] => {
    const other = sections.get(of);
    if (section === undefined) return [];
    sections.set(of, section);
    return other === undefined
      ? []
      : [{ kind: "resumed twice", detail: `the token of ${of}, by ${other} and ${section}` }];
  });
}

/**
 * While a token is there, it has the lock, as a section has: from when it was handed out until somebody who has got it began
 * to try; and where nobody has, until its time was over, or somebody tried who may have got it without being able to tell.
 */
export function heldByTokens({ handedOff, resumptions }: Pick<History, "handedOff" | "resumptions">): Belief[] {
  return handedOff.map(({ by, from, until }: HandedOff) => {
    const tries = resumptions.filter(({ of }) => of === by);
    const granted = tries.filter(({ section }) => section !== undefined);
    const ends = (granted.length > 0 ? granted : tries).map(({ at }) => at);
    return { section: tokenName(by), from, to: Math.min(until, ...ends) };
  });
}

function tokenName(by: string): string {
  const holding = by.includes(": ") ? holdingOf(by) : undefined;
  return sectionName(holding, `the token of ${by.split(": ").at(-1)}`);
}
