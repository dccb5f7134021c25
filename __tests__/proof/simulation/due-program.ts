import { LockLostError, LockStoreError } from "../../../lib/errors.js";
import { type Holding, Violation } from "./invariants.js";
import { periodOf } from "./program.js";
import type { Due, Step } from "./schedule.js";
import { afterWork, checkFailure, checkRelease, endsInTime, hold, outcomeOf, type Stage, section } from "./section.js";

/** How soon a caller asks again for a tick that is held, or whose run has failed. */
const ASK_AGAIN_MS = 100;

class RunError extends Error {}

/** Asks for a tick until a run of it has succeeded, or it cannot be run any more, or it has asked often enough. */
export async function takeDue(stage: Stage, step: Step, due: Due, name: number): Promise<void> {
  for (let asked = 0; asked < step.times; asked += 1) {
    if (await ask(stage, step, due, name)) return;
    await stage.process.timersOfClock.sleep(ASK_AGAIN_MS);
  }
}

/** @returns whether there is nothing more to ask for. */
async function ask(stage: Stage, step: Step, { maxAttempts, nextAfterMs }: Due, name: number): Promise<boolean> {
  const { judge, coverage } = stage;
  const asking = stage.askingFor("mutex", name);
  const { ticks } = judge;
  // What is thrown in a run would be the failure of that run.
  const check = (wrong: string | undefined): void => judge.blame("a tick runs until it succeeds", wrong);
  const handOverMs = stage.handOverMs(asking);
  const asked = { asking, handOverMs, askedAt: stage.now() };
  if (handOverMs !== undefined) judge.handOver.takesTurns(stage.process, asking.key);
  const wasCalm = stage.calm();
  const called = judge.calls(stage.process, [asking.key]);
  const inTime = endsInTime(stage, step);
  const ended: typeof called = (missed) => {
    called(missed);
    inTime();
  };
  const failure = new RunError("the run failed");
  const tick = step.tick + Math.floor(stage.now() / nextAfterMs);
  let begun: { readonly holding: Holding; readonly tick: number; readonly attempt: number } | undefined;
  let hasEnded = (): void => undefined;
  const fn = async (lock: Holding["lock"]): Promise<void> => {
    ended();
    const { tick: own = 0, attempt = 0 } = lock;
    const holding = hold(stage, lock, asked);
    begun = { holding, tick: own, attempt };
    const run = { name: asking.name, tick: own, uuid: lock.uuid, attempt };
    check(ticks.begins(run, maxAttempts));
    await section(stage, step, holding);
    judge.gaveBack(holding);
    hasEnded = afterWork(stage, holding);
    if (!step.throws) {
      ticks.succeeded(run);
      return;
    }
    if (step.guarded) {
      ticks.uncounted(run);
      lock.uncountAttempt?.();
    }
    throw failure;
  };
  const untilSuccess = maxAttempts === Number.POSITIVE_INFINITY ? true : { maxAttempts };
  const which = step.kind === "every" ? periodOf(step.tick) : { once: tick };
  const options = { ...which, untilSuccess, holdAtLeastMs: step.holdAtLeastMs } as const;
  const trying = judge.freeRows.begins(stage.process, asking.key);
  const { value: turn, error } = await outcomeOf(stage.lockable(asking).tryRun?.(fn, options));
  hasEnded();
  trying.ended();
  if (begun === undefined) {
    const isHeld = turn?.ran === false && turn.reason === "held";
    if (isHeld && !stage.isFair(asking)) judge.blame("nobody is told held of a free row", trying.held());
    ended(turn?.ran === false && turn.reason === "held" ? { isTimeout: false } : undefined);
    if (turn?.ran !== false) {
      checkFailure(stage, step, { error, wasCalm });
      return stage.drainEnds() !== undefined;
    }
    coverage.count(`ticks until success: ${turn.reason}`);
    if (step.kind === "once") check(ticks.refused({ name: asking.name, tick }, turn.reason, maxAttempts));
    return turn.reason !== "held";
  }
  const { holding } = begun;
  if (step.throws) {
    if (error !== failure) throw new Violation("a call ends as documented", `tryRun hid the run's error: ${error}`);
    return false;
  }
  const mayFail = holding.told || !holding.calm || stage.network.troublesAfterWorkSince(holding.takenAt);
  if (error instanceof LockStoreError && mayFail) {
    coverage.count("ticks whose success was not known to be recorded");
    return false;
  }
  checkRelease(stage, step, holding, error);
  // After a loss it is recorded as well, or the error says that it is not.
  check(ticks.acknowledged({ ...begun, name: asking.name, uuid: holding.uuid }));
  coverage.count(error instanceof LockLostError ? "ticks recorded after a loss" : "ticks recorded");
  if (begun.attempt > 1) coverage.count("ticks recorded after other attempts");
  return true;
}
