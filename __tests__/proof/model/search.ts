/** What may happen in a state, and what follows. */
export interface StepOf<State> {
  readonly what: string;
  readonly next: State;
  /** The promise that it breaks. */
  readonly broken?: string | undefined;
}

/** All runs that there are: where they begin, and how they go on. */
export interface Space<State, Step extends StepOf<State> = StepOf<State>> {
  readonly beginnings: readonly State[];
  /** The same for states from which the same may follow. */
  readonly keyOf: (state: State) => string;
  /** The same steps, in the same order, whenever it is asked. */
  readonly stepsFrom: (state: State) => Iterable<Step>;
  /** The promise that is broken in a state, whatever has led there. */
  readonly brokenAt?: (state: State) => string | undefined;
  readonly traceOf?: (from: State, steps: readonly Step[]) => string;
}

/** A shortest run that breaks a promise. */
export interface Violation {
  readonly broken: string;
  readonly steps: readonly string[];
  readonly trace: string;
}

export interface Explored {
  readonly states: number;
  readonly transitions: number;
  /** The most steps that a shortest run to a state has. */
  readonly depth: number;
  readonly seconds: number;
  /** What has happened, in any run. */
  readonly reached: ReadonlySet<string>;
  /** The first that was found: none, and the states are all there are. */
  readonly violation: Violation | undefined;
}

/** More than this are too many to remember. */
const MOST_STATES = 12_000_000;

/**
 * Every run, nearest first: so the first violation that is found has a shortest trace.
 *
 * A state is remembered as its key, and the way to it as its predecessor and the place of the step there: a trace is
 * played again from the beginning.
 */
export function search<State, Step extends StepOf<State>>(space: Space<State, Step>): Explored {
  const { beginnings, keyOf, stepsFrom, brokenAt } = space;
  const startedAt = performance.now();
  const reached = new Set<string>();
  const known = new Set(beginnings.map(keyOf));
  const ways = new Ways();
  let frontier = beginnings.map((state, place) => ({ state, number: ways.add(-1, place) }));
  let transitions = 0;
  let depth = 0;
  const done = (violation?: Violation): Explored => {
    const seconds = (performance.now() - startedAt) / 1_000;
    return { states: known.size, transitions, depth, seconds, reached, violation };
  };
  while (frontier.length > 0) {
    const deeper: typeof frontier = [];
    for (const { state, number } of frontier) {
      let place = 0;
      for (const { what, next, broken = brokenAt?.(next) } of stepsFrom(state)) {
        transitions += 1;
        reached.add(what);
        if (broken !== undefined) {
          depth += 1;
          return done({ broken, ...played(space, [...ways.to(number), place]) });
        }
        const key = keyOf(next);
        if (!known.has(key)) {
          known.add(key);
          if (known.size > MOST_STATES) throw new Error(`More than ${MOST_STATES} states: the bounds are too wide`);
          deeper.push({ state: next, number: ways.add(number, place) });
        }
        place += 1;
      }
    }
    if (deeper.length > 0) depth += 1;
    frontier = deeper;
  }
  return done();
}

/** How each state was reached first. */
class Ways {
  readonly #from: number[] = [];
  readonly #place: number[] = [];

  add(from: number, place: number): number {
    this.#from.push(from);
    this.#place.push(place);
    return this.#from.length - 1;
  }

  /** The place of the beginning, and those of the steps. */
  to(last: number): readonly number[] {
    const places: number[] = [];
    for (let number = last; number >= 0; number = this.#from[number] ?? -1) places.unshift(this.#place[number] ?? 0);
    return places;
  }
}

function played<State, Step extends StepOf<State>>(
  { beginnings, stepsFrom, traceOf = wordsOf }: Space<State, Step>,
  [first = 0, ...places]: readonly number[],
): Pick<Violation, "steps" | "trace"> {
  const from = beginnings[first] as State;
  const steps: Step[] = [];
  for (const place of places) steps.push([...stepsFrom(steps.at(-1)?.next ?? from)][place] as Step);
  return { steps: steps.map(({ what }) => what), trace: traceOf(from, steps) };
}

const wordsOf = (_: unknown, steps: readonly { readonly what: string }[]): string =>
  steps.map(({ what }, index) => `${String(index + 1).padStart(3)}. ${what}`).join("\n");
