import type { PermitOptions, TryLockOptions } from "../../../lib/options/calls.js";
import { takeDue } from "./due-program.js";
import { stand } from "./elect-program.js";
import { handOff } from "./hand-off-program.js";
import { check, type Holding, Violation } from "./invariants.js";
import type { Asking } from "./locks.js";
import type { SimLock, SimLockable } from "./protocol.js";
import type { Step } from "./schedule.js";
import {
  type Asked,
  afterWork,
  checkFailure,
  checkRelease,
  endsInTime,
  hold,
  section as inSection,
  missedOf,
  outcomeOf,
  patiently,
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
  await stage.process.timersOfClock.sleep(step.pauseMs);
  const { due } = step;
  if (due !== undefined) {
    const ask = () => takeDue(stage, step, due, nameIn(step));
    await Promise.all(Array.from({ length: 1 + step.beside }, ask));
    return;
  }
  if (step.kind === "elect") {
    await stand(stage, step);
    return;
  }
  const times = step.kind === "lock" || step.kind === "run" || step.kind === "flight" ? step.times : 1;
  for (let section = 0; section < times; section += 1) {
    await Promise.all(Array.from({ length: 1 + step.beside }, () => playOnce(stage, step)));
  }
}

async function playOnce(stage: Stage, step: Step): Promise<void> {
  await patiently(stage, step, (signal) => (step.kind === "set" ? takeSet : take)(stage, step, signal));
}

/** Periods are ticks of another size than those that are counted: they have a lock of their own. */
const nameIn = ({ kind, name }: Step): number => (kind === "every" ? PERIODIC : name);

async function take(stage: Stage, step: Step, signal: AbortSignal): Promise<void> {
  const asking = { ...stage.askingFor(step.of, nameIn(step)), permits: step.permits };
  const lockable = stage.lockable(asking);
  const wasCalm = stage.calmInLine();
  const waits = ["lock", "run", "handOff", "flight"].includes(step.kind);
  const patient = waits && step.waitMs === Number.POSITIVE_INFINITY && step.abortAfterMs === undefined;
  const { weight = 1 } = step;
  const several = weight > 1 ? { permits: weight } : undefined;
  const settled = patient ? stage.wants([{ ...asking, weight }]) : () => undefined;
  // A flight looks for a result before it stands in line, and may lead it for others of its process.
  const isInLine = waits && step.kind !== "flight";
  const askedAt = stage.now();
  const isPlain = waits && step.kind !== "flight" && asking.kind === "mutex" && !stage.isFair(asking);
  const free = isPlain ? stage.judge.freeRows.begins(stage.process, asking.key) : undefined;
  stage.judge.freeRows.asks(stage.process, asking.key);
  const asked = {
    asking: { ...asking, weight },
    handOverMs: stage.handOverMs(asking),
    askedAt: step.kind === "flight" ? undefined : askedAt,
  };
  if (asked.handOverMs !== undefined) stage.judge.handOver.takesTurns(stage.process, asking.key);
  const data = step.withData ? { job: step.holdMs } : undefined;
  const options: PermitOptions = {
    signal,
    waitMs: step.waitMs,
    holdAtLeastMs: step.rateMs === undefined ? step.holdAtLeastMs : 0,
    data,
    ...several,
  };
  const called = stage.judge.calls(stage.process, [asking.key]);
  const standing = {
    askedAt,
    isOver: () => signal.aborted || stage.now() >= askedAt + step.waitMs,
  };
  const left =
    isInLine && step.waitMs > 0 ? stage.judge.line.begins(stage.process, asking.key, standing) : () => undefined;
  const inTime = waits ? endsInTime(stage, step, step.waitMs, signal) : triesInTime(stage, step);
  const ended: typeof called = (missed) => {
    settled();
    left();
    called(missed);
    inTime();
    if (missed?.isTimeout) stage.judge.blame("nobody is told held of a free row", free?.held());
    free?.ended();
  };
  let lock: SimLock | null;
  try {
    if (step.kind === "run" || step.kind === "flight") {
      await (step.kind === "run" ? runSection : fly)(stage, step, lockable, { options, asked, settled: ended });
      return;
    }
    if (step.kind === "force") {
      await force(stage, asking).finally(ended);
      return;
    }
    lock = waits ? await lockable.lock(options) : await lockable.tryLock({ ...tryOptions(step), data, ...several });
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

/** To take a lock away by force is no call for it. */
const triesInTime = (stage: Stage, step: Step) => (step.kind === "force" ? () => undefined : endsInTime(stage, step));

/** What a section was asked for with, and what is to be called when the question is settled. */
interface Running {
  readonly options: PermitOptions;
  readonly asked: Asked;
  readonly settled: () => void;
}

/** What a flight comes to. */
interface Shared {
  readonly uuid: string;
}

/** What comes of a call that runs a section under its lock, and shares the uuid that it ran under. */
async function outcomeOfSection(
  stage: Stage,
  step: Step,
  { asked, settled }: Running,
  call: (section: (lock: SimLock) => Promise<Shared>) => Promise<Shared | undefined> | undefined,
) {
  let holding: Holding | undefined;
  let hasEnded = (): void => undefined;
  const failure = new SectionError("the section failed");
  const { value, error } = await outcomeOf(
    call(async (lock) => {
      settled();
      holding = hold(stage, lock, asked);
      if (step.kind === "flight") stage.judge.flights.begins(lock.uuid, stage.owner);
      await inSection(stage, step, holding);
      stage.judge.gaveBack(holding);
      hasEnded = afterWork(stage, holding);
      if (step.throws) throw failure;
      return { uuid: lock.uuid };
    }),
  );
  hasEnded();
  if (holding !== undefined && step.throws && error !== failure)
    throw new Violation("a call ends as documented", `${step.kind} hid the section's error: ${error}`);
  return { holding, value, error };
}

async function runSection(stage: Stage, step: Step, lockable: SimLockable, running: Running): Promise<void> {
  const { options } = running;
  const { holding, error } = await outcomeOfSection(stage, step, running, async (section) => {
    await lockable.run(async (lock) => void (await section(lock)), options);
    return undefined;
  });
  if (holding === undefined) throw error;
  if (!step.throws) checkRelease(stage, step, holding, error, options.signal);
}

/** Shares a section with others. */
async function fly(stage: Stage, step: Step, lockable: SimLockable, running: Running): Promise<void> {
  const { judge, coverage, owner, now } = stage;
  const { signal, waitMs } = running.options;
  const call = { owner, askedAt: now(), freshMs: step.withinMs };
  const landed = judge.handOver.flies(stage.process, running.asked.asking.key);
  const { holding, value, error } = await outcomeOfSection(stage, step, running, (section) =>
    lockable.singleFlight?.(section, { signal, waitMs, freshMs: call.freshMs }),
  );
  landed();
  if (holding !== undefined) {
    if (!step.throws) checkRelease(stage, { ...step, holdAtLeastMs: 0 }, holding, error, signal);
    return;
  }
  if (value === undefined) throw error;
  running.settled();
  coverage.count(call.freshMs > 0 ? "results shared: fresh enough" : "results shared");
  check("a result is as young as asked for", judge.flights.got(call, value.uuid));
}

/**
 * Takes the lock away as a person would, who looks first: at once only where nobody stands behind it any more, and its
 * stamp would keep others waiting.
 */
async function force({ judge, coverage, isAlive, holderOf, epoch, now }: Stage, asking: Asking): Promise<void> {
  const { holder, held } = await holderOf(asking);
  if (holder?.uuid === undefined) return;
  const isFar = holder.expires.getTime() > epoch + now() + NO_LEASE_MS;
  const isAbandoned = !isAlive(holder.owner) || judge.ended.has(holder.uuid);
  // Nobody would enter until then.
  if (isFar && !isAbandoned) return;
  if (await held.forceUnlock(holder.uuid, { now: isFar }))
    coverage.count(`locks taken away by force${isFar ? " at once" : ""}`);
}

/** The tick of a period of so many seconds, by either way to name it. Hosts that name it by a function may be early by a second. */
export function periodOf(seconds: number): Pick<TryLockOptions, "everyMs" | "once" | "earlyMs"> {
  const everyMs = seconds * 1_000;
  if (seconds % 2 === 1) return { everyMs };
  return { once: (now) => Math.floor(now.getTime() / everyMs) * everyMs, earlyMs: everyMs / 4 };
}

function tryOptions({ kind, tick, holdAtLeastMs, rateMs }: Step): TryLockOptions {
  if (rateMs !== undefined) return {};
  if (kind === "once") return { holdAtLeastMs, once: tick };
  if (kind === "every") return { holdAtLeastMs, ...periodOf(tick) };
  return { holdAtLeastMs };
}
