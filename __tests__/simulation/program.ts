import type { LockOptions, TryLockOptions } from "../../lib/call-options.js";
import { LockError, LockLostError, LockStoreError, LockTimeoutError } from "../../lib/errors.js";
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
  readonly now: () => number;
  /** In epoch ms. */
  readonly tableTime: () => number;
  readonly mutex: (name: number) => SimMutex;
  readonly nameOf: (name: number) => string;
  /** Whether the faults are over, and forgotten. */
  readonly calm: () => boolean;
  /** Whether the release of this uuid was given up: then its lease ends by itself. */
  readonly gaveUp: (uuid: string) => boolean;
  /** A call that waits for a lock without end; the answer says that it waits no more. */
  readonly wants: (name: string) => () => void;
}

/** The name of the lock of those who run once in a period. */
const PERIODIC = 2;

/** What a guarded section writes. */
const ITEMS = [{ Put: { TableName: "results", Item: { id: { S: "result" } } } }];

/** Longer than any lease in a schedule. */
const NO_LEASE_MS = 60_000;

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
  // Periods are ticks of another size than those that are counted: they have a lock of their own.
  const name = step.kind === "every" ? PERIODIC : step.name;
  const mutex = stage.mutex(name);
  const wasCalm = stage.calm();
  const waits = step.kind === "lock" || step.kind === "run";
  const patient = waits && step.waitMs === Number.POSITIVE_INFINITY && step.abortAfterMs === undefined;
  const unwanted = patient ? stage.wants(stage.nameOf(name)) : () => undefined;
  const answered = stage.judge.asks(stage.process, stage.nameOf(name));
  const settled = (): void => {
    unwanted();
    answered();
  };
  const options: LockOptions = { signal, waitMs: step.waitMs, holdAtLeastMs: step.holdAtLeastMs };
  let lock: SimLock | null;
  try {
    if (step.kind === "run") {
      await runSection(stage, step, mutex, options, settled);
      return;
    }
    if (step.kind === "force") {
      await force(stage, mutex).finally(settled);
      return;
    }
    lock = step.kind === "lock" ? await mutex.lock(options) : await mutex.tryLock(tryOptions(step));
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
  const holding = hold(stage, lock, stage.nameOf(name));
  await section(stage, step, holding);
  await release(stage, step, holding);
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
      holding = hold(stage, lock, stage.nameOf(step.name));
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
  checkRelease(stage, step, holding, outcome.error, options.signal);
}

/**
 * Takes the lock away as a person would, who looks first: at once only where no live holder's stamp can lie so late, but
 * only that of a put that nobody stands behind any more.
 */
async function force({ coverage, tableTime }: Stage, mutex: SimMutex): Promise<void> {
  const holder = await mutex.inspect();
  if (holder?.uuid === undefined) return;
  const now = holder.expires.getTime() > tableTime() + NO_LEASE_MS;
  if (await mutex.forceUnlock(holder.uuid, { now }))
    coverage.count(`locks taken away by force${now ? " at once" : ""}`);
}

function tryOptions({ kind, tick, holdAtLeastMs }: Step): TryLockOptions {
  if (kind === "once") return { holdAtLeastMs, once: tick };
  if (kind === "every") return { holdAtLeastMs, everyMs: tick * 1_000 };
  return { holdAtLeastMs };
}

function hold(stage: Stage, lock: SimLock, name: string): Holding {
  const { process, judge, coverage } = stage;
  const holding: Holding = {
    name,
    takenAt: stage.now(),
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
async function section({ process, coverage, judge }: Stage, step: Step, { lock }: Holding): Promise<void> {
  // They may come too late, for a section that is over or whose lock is lost: that is what guards are for.
  const write = (): void => {
    lock.transactWrite(ITEMS).catch((error: unknown) => {
      if (error instanceof LockError) coverage.count(`guarded writes that failed: ${error.code}`);
      else judge.blame(new Violation("a call ends as documented", `transactWrite threw ${show(error)}`));
    });
  };
  if (step.guarded) for (const share of [0.5, 1]) process.after(step.holdMs * share, write);
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

async function release(stage: Stage, step: Step, holding: Holding): Promise<void> {
  stage.judge.gaveBack(holding);
  const error = await holding.lock.unlock().then(
    () => undefined,
    (reason: unknown) => reason,
  );
  checkRelease(stage, step, holding, error);
}

/** Leaving a section that was not protected must not look like success, and one that was must not look like failure. */
function checkRelease(stage: Stage, step: Step, holding: Holding, error: unknown, followed?: AbortSignal): void {
  const { uuid, lock, told } = holding;
  const { reason } = lock.signal;
  if (error === undefined) {
    const excused = followed?.aborted && reason === followed.reason;
    if (told && !excused)
      throw new Violation("a release tells the truth", `${uuid} was lost and its release succeeded`);
    stage.coverage.count("releases that succeeded");
    if (!stage.gaveUp(uuid)) stage.judge.holdsOn(holding, step.holdAtLeastMs);
    return;
  }
  if (!(error instanceof LockLostError))
    throw new Violation("a call ends as documented", `a release threw ${show(error)}`);
  if (error !== reason && !followed?.aborted) {
    throw new Violation("a release tells the truth", `${uuid}: the error is not the signal's reason`);
  }
  if (holding.calm && error.reason !== "max-hold" && error.reason !== "forced") {
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
