import { FLIGHT_SWITCHES, FLIGHTS, flightsOf } from "./flights.js";
import { MUTEX_SWITCHES } from "./mutex-switches.js";
import { LARGE_ONCE, ONCE, ONCE_SWITCHES, onceOf } from "./once.js";
import { LARGE_RESUMES, RESUME_SWITCHES, RESUMES } from "./resume-switches.js";
import { resumesOf } from "./resumes.js";
import { type Explored, type Space, type StepOf, search } from "./search.js";
import { LARGE_SETS, SET_SWITCHES, SETS } from "./set-switches.js";
import { setsOf } from "./sets.js";
import { SHARED_SWITCHES } from "./shared-switches.js";
import { spaceOf } from "./space.js";
import { LARGE, SMALL } from "./stages.js";
import type { Switch, Switches } from "./switch.js";
import { TICK_SWITCHES, TICKS, ticksOf } from "./ticks.js";

/** One part of one model, within bounds of its own. */
export interface ModelStage {
  readonly stage: string;
  readonly small: () => Explored;
  readonly large: () => Explored;
}

/** A rule, and what breaks without it. */
export interface SwitchedOff {
  readonly name: string;
  readonly stage: string;
  readonly breaks: string;
  readonly takesOut: readonly string[];
  readonly explore: () => Explored;
}

export const STAGES: readonly ModelStage[] = [
  ...stagesOf(SMALL, spaceOf, LARGE),
  ...stagesOf(FLIGHTS, flightsOf),
  ...stagesOf(TICKS, ticksOf),
  ...stagesOf(ONCE, onceOf, LARGE_ONCE),
  ...stagesOf(SETS, setsOf, LARGE_SETS),
  ...stagesOf(RESUMES, resumesOf, LARGE_RESUMES),
];

export const SWITCHES: readonly SwitchedOff[] = [
  ...switchedOff(SMALL, spaceOf, MUTEX_SWITCHES),
  ...switchedOff(SMALL, spaceOf, SHARED_SWITCHES),
  ...switchedOff(FLIGHTS, flightsOf, FLIGHT_SWITCHES),
  ...switchedOff(TICKS, ticksOf, TICK_SWITCHES),
  ...switchedOff(ONCE, onceOf, ONCE_SWITCHES),
  ...switchedOff(SETS, setsOf, SET_SWITCHES),
  ...switchedOff(RESUMES, resumesOf, RESUME_SWITCHES),
];

type SpaceOf<Limits, Rules, State, Step extends StepOf<State>> = (
  limits: Limits,
  off?: Partial<Rules>,
) => Space<State, Step>;

function stagesOf<Stage extends string, Limits, Rules, State, Step extends StepOf<State>>(
  small: Readonly<Record<Stage, Limits>>,
  spaceOf: SpaceOf<Limits, Rules, State, Step>,
  large = small,
): ModelStage[] {
  return (Object.keys(small) as Stage[]).map((stage) => ({
    stage,
    small: () => search(spaceOf(small[stage])),
    large: () => search(spaceOf(large[stage])),
  }));
}

function switchedOff<Stage extends string, Limits, Rules, State, Step extends StepOf<State>>(
  small: Readonly<Record<Stage, Limits>>,
  spaceOf: SpaceOf<Limits, Rules, State, Step>,
  switches: Switches<Stage, Limits, Rules, string>,
): SwitchedOff[] {
  return (Object.keys(switches) as Stage[]).flatMap((stage) => {
    const here = Object.entries<Switch<Limits, Rules, string>>(switches[stage] ?? {});
    return here.map(([name, { more, breaks, off, takesOut }]) => {
      return { name, stage, breaks, takesOut, explore: () => search(spaceOf({ ...small[stage], ...more }, off)) };
    });
  });
}
