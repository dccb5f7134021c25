import type { LockOptions, TryLockOptions } from "../../lib/options/calls.js";
import { takeDue } from "./due-program.js";
import { handOff } from "./hand-off-program.js";
import { type Holding, Violation } from "./invariants.js";
import type { Process } from "./machine.js";
import type { SimLock, SimMutex } from "./protocol.js";
import type { Step } from "./schedule.js";
import {
  type Asked,
  checkFailure,
  checkRelease,
  hold,
  section as inSection,
  missedOf,
  release,
  type Stage,
} from "./section.js";
import { takeSet } from "./set-program.js";

/** The name of the lock of those who run once in a period. */
const PERIODIC = 2;

/** Longer than any lease in a schedule. */
const NO_LEASE_MS = 60_000;

class SectionError extends Error {}

/** Does one step as a careful caller would, and checks that every call ends as documented. */
export async function play(stage: Stage, step: Step): Promise<void> {
  await sleep(stage.process, step.pauseMs);
  const { due } = step;
  if (due !== undefined) {
    const ask = () => takeDue(stage, step, due, nameIn(step));
    await Promise.all(Array.from({ length: 1 + step.beside }, ask));
    return;
  }
  const times = step.kind === "lock" || step.kind === "run" || step.kind === "flight" ? step.times : 1;
  for (let section = 0; section < times; section += 1) {
    await Promise.all(Array.from({ length: 1 + step.beside }, () => playOnce(stage, step)));
  }
}

async function playOnce(stage: Stage, step: Step): Promise<void> {
  const giveUp = new AbortController();
  const cancel =
    step.abortAfterMs === undefined
      ? () => undefined
      : stage.process.after(step.abortAfterMs, () => giveUp.abort(new Error("the caller gave up")));
  try {
    await (step.kind === "set" ? takeSet : take)(stage, step, giveUp.signal);
  } finally {
    cancel();
  }
}

/** Periods are ticks of another size than those that are counted: they have a lock of their own. */
const nameIn = ({ kind, name }: Step): number => (kind === "every" ? PERIODIC : name);

async function take(stage: Stage, step: Step, signal: AbortSignal): Promise<void> {
  const asking = stage.askingFor(step.of, nameIn(step));
  const lockable = stage.lockable(asking);
  const wasCalm = stage.calm();
  const waits = ["lock", "run", "handOff", "flight"].includes(step.kind);
  const patient = waits && step.waitMs === Number.POSITIVE_INFINITY && step.abortAfterMs === undefined;
  const settled = patient ? stage.wants([asking]) : () => undefined;
  // A flight looks for a result before it stands in line, and may lead it for others of its process.
  const isInLine = waits && step.kind !== "flight";
  const askedAt = stage.now();
  const asked = { asking, handOverMs: stage.handOverMs(asking), askedAt: step.kind === "flight" ? undefined : askedAt };
  if (asked.handOverMs !== undefined) stage.judge.takesTurns(stage.process, asking.key);
  const data = step.withData ? { job: step.holdMs } : undefined;
  const options: LockOptions = { signal, waitMs: step.waitMs, holdAtLeastMs: step.holdAtLeastMs, data };
  const called = stage.judge.calls(stage.process, [asking.key]);
  const waiting = {
    askedAt,
    isOver: () => signal.aborted || stage.now() >= askedAt + step.waitMs,
  };
  const left = isInLine && step.waitMs > 0 ? stage.judge.waits(stage.process, asking, waiting) : () => undefined;
  const ended: typeof called = (missed) => {
    settled();
    left();
    called(missed);
  };
  let lock: SimLock | null;
  try {
    if (step.kind === "run") {
      await runSection(stage, step, lockable, { options, asked, settled: ended });
      return;
    }
    if (step.kind === "flight") {
      await fly(stage, step, lockable, { options, asked, settled: ended });
      return;
    }
    if (step.kind === "force") {
      await force(stage, lockable).finally(ended);
      return;
    }
    lock = waits ? await lockable.lock(options) : await lockable.tryLock({ ...tryOptions(step), data });
  } catch (error) {
    ended(missedOf(error));
    checkFailure(stage, step, { error, signal, wasCalm });
    return;
  }
  ended(lock === null ? { isTimeout: false } : undefined);
  if (lock === null) {
    stage.coverage.count("tries that found the lock held");
    return;
  }
  const holding = hold(stage, lock, asked);
  await inSection(stage, step, holding);
  if (step.kind === "handOff") await handOff(stage, step, holding);
  else await release(stage, step, holding);
}

/** What a section was asked for with, and what is to be called when the question is settled. */
interface Running {
  readonly options: LockOptions;
  readonly asked: Asked;
  readonly settled: () => void;
}

async function runSection(
  stage: Stage,
  step: Step,
  mutex: SimMutex,
  { options, asked, settled }: Running,
): Promise<void> {
  let holding: Holding | undefined;
  const failure = new SectionError("the section failed");
  const outcome = await mutex
    .run(async (lock) => {
      settled();
      holding = hold(stage, lock, asked);
      await inSection(stage, step, holding);
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

/** Shares a section with others: what it comes to is the uuid that it ran under. */
async function fly(
  stage: Stage,
  step: Step,
  mutex: SimMutex,
  { options: { signal, waitMs }, asked, settled }: Running,
): Promise<void> {
  const { judge, coverage, owner } = stage;
  const call = { owner, askedAt: stage.now(), freshMs: step.withinMs };
  let holding: Holding | undefined;
  const failure = new SectionError("the flight failed");
  const section = async (lock: SimLock): Promise<{ readonly uuid: string }> => {
    settled();
    holding = hold(stage, lock, asked);
    judge.flights.begins(lock.uuid, owner);
    await inSection(stage, step, holding);
    judge.gaveBack(holding);
    if (step.throws) throw failure;
    return { uuid: lock.uuid };
  };
  const outcome = await mutex.singleFlight?.(section, { signal, waitMs, freshMs: call.freshMs }).then(
    (value) => ({ value, error: undefined }),
    (error: unknown) => ({ value: undefined, error }),
  );
  if (holding !== undefined) {
    if (step.throws && outcome?.error !== failure)
      throw new Violation("a call ends as documented", `singleFlight hid the section's error: ${outcome?.error}`);
    if (!step.throws) checkRelease(stage, { ...step, holdAtLeastMs: 0 }, holding, outcome?.error, signal);
    return;
  }
  if (outcome?.value === undefined) throw outcome?.error;
  settled();
  coverage.count(call.freshMs > 0 ? "results shared: fresh enough" : "results shared");
  const wrong = judge.flights.got(call, outcome.value.uuid);
  if (wrong !== undefined) throw new Violation("a result is as young as asked for", wrong);
}

/**
 * Takes the lock away as a person would, who looks first: at once only where nobody stands behind it any more, and its
 * stamp would keep others waiting.
 */
async function force({ judge, coverage, isAlive, tableTime }: Stage, mutex: SimMutex): Promise<void> {
  const holder = await mutex.inspect();
  if (holder?.uuid === undefined) return;
  const isFar = holder.expires.getTime() > tableTime() + NO_LEASE_MS;
  const isAbandoned = !isAlive(holder.owner) || judge.hasEnded(holder.uuid);
  // Nobody would enter until then.
  if (isFar && !isAbandoned) return;
  const now = isFar;
  if (await mutex.forceUnlock(holder.uuid, { now }))
    coverage.count(`locks taken away by force${now ? " at once" : ""}`);
}

function tryOptions({ kind, tick, holdAtLeastMs }: Step): TryLockOptions {
  if (kind === "once") return { holdAtLeastMs, once: tick };
  if (kind === "every") return { holdAtLeastMs, everyMs: tick * 1_000 };
  return { holdAtLeastMs };
}

function sleep(process: Process, ms: number): Promise<void> {
  return new Promise((resolve) => void process.after(ms, resolve));
}
