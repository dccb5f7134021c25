import type { Limits } from "./limits.js";
import { Messages } from "./messages.js";
import { Reached } from "./reached.js";
import { RULES, type Rules } from "./rules.js";
import { brokenAt } from "./section.js";
import { beginnings, type State } from "./state.js";
import { StateKeys } from "./state-keys.js";
import type { Invariant, Model, Step } from "./step.js";
import { stepsFrom } from "./steps.js";

/** A shortest run that breaks a promise. */
export interface Violation {
  readonly invariant: Invariant;
  readonly from: State;
  readonly steps: readonly Step[];
}

export interface Explored {
  readonly states: number;
  readonly transitions: number;
  /** The most steps that a shortest run to a state has. */
  readonly depth: number;
  readonly seconds: number;
  readonly reached: Reached;
  /** The first that was found: none, and the states are all there are. */
  readonly violation: Violation | undefined;
}

/** More than this are too many to remember. */
const MOST_STATES = 12_000_000;

/** A state whose successors are not known yet, and its number. */
interface Open {
  readonly number: number;
  readonly state: State;
}

/**
 * Every interleaving within the bounds, nearest first: so the first violation that is found has a shortest trace.
 *
 * A state is remembered as a text, and the way to it as its predecessor and the place of the step there: a trace is
 * played again from the beginning.
 */
export function explore(limits: Limits, off: Partial<Rules> = {}, mostStates = MOST_STATES): Explored {
  const rules = { ...RULES, ...limits.rules, ...off };
  const model: Model = { rules, limits, messages: new Messages(), outcomes: new Map() };
  const startedAt = performance.now();
  const reached = new Reached();
  const keys = new StateKeys(limits);
  const known = new Set<string>();
  const ways = new Ways();
  const starts = beginnings(limits);
  let frontier: Open[] = [];
  let transitions = 0;
  let depth = 0;
  const done = (violation?: Violation): Explored => {
    const seconds = (performance.now() - startedAt) / 1_000;
    return { states: known.size, transitions, depth, seconds, reached, violation };
  };
  for (const [place, state] of starts.entries()) {
    known.add(keys.of(state));
    frontier.push({ number: ways.add(-1, place), state });
  }
  while (frontier.length > 0) {
    const next: Open[] = [];
    for (const { number, state } of frontier) {
      for (const [place, step] of stepsFrom(model, state).entries()) {
        transitions += 1;
        reached.count(step.event, state);
        const broken = step.broken ?? brokenAt(model, step.next);
        if (broken !== undefined) {
          depth += 1;
          return done(ways.play(model, starts, broken, number, place));
        }
        const key = keys.of(step.next);
        if (known.has(key)) continue;
        known.add(key);
        if (known.size > mostStates) throw new Error(`More than ${mostStates} states: the bounds are too wide`);
        next.push({ number: ways.add(number, place), state: step.next });
      }
    }
    if (next.length > 0) depth += 1;
    frontier = next;
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

  play(model: Model, starts: readonly State[], invariant: Invariant, last: number, place: number): Violation {
    const places = [place];
    let number = last;
    for (; (this.#from[number] ?? -1) >= 0; number = this.#from[number] ?? 0) places.unshift(this.#place[number] ?? 0);
    const from = starts[this.#place[number] ?? 0] as State;
    const steps: Step[] = [];
    for (const each of places) steps.push(stepsFrom(model, steps.at(-1)?.next ?? from)[each] as Step);
    return { invariant, from, steps };
  }
}
