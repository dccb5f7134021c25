/** What can follow a state, and what is wrong with that. */
export interface Next<State> {
  readonly what: string;
  readonly state: State;
  readonly violation?: string | undefined;
}

export interface Explored {
  readonly states: number;
  readonly violation: string | undefined;
  readonly trace: readonly string[];
}

/**
 * Explores every run, the shortest first, until one breaks a rule.
 * @param keyOf equal for states that can lead to the same future.
 */
export function breadthFirst<State>(
  first: State,
  keyOf: (state: State) => string,
  stepsFrom: (state: State) => Iterable<Next<State>>,
): Explored {
  const known = new Set([keyOf(first)]);
  let level: { readonly state: State; readonly trace: readonly string[] }[] = [{ state: first, trace: [] }];
  while (level.length > 0) {
    const deeper: typeof level = [];
    for (const { state, trace } of level) {
      for (const { what, state: next, violation } of stepsFrom(state)) {
        if (violation !== undefined) return { states: known.size, violation, trace: [...trace, what] };
        const key = keyOf(next);
        if (known.has(key)) continue;
        known.add(key);
        deeper.push({ state: next, trace: [...trace, what] });
      }
    }
    level = deeper;
  }
  return { states: known.size, violation: undefined, trace: [] };
}
