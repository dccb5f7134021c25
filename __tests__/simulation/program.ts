import { LockLostError, LockStoreError, LockTimeoutError } from "../../lib/errors.js";
import type { LockOptions } from "../../lib/options.js";
import type { Coverage } from "./coverage.js";
import { type Holding, type Judge, Violation } from "./invariants.js";
import type { Process } from "./machine.js";
import type { SimLock, SimMutex } from "./protocol.js";
import type { Step } from "./schedule.js";

/** What a program has to do with. */
export interface Stage {
  readonly process: Process;
  readonly judge: Judge;
  readonly coverage: Coverage;
  readonly mutex: (name: number) => SimMutex;
  readonly nameOf: (name: number) => string;
  /** Whether the faults are over, and forgotten. */
  readonly calm: () => boolean;
  /** A call that waits for a lock without end; the answer says that it waits no more. */
  readonly wants: (name: string) => () => void;
}

class SectionError extends Error {}

/** Does one step as a careful caller would, and checks that every call ends as documented. */
export async function play(stage: Stage, step: Step): Promise<void> {
  await sleep(stage.process, step.pauseMs);
  const giveUp = new AbortController();
  const cancel =
    step.abortAfterMs === undefined
      ? () => undefined
      : stage.process.after(step.abortAfterMs, () => giveUp.abort(new Error("the caller gave up")));
  try {
    await take(stage, step, giveUp.signal);
  } finally {
    cancel();
  }
}

async function take(stage: Stage, step: Step, signal: AbortSignal): Promise<void> {
  const mutex = stage.mutex(step.name);
  const wasCalm = stage.calm();
  const patient =
    step.kind !== "tryLock" && step.waitMs === Number.POSITIVE_INFINITY && step.abortAfterMs === undefined;
  const settled = patient ? stage.wants(stage.nameOf(step.name)) : () => undefined;
  const options: LockOptions = { signal, waitMs: step.waitMs };
  let lock: SimLock | null;
  try {
    if (step.kind === "run") {
      await runSection(stage, step, mutex, options, settled);
      return;
    }
    lock = step.kind === "lock" ? await mutex.lock(options) : await mutex.tryLock();
  } catch (error) {
    settled();
    checkFailure(stage, step, { error, signal, wasCalm });
    return;
  }
  settled();
  if (lock === null) {
    stage.coverage.count("tries that found the lock held");
    return;
  }
  const holding = hold(stage, step, lock);
  await section(stage, step, holding);
  await release(stage, holding);
}

async function runSection(
  stage: Stage,
  step: Step,
  mutex: SimMutex,
  options: LockOptions,
  settled: () => void,
): Promise<void> {
  let holding: Holding | undefined;
  const failure = new SectionError("the section failed");
  const outcome = await mutex
    .run(async (lock) => {
      settled();
      holding = hold(stage, step, lock);
      await section(stage, step, holding);
      stage.judge.gaveBack(holding);
      if (step.throws) throw failure;
    }, options)
    .then(
      () => ({ error: undefined }),
      (error: unknown) => ({ error }),
    );
  if (holding === undefined) throw outcome.error;
  if (step.throws) {
    if (outcome.error !== failure)
      throw new Violation("a call ends as documented", `run hid the section's error: ${outcome.error}`);
    return;
  }
  checkRelease(stage, holding, outcome.error, options.signal);
}

function hold(stage: Stage, step: Step, lock: SimLock): Holding {
  const { process, judge, coverage } = stage;
  const holding: Holding = {
    name: stage.nameOf(step.name),
    uuid: lock.uuid,
    lock,
    process,
    told: false,
    disturbed: false,
    calm: stage.calm(),
  };
  const { signal } = lock;
  if (signal.aborted) holding.told = true;
  signal.addEventListener("abort", () => {
    holding.told = true;
  });
  judge.took(holding);
  coverage.count("locks taken");
  return holding;
}

/** What runs under the lock: it ends early when the lock is lost, unless it does not care. */
async function section({ process }: Stage, step: Step, { lock }: Holding): Promise<void> {
  await new Promise<void>((resolve) => {
    const end = (): void => {
      cancel();
      lock.signal.removeEventListener("abort", end);
      resolve();
    };
    const cancel = process.after(step.holdMs, end);
    if (!step.careless) lock.signal.addEventListener("abort", end);
  });
}

async function release(stage: Stage, holding: Holding): Promise<void> {
  stage.judge.gaveBack(holding);
  const error = await holding.lock.unlock().then(
    () => undefined,
    (reason: unknown) => reason,
  );
  checkRelease(stage, holding, error);
}

/** Leaving a section that was not protected must not look like success, and one that was must not look like failure. */
function checkRelease(stage: Stage, holding: Holding, error: unknown, followed?: AbortSignal): void {
  const { uuid, lock, told } = holding;
  const { reason } = lock.signal;
  if (error === undefined) {
    const excused = followed?.aborted && reason === followed.reason;
    if (told && !excused)
      throw new Violation("a release tells the truth", `${uuid} was lost and its release succeeded`);
    stage.coverage.count("releases that succeeded");
    return;
  }
  if (!(error instanceof LockLostError))
    throw new Violation("a call ends as documented", `a release threw ${show(error)}`);
  if (error !== reason && !followed?.aborted) {
    throw new Violation("a release tells the truth", `${uuid}: the error is not the signal's reason`);
  }
  if (holding.calm && error.reason !== "max-hold") {
    throw new Violation("a lock is not lost without a cause", `${uuid}: ${error.message}`);
  }
  stage.coverage.count("releases that told of a loss");
}

function checkFailure(
  stage: Stage,
  step: Step,
  { error, signal, wasCalm }: { readonly error: unknown; readonly signal: AbortSignal; readonly wasCalm: boolean },
): void {
  if (error instanceof Violation) throw error;
  if (error instanceof LockTimeoutError && step.waitMs !== Number.POSITIVE_INFINITY) {
    stage.coverage.count("waits that timed out");
  } else if (signal.aborted && error === signal.reason) {
    stage.coverage.count("waits that were aborted");
  } else if (error instanceof LockStoreError && !wasCalm) {
    stage.coverage.count("calls that the store failed");
  } else {
    throw new Violation("a call ends as documented", `${step.kind} threw ${show(error)}`);
  }
}

function sleep(process: Process, ms: number): Promise<void> {
  return new Promise((resolve) => void process.after(ms, resolve));
}

function show(error: unknown): string {
  return error instanceof Error ? (error.stack ?? String(error)) : String(error);
}
