import { LockLostError } from "../../../lib/errors.js";
import { type Holding, type Holdings, Violation } from "./invariants.js";
import { askingFor } from "./locks.js";
import type { SimSet } from "./protocol.js";
import type { Step } from "./schedule.js";
import {
  checkFailure,
  checkRelease,
  ended,
  endsInTime,
  extend,
  hold,
  missedOf,
  outcomeOf,
  release,
  type Stage,
  section,
} from "./section.js";

/** Takes several locks at once, as a careful caller would, and checks that all of them come and go together. */
export async function takeSet(stage: Stage, step: Step, signal: AbortSignal): Promise<void> {
  const { judge, process, coverage } = stage;
  const wasCalm = stage.calm();
  const patient = step.waitMs === Number.POSITIVE_INFINITY && step.abortAfterMs === undefined;
  const askings = step.set.map((name) => stage.askingFor("mutex", name));
  const names = askings.map(({ name }) => name);
  const unwanted = patient ? stage.wants(askings) : () => undefined;
  const answered = judge.handOver.wantsSet(process);
  const called = judge.calls(process, names);
  const inTime = endsInTime(stage, step, step.waitMs, signal);
  let set: SimSet;
  try {
    set = await stage.lockAll(names, { signal, waitMs: step.waitMs, holdAtLeastMs: step.holdAtLeastMs });
    called();
  } catch (error) {
    called(missedOf(error));
    checkFailure(stage, step, { error, signal, wasCalm });
    return;
  } finally {
    unwanted();
    answered();
    inTime();
  }
  const missing = names.filter((name) => !set.locks.has(name));
  if (missing.length > 0) throw new Violation("a set is all or nothing", `there is no lock of ${missing}`);
  coverage.count("sets taken");
  const holdings = [...set.locks].map(([name, lock]) =>
    hold(stage, lock, { asking: askingFor("mutex", name), handOverMs: undefined, askedAt: undefined }),
  );
  const held = judge.tookSet(set, holdings);
  if (step.extends)
    for (const share of [0.2, 0.5, 0.8]) process.after(step.holdMs * share, () => extend(stage, set, holdings));
  await Promise.all([section(stage, step, holdings[0] as Holding), ended(stage, step, set.signal)]);
  if (step.throws) await releaseOne(stage, step, set, held);
  await releaseSet(stage, step, set, held);
}

/** One of the locks is given back alone: that is no loss of the set, and the end of its being held. */
async function releaseOne(stage: Stage, step: Step, set: SimSet, held: Holdings): Promise<void> {
  const [one] = held.open;
  if (one === undefined) return;
  held.open.delete(one);
  await release(stage, step, one);
  if (set.held) throw new Violation("a set is all or nothing", `it is held without ${one.uuid}`);
  stage.coverage.count("locks of sets given back alone");
}

async function releaseSet(stage: Stage, step: Step, set: SimSet, held: Holdings): Promise<void> {
  const { judge, coverage, gaveUp } = stage;
  const open = [...held.open];
  const { told } = held;
  judge.gaveBackSet(held);
  const { error } = await outcomeOf(set.unlock());
  if (error === undefined) {
    if (told) throw new Violation("a release tells the truth", "a set was lost and its release succeeded");
    coverage.count("releases of sets that succeeded");
    for (const holding of open) {
      holding.isOver = true;
      if (!gaveUp(holding.uuid)) judge.holdsOn(holding, step.holdAtLeastMs);
    }
    return;
  }
  if (!(error instanceof LockLostError)) throw new Violation("a call ends as documented", `a release threw ${error}`);
  if (error !== set.signal.reason)
    throw new Violation("a release tells the truth", "the error of a set is not its signal's reason");
  const lost = open.filter(({ uuid }) => uuid === error.uuid);
  for (const holding of lost) checkRelease(stage, step, holding, error);
  coverage.count("releases of sets that told of a loss");
}
