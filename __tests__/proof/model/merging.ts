import type { Space, StepOf } from "./search.js";

/**
 * The keys of states that were taken for one although not the same may follow from them: none, or a search leaves
 * something out. Every state that has the key of another is compared with it.
 */
export function wronglyMerged<State, Step extends StepOf<State>>({
  beginnings,
  keyOf,
  stepsFrom,
  brokenAt,
}: Space<State, Step>): { readonly compared: number; readonly wrong: readonly string[] } {
  /** What follows from a state: the keys of other states, and what is broken. */
  const followingOf = (state: State): string => {
    const texts = Array.from(stepsFrom(state), ({ next, broken = brokenAt?.(next) }) => `${keyOf(next)} ${broken}`);
    return [...new Set(texts)].sort().join("\n");
  };
  const following = new Map<string, string>();
  const wrong: string[] = [];
  let compared = 0;
  const isNew = (state: State): boolean => {
    const key = keyOf(state);
    const follows = followingOf(state);
    const known = following.get(key);
    if (known === undefined) following.set(key, follows);
    else compared += 1;
    if (known !== undefined && known !== follows) wrong.push(key);
    return known === undefined;
  };
  let frontier = beginnings.filter(isNew);
  while (frontier.length > 0) {
    frontier = frontier.flatMap((state) => Array.from(stepsFrom(state), ({ next }) => next).filter(isNew));
  }
  return { compared, wrong };
}
