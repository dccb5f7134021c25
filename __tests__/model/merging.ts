import type { Limits } from "./limits.js";
import { Messages } from "./messages.js";
import { RULES } from "./rules.js";
import { brokenAt } from "./section.js";
import { beginnings, type State } from "./state.js";
import { StateKeys } from "./state-keys.js";
import type { Model } from "./step.js";
import { stepsFrom } from "./steps.js";

/**
 * The keys of states that were taken for one although not the same may follow from them: none, or an exploration leaves
 * something out. Every state that has the key of another is compared with it.
 */
export function wronglyMerged(limits: Limits): { readonly compared: number; readonly wrong: readonly string[] } {
  const model: Model = { rules: { ...RULES, ...limits.rules }, limits, messages: new Messages(), outcomes: new Map() };
  const keys = new StateKeys(limits);
  const following = new Map<string, string>();
  const wrong: string[] = [];
  let compared = 0;
  const isNew = (state: State): boolean => {
    const key = keys.of(state);
    const follows = followingOf(model, keys, state);
    const known = following.get(key);
    if (known === undefined) following.set(key, follows);
    else compared += 1;
    if (known !== undefined && known !== follows) wrong.push(key);
    return known === undefined;
  };
  let frontier = beginnings(limits).filter(isNew);
  while (frontier.length > 0) frontier = frontier.flatMap((state) => nextOf(model, state).filter(isNew));
  return { compared, wrong };
}

const nextOf = (model: Model, state: State): readonly State[] => stepsFrom(model, state).map(({ next }) => next);

/** What follows from a state: the keys of other states, and what is broken. */
function followingOf(model: Model, keys: StateKeys, state: State): string {
  const own = keys.of(state);
  const texts = stepsFrom(model, state).map(({ next, broken = brokenAt(model, next) }) => {
    const key = keys.of(next);
    return key === own && broken === undefined ? "" : `${key} ${broken}`;
  });
  return [...new Set(texts)].sort().join("\n");
}
