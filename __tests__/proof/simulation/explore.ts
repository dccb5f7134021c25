import fc from "fast-check";
import { Coverage } from "./coverage.js";
import type { Protocol } from "./protocol.js";
import { type Schedule, schedules } from "./schedule.js";
import { simulate } from "./world.js";

/** What to explore: a seed alone, or with the path to one schedule below it, as a failure prints them. */
export interface Start {
  readonly seed: number;
  readonly path?: string | undefined;
}

/** `1234`, or `1234/56:0:1` for exactly one failure. */
export function parseStart(text: string): Start {
  const [seed = "", path] = text.split("/");
  if (!/^-?\d+$/.test(seed)) throw new RangeError(`SIM_SEED must be a number, or number/path, not ${text}`);
  return { seed: Number(seed), path };
}

/** How many smaller schedules are tried after a failure. */
const SHRINK_RUNS = 2_000;

export interface Options {
  /** Whether a failing schedule is reduced. Default true. */
  readonly shrink?: boolean;
}

export interface Exploration {
  readonly runs: number;
  readonly steps: number;
  readonly coverage: Coverage;
}

/**
 * Plays `runs` random schedules.
 * @throws an error that shows the smallest failing schedule, its trace, and how to replay it.
 */
export async function explore(
  protocol: Protocol,
  start: Start,
  runs: number,
  { shrink = true }: Options = {},
): Promise<Exploration> {
  const coverage = new Coverage();
  let [done, steps, shrinking] = [0, 0, 0];
  const property = fc.asyncProperty(schedules, async (schedule) => {
    // Enough is enough: what is left of the shrinking passes without a look.
    if (shrinking > SHRINK_RUNS) return;
    if (shrinking > 0) shrinking += 1;
    try {
      const run = await simulate(schedule, protocol);
      if (shrinking > 0) return;
      coverage.add(run.coverage);
      done += 1;
      steps += run.steps;
    } catch (error) {
      shrinking = Math.max(1, shrinking);
      throw error;
    }
  });
  const parameters = {
    seed: start.seed,
    numRuns: runs,
    endOnFailure: !shrink,
    ...(start.path === undefined ? {} : { path: start.path }),
  };
  const result = await fc.check(property, parameters);
  if (result.failed) throw await failureOf(protocol, result);
  return { runs: done, steps, coverage };
}

/** Which schedule failed, after how many, and the story of it. */
export class Failure extends Error {
  override readonly name = "Failure";
  readonly runs: number;

  constructor(runs: number, message: string, options: ErrorOptions) {
    super(message, options);
    this.runs = runs;
  }
}

async function failureOf(protocol: Protocol, result: fc.RunDetails<[Schedule]>): Promise<Failure> {
  const schedule = result.counterexample?.[0];
  const told =
    schedule === undefined ? result.errorInstance : await tracedFailure(protocol, schedule, result.errorInstance);
  const message = [
    `A schedule breaks the protocol. Replay it with SIM_SEED=${result.seed}/${result.counterexamplePath}`,
    `Found by run ${result.numRuns}, shrunk ${result.numShrinks} times: ${JSON.stringify(schedule)}`,
    told instanceof Error ? (told.stack ?? told.message) : String(told),
  ].join("\n");
  return new Failure(result.numRuns, message, { cause: told });
}

/** The failure once more, with its trace. */
async function tracedFailure(protocol: Protocol, schedule: Schedule, first: unknown): Promise<unknown> {
  const once = first instanceof Error ? (first.stack ?? first.message) : String(first);
  return await simulate(schedule, protocol, { trace: true }).then(
    () =>
      new Error(
        `It fails no more when played again: something in the world is not decided by the schedule. It was:\n${once}`,
      ),
    (error: unknown) => error,
  );
}
