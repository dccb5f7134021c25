import { LockError, LockLostError, LockStoreError, LockTimeoutError } from "../../lib/errors.js";
import type { LockOptions } from "../../lib/options/calls.js";
import type { Coverage } from "./coverage.js";
import type { HandOff } from "./hand-off-judge.js";
import { type Holding, type Judge, Violation } from "./invariants.js";
import type { Asking, Kind } from "./locks.js";
import type { Process } from "./machine.js";
import type { Missed } from "./own-claim-judge.js";
import type { SimLock, SimMutex, SimSet } from "./protocol.js";
import type { Step } from "./schedule.js";

/** The default, which sets have. */
const HAND_OVER_OF_SETS_MS = 500;

/** What a program has to do with. */
export interface Stage {
  readonly process: Process;
  readonly owner: string;
  readonly judge: Judge;
  readonly coverage: Coverage;
  readonly now: () => number;
  /** In epoch ms. */
  readonly tableTime: () => number;
  /** Either side of a shared mutex, and a semaphore, as if they were mutexes. */
  readonly lockable: (asking: Asking, fencing?: boolean) => SimMutex;
  readonly askingFor: (kind: Kind, name: number) => Asking;
  /** Whether its mutexes are fenced. */
  readonly fencing: boolean;
  /** How many may hold a lock of this kind at once. */
  readonly permits: number;
  readonly lockAll: (names: readonly number[], options: LockOptions) => Promise<SimSet>;
  /** For how long a lease of this lock may be passed on without a look; undefined where none is passed on. */
  readonly handOverMs: (asking: Asking) => number | undefined;
  /** For how long sections of a process may join others of the shared side without a look. */
  readonly joinMs: number;
  readonly isFair: (asking: Asking) => boolean;
  readonly nameOf: (name: number) => string;
  /** Whether the process of this owner runs. */
  readonly isAlive: (owner: string) => boolean;
  /** Whether the faults are over, and forgotten. */
  readonly calm: () => boolean;
  /** Until when the sections of its process may run on, if its table was closed. */
  readonly drainEnds: () => number | undefined;
  /** Whether the release of this uuid was given up: then its lease ends by itself. */
  readonly gaveUp: (uuid: string) => boolean;
  /** A call that waits for locks without end; the answer says that it waits no more. */
  readonly wants: (locks: readonly Asking[]) => () => void;
  /** Sends a token on its way. */
  readonly handOn: (handed: HandedOn) => void;
}

/** A token, as a queue delivers it. */
export interface HandedOn {
  readonly token: string;
  readonly handed: HandOff;
  readonly step: Step;
  readonly asking: Asking;
  readonly fencing: boolean;
}

/** A token that is none, and the lock that it is for. */
export type ForgedToken = Pick<HandedOn, "token" | "asking" | "fencing">;

/** What a section was asked for with. */
export type Asked = Pick<Holding, "asking" | "handOverMs" | "askedAt">;

/** The program has got a lock. */
export function hold(stage: Stage, lock: SimLock, asked: Asked, resumed?: HandOff): Holding {
  const { process, owner, judge, coverage } = stage;
  const holding: Holding = {
    ...asked,
    name: asked.asking.key,
    joinMs: stage.joinMs,
    isFair: stage.isFair(asked.asking),
    permits: stage.permits,
    id: judge.idOf(lock.uuid),
    owner,
    takenAt: stage.now(),
    uuid: lock.uuid,
    lock,
    process,
    told: false,
    isGuarded: false,
    isOver: false,
    disturbed: false,
    calm: stage.calm(),
  };
  const { signal } = lock;
  if (signal.aborted) holding.told = true;
  signal.addEventListener("abort", () => {
    holding.told = true;
    if (holding.isOver) judge.blame("a loss reaches its section", `${lock.uuid} is told of one that was not its own`);
  });
  judge.took(holding, resumed);
  coverage.count(asked.asking.kind === "mutex" ? "locks taken" : `locks taken: ${asked.asking.kind}`);
  return holding;
}

/** What runs under the lock: it ends early when the lock is lost, unless it does not care. */
export async function section(stage: Stage, step: Step, holding: Holding): Promise<void> {
  const { process, coverage, judge } = stage;
  const { lock } = holding;
  // They may come too late, for a section that is over or whose lock is lost: that is what guards are for.
  const write = (): void => {
    holding.isGuarded = true;
    lock.transactWrite(itemsOf(holding)).catch((error: unknown) => {
      if (error instanceof LockError) coverage.count(`guarded writes that failed: ${error.code}`);
      else judge.blame("a call ends as documented", `transactWrite threw ${show(error)}`);
    });
  };
  if (step.guarded) for (const share of [0.5, 1]) process.after(step.holdMs * share, write);
  await ended(stage, step, lock.signal);
  judge.looksWhetherWanted(holding, step.kind === "set" ? HAND_OVER_OF_SETS_MS : holding.joinMs);
}

/** A section's time is over, or its signal tells it to end. */
export function ended({ process }: Stage, { holdMs, careless }: Step, signal: AbortSignal): Promise<void> {
  return new Promise<void>((resolve) => {
    const end = (): void => {
      cancel();
      signal.removeEventListener("abort", end);
      resolve();
    };
    const cancel = process.after(holdMs, end);
    if (!careless) signal.addEventListener("abort", end);
  });
}

/** What a guarded section writes: it says by whom. */
function itemsOf({ id }: Holding) {
  return [{ Put: { TableName: "results", Item: { id: { S: id } } } }];
}

/** Gives the lock back. */
export async function release(stage: Stage, step: Step, holding: Holding): Promise<void> {
  stage.judge.gaveBack(holding);
  const error = await holding.lock.unlock().then(
    () => undefined,
    (reason: unknown) => reason,
  );
  checkRelease(stage, step, holding, error);
}

/** Leaving a section that was not protected must not look like success, and one that was must not look like failure. */
export function checkRelease(stage: Stage, step: Step, holding: Holding, error: unknown, followed?: AbortSignal): void {
  const { uuid, lock, told } = holding;
  const { reason } = lock.signal;
  if (error === undefined) {
    const excused = followed?.aborted && reason === followed.reason;
    if (told && !excused)
      throw new Violation("a release tells the truth", `${uuid} was lost and its release succeeded`);
    stage.coverage.count("releases that succeeded");
    holding.isOver = true;
    if (!stage.gaveUp(uuid)) stage.judge.holdsOn(holding, step.holdAtLeastMs);
    return;
  }
  if (!(error instanceof LockLostError))
    throw new Violation("a call ends as documented", `a release threw ${show(error)}`);
  checkLoss(stage, holding, error, followed);
  stage.coverage.count("releases that told of a loss");
}

/** A section is told at its end that its lock was lost. */
export function checkLoss(stage: Stage, holding: Holding, error: LockLostError, followed?: AbortSignal): void {
  const { uuid, lock } = holding;
  if (error !== lock.signal.reason && !followed?.aborted) {
    throw new Violation("a release tells the truth", `${uuid}: the error is not the signal's reason`);
  }
  if (error.reason === "closed") {
    const drainEnds = stage.drainEnds();
    if (drainEnds === undefined) throw new Violation("a lock is not lost without a cause", `${uuid}: ${error.message}`);
    if (stage.now() < drainEnds) throw new Violation("a drain lasts", `${uuid} was revoked before ${drainEnds}`);
  } else if (holding.calm && error.reason !== "max-hold" && error.reason !== "forced") {
    throw new Violation("a lock is not lost without a cause", `${uuid}: ${error.message}`);
  }
}

/** Whom a call that timed out names; undefined where it failed otherwise. */
export function missedOf(error: unknown): Missed | undefined {
  return error instanceof LockTimeoutError ? { named: error.holder?.uuid, isTimeout: true } : undefined;
}

/** A call for a lock has failed. */
export function checkFailure(
  stage: Stage,
  step: Step,
  { error, signal, wasCalm }: { readonly error: unknown; readonly signal: AbortSignal; readonly wasCalm: boolean },
): void {
  if (error instanceof Violation) throw error;
  if (error instanceof LockTimeoutError && step.waitMs !== Number.POSITIVE_INFINITY) {
    stage.coverage.count("waits that timed out");
  } else if (signal.aborted && error === signal.reason) {
    stage.coverage.count("waits that were aborted");
  } else if (error instanceof LockError && error.code === "LOCK_CLOSED" && stage.drainEnds() !== undefined) {
    stage.coverage.count("calls that a close ended");
  } else if (error instanceof LockStoreError && !wasCalm) {
    stage.coverage.count("calls that the store failed");
  } else {
    throw new Violation("a call ends as documented", `${step.kind} threw ${show(error)}`);
  }
}

export function show(error: unknown): string {
  return error instanceof Error ? (error.stack ?? String(error)) : String(error);
}
