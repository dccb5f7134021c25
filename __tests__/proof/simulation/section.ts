import { LockError, LockLostError, LockStoreError, LockTimeoutError } from "../../../lib/errors.js";
import type { LockOptions } from "../../../lib/options/calls.js";
import type { HandOff } from "./hand-off-judge.js";
import { type Holding, Violation } from "./invariants.js";
import type { Asking, Kind } from "./locks.js";
import type { Process } from "./machine.js";
import type { Missed } from "./own-claim-judge.js";
import type { Forceable, Holder, SimLock, SimLockable, SimSet } from "./protocol.js";
import type { Step } from "./schedule.js";
import type { Surroundings } from "./simulated-host.js";

/** How much faster the simulated time may run than a stopwatch. */
const RATE = 1e-3;
/** What timers are late by. */
const LAG_MS = 10;

/** The default, which sets have. */
const HAND_OVER_OF_SETS_MS = 500;

/** What a program has to do with. */
export interface Stage extends Surroundings {
  readonly process: Process;
  readonly owner: string;
  readonly now: () => number;
  readonly lockable: (asking: Asking, fencing?: boolean) => SimLockable;
  /** Somebody who has this lock, and what takes it from them by force. */
  readonly holderOf: (asking: Asking) => Promise<{ readonly holder: Holder | undefined; readonly held: Forceable }>;
  readonly askingFor: (kind: Kind, name: number) => Asking;
  /** Whether its mutexes are fenced. */
  readonly fencing: boolean;
  /** Whether its locks are renewed by themselves. */
  readonly autoRenew: boolean;
  readonly lockAll: (names: readonly string[], options: LockOptions) => Promise<SimSet>;
  /** For how long a lease of this lock may be passed on without a look; undefined where none is passed on. */
  readonly handOverMs: (asking: Asking) => number | undefined;
  /** For how long sections of a process may join others of the shared side without a look. */
  readonly joinMs: number;
  readonly isFair: (asking: Asking) => boolean;
  /** Within how long each call that waits for a mutex has it; undefined where nothing promises that. */
  readonly servedWithinMs: number | undefined;
  readonly releaseWithinMs: number;
  /** Whether the faults are over, and forgotten. */
  readonly calm: () => boolean;
  /** The same for a call behind others of its process: it shares the pause after the last failure of one of them. */
  readonly calmInLine: () => boolean;
  /** Until when the sections of its process may run on, if its table was closed. */
  readonly drainEnds: () => number | undefined;
  /** What its sections await before they end, if they wait for the close of their own table. */
  readonly awaitsClose: () => Promise<unknown> | undefined;
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
  checkWait(stage, asked);
  // Without a spread, which would make each holding twice as slow to look at.
  const holding: Holding = {
    asking: asked.asking,
    handOverMs: asked.handOverMs,
    askedAt: asked.askedAt,
    name: asked.asking.key,
    joinMs: stage.joinMs,
    isFair: stage.isFair(asked.asking),
    autoRenew: stage.autoRenew,
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
  const { weight = 1, permits = Number.POSITIVE_INFINITY } = asked.asking;
  if ((lock.permits?.length ?? 1) !== weight)
    throw new Violation(
      "a set is all or nothing",
      `${lock.uuid} has the permits ${lock.permits}, and was to have ${weight}`,
    );
  const foreign = lock.permits?.find((permit) => permit >= permits);
  if (foreign !== undefined)
    throw new Violation("no more than there are permits", `${lock.uuid} has permit ${foreign} of ${permits}`);
  if (permits < stage.schedule.permits) coverage.count("permits taken by somebody who knows of fewer");
  if (weight > 1)
    coverage.count(resumed === undefined ? "locks of several permits taken" : "locks of several permits resumed");
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

/** Whoever waits against one busy host gets in. */
function checkWait({ servedWithinMs, coverage, now }: Stage, { asking, askedAt }: Asked): void {
  if (servedWithinMs === undefined || askedAt === undefined) return;
  coverage.count("waits against one busy host");
  const ms = now() - askedAt;
  if (ms > servedWithinMs)
    throw new Violation("whoever waits gets in", `${asking.key} after ${ms} ms, which is over ${servedWithinMs}`);
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
  if (step.withData) process.after(step.holdMs / 4, () => replaceData(stage, step, lock));
  if (step.extends)
    for (const share of [0.3, 0.6, 0.9]) process.after(step.holdMs * share, () => extend(stage, lock, [holding]));
  if (step.guarded) for (const share of [0.5, 1]) process.after(step.holdMs * share, write);
  await ended(stage, step, lock.signal);
  const closed = stage.awaitsClose();
  if (closed !== undefined) {
    coverage.count("sections that awaited a close of their own table");
    await closed;
  }
  judge.looksWhetherWanted(holding, step.kind === "set" ? HAND_OVER_OF_SETS_MS : holding.joinMs);
}

/** It may come too late as well. If the table refuses the data, the lock goes on. */
function replaceData({ coverage, judge }: Stage, { holdMs }: Step, lock: SimLock): void {
  lock.replaceData({ job: holdMs, isHalfDone: true }).then(
    () => coverage.count("data replaced"),
    (error: unknown) => {
      if (error instanceof LockError) coverage.count(`data not replaced: ${error.code}`);
      else judge.blame("a call ends as documented", `replaceData threw ${show(error)}`);
    },
  );
}

/**
 * A lease that is extended ends no earlier than before, and is held; so are those of a set, all of them. The call ends when the
 * last of the leases would have ended, if its process knows: it may not know that it was suspended.
 */
export function extend(stage: Stage, extended: Pick<SimLock, "extend" | "signal">, holdings: readonly Holding[]): void {
  const { coverage, judge } = stage;
  const what = holdings.length > 1 ? "sets" : "leases";
  const before = new Map(holdings.map(({ lock }) => [lock, lock.expires]));
  const wasCalm = stage.calm();
  const ms = Math.max(0, ...holdings.map(({ lock }) => leaseMs(stage, lock)));
  const inTime = within(stage, ms, `extend() of a lease of ${ms} ms`);
  const answered = (): void => inTime(holdings.some(({ disturbed }) => disturbed));
  extended.extend().then(
    () => {
      answered();
      coverage.count(`${what} extended${stage.autoRenew ? "" : " that are not renewed by themselves"}`);
      const wrong = (detail: string): void => judge.blame("a call ends as documented", detail);
      for (const [{ uuid, expires }, earlier] of before)
        if (expires < earlier) wrong(`${uuid} was extended to ${expires.toISOString()}, which is no later`);
      // A signal may abort without a loss: that of a call that was given up, or of a leader that has to end.
      const { reason } = extended.signal;
      if (reason instanceof LockLostError) wrong(`${what} were extended after ${reason.message}`);
    },
    (error: unknown) => {
      answered();
      const isOver = error instanceof LockLostError || (error instanceof LockError && error.code === "LOCK_RELEASED");
      if (isOver || (error instanceof LockStoreError && !wasCalm))
        coverage.count(`${what} not extended: ${error.code}`);
      else judge.blame("a call ends as documented", `extend threw ${show(error)}`);
    },
  );
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

/** How long its lease lasts, by the table's time: its holder may not count on all of it. */
const leaseMs = ({ epoch, now }: Stage, { expires }: SimLock): number => expires.getTime() - epoch - now();

/** The function of a call has ended. @returns what is to be called when the call has. */
export function afterWork(stage: Stage, holding: Holding): () => void {
  const { releaseWithinMs } = stage;
  return endsWithin(stage, holding, Math.max(leaseMs(stage, holding.lock), releaseWithinMs) + releaseWithinMs);
}

/** A section is over. @param mostMs one deadline for all that its end takes. @returns what is to be called when its caller has the answer. */
export function endsWithin(
  { judge, now, releaseWithinMs }: Stage,
  holding: Holding,
  mostMs: number = releaseWithinMs,
): () => void {
  const since = now();
  judge.afterWork.add(holding);
  return () => {
    judge.afterWork.delete(holding);
    const ms = now() - since;
    if (ms > mostMs * (1 + RATE) + LAG_MS && !holding.disturbed)
      throw new Violation("a step after the work ends", `${holding.uuid}: answered ${ms} ms after its section`);
  };
}

/** Gives the lock back. */
export async function release(stage: Stage, step: Step, holding: Holding): Promise<void> {
  stage.judge.gaveBack(holding);
  const hasEnded = endsWithin(stage, holding);
  const { error } = await outcomeOf(holding.lock.unlock());
  hasEnded();
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
  } else if (holding.calm && !mayEnd(holding, error)) {
    throw new Violation("a lock is not lost without a cause", `${uuid}: ${error.message}`);
  }
}

/** Whether a lock may be lost so though all is well. */
const mayEnd = ({ autoRenew }: Holding, { reason }: LockLostError): boolean =>
  reason === "max-hold" || reason === "forced" || (reason === "expired" && !autoRenew);

/** Whom a call that timed out names; undefined where it failed otherwise. */
export function missedOf(error: unknown): Missed | undefined {
  return error instanceof LockTimeoutError ? { named: error.holder?.uuid, isTimeout: true } : undefined;
}

/** How a call has failed. */
export interface Failure {
  readonly error: unknown;
  /** With which its caller may have given up. */
  readonly signal?: AbortSignal;
  /** Whether the faults were over when it began. */
  readonly wasCalm: boolean;
}

/** For how long a call that does not wait is tried. */
const TRIED_FOR_MS = 10_000;

/** What timers and a cancelled attempt may add to that. */
const GRACE_MS = 100;

/** The longest that an attempt waits for its answer, and a request of a call whose `waitMs` has passed for its slot. */
const ATTEMPT_MS = 3_000;

/** The longest pause of a call that asks again although nothing has failed. */
const PAUSE_MS = 1_500;

/**
 * How long a try may wait until its tick has begun: `earlyMs`, and 5 s for the clock. In an outage a claim without an answer may use its
 * tick up, and the next one waits for a later tick. The ticks of schedules last seconds, so that happens more than once: twice as much.
 */
const TICK_WAITED_MS = 2 * 6_000;

/** The requests of one try, and what they may take in all: a look of several pages, a ticket, a place, a look, a claim, a renewal. */
const TRY_MS = 10 * ATTEMPT_MS;

/**
 * Watches how long a call takes until it has its lock, or has ended without. One that waits brings the try that is under way after
 * `waitMs` to its end: that needs one request after the other, and the first that is not answered in time ends it.
 * @param waitMs how long it waits; undefined for a try, which has no such option.
 * @returns what is to be called at its end.
 */
export function endsInTime(stage: Stage, { kind }: Step, waitMs?: number, signal?: AbortSignal): () => void {
  const ends =
    waitMs === undefined
      ? [within(stage, TRIED_FOR_MS + (kind === "every" ? TICK_WAITED_MS : 0), `${kind} that does not wait`)]
      : [
          within(stage, waitMs, `${kind} that waits for ${waitMs} ms`, 2 * ATTEMPT_MS + PAUSE_MS),
          within(stage, waitMs + TRY_MS, `${kind} that waits for ${waitMs} ms`),
        ];
  const aborted = (): void => void ends.push(within(stage, 0, `${kind} that was aborted`));
  signal?.addEventListener("abort", aborted);
  return () => {
    signal?.removeEventListener("abort", aborted);
    for (const end of ends) end();
  };
}

/**
 * Watches how long something takes. Two timers, one after the other: after a suspension the first rings at once, and what else
 * was due with it.
 * @param silentMs it may go on for so long after its process last heard from the table. Default: not at all.
 * @returns what is to be called at its end.
 */
function within({ process, judge, now }: Stage, ms: number, what: string, silentMs = 0): (isExcused?: boolean) => void {
  if (ms === Number.POSITIVE_INFINITY) return () => undefined;
  let isLate = false;
  let cancel: () => void;
  const endsAt = now() + ms;
  const check = (): void => {
    const leftMs = Math.max(endsAt, judge.heardAt(process)) + silentMs - now();
    if (silentMs > 0 && leftMs > 0) watch(leftMs);
    else isLate = true;
  };
  const watch = (inMs: number): void => {
    cancel = process.timersOfClock.alarm(inMs + GRACE_MS / 2, () => {
      cancel = process.timersOfClock.alarm(GRACE_MS / 2, check);
    });
  };
  watch(ms + silentMs);
  return (isExcused = false) => {
    cancel();
    judge.blame("a call ends in time", isLate && !isExcused ? `${what} took more than ${ms + GRACE_MS} ms` : undefined);
  };
}

/** A call for a lock has failed. */
export function checkFailure(stage: Stage, step: Step, failure: Failure): void {
  const { error } = failure;
  if (error instanceof LockTimeoutError && error.holder === undefined && !/first|permits-differ/.test(error.message))
    throw new Violation("a busy lock is somebody's", `${step.kind} threw ${show(error)}`);
  if (error instanceof LockTimeoutError && step.waitMs !== Number.POSITIVE_INFINITY) {
    stage.coverage.count("waits that timed out");
  } else if (error instanceof LockTimeoutError && asksForMoreThanOthersKnow(stage, step, error)) {
    stage.coverage.count("waits for more permits than others know of");
  } else if (!endsAsDocumented(stage, "calls", failure)) {
    throw new Violation("a call ends as documented", `${step.kind} threw ${show(error)}`);
  }
}

/** A fair call for all permits ends at once where others know of fewer, and says so. */
const asksForMoreThanOthersKnow = ({ schedule }: Stage, { of, weight }: Step, { message }: LockTimeoutError): boolean =>
  of === "permit" && weight === schedule.permits && message.includes("permits-differ");

/** Whether any call may fail so: then it is counted among those of its sort. */
export function endsAsDocumented(stage: Stage, calls: string, { error, signal, wasCalm }: Failure): boolean {
  if (error instanceof Violation) throw error;
  const isClosed = error instanceof LockError && error.code === "LOCK_CLOSED" && stage.drainEnds() !== undefined;
  if (signal?.aborted && error === signal.reason)
    stage.coverage.count(`${calls === "calls" ? "waits" : calls} that were aborted`);
  else if (isClosed) stage.coverage.count(`${calls} that a close ended`);
  else if (error instanceof LockStoreError && !wasCalm) stage.coverage.count(`${calls} that the store failed`);
  else return false;
  return true;
}

/** What a call comes to, which is nothing where it cannot be made. */
export async function outcomeOf<Value>(
  call: Promise<Value> | undefined,
): Promise<{ readonly value?: Value | undefined; readonly error?: unknown }> {
  try {
    return { value: await call };
  } catch (error) {
    return { error };
  }
}

/** Makes a call that its caller gives up after a while, if the step says so. */
export async function patiently(
  { process }: Stage,
  { abortAfterMs }: Step,
  call: (signal: AbortSignal) => Promise<void>,
): Promise<void> {
  const giveUp = new AbortController();
  const abort = (): void => giveUp.abort(new Error("the caller gave up"));
  const cancel = abortAfterMs === undefined ? undefined : process.after(abortAfterMs, abort);
  try {
    await call(giveUp.signal);
  } finally {
    cancel?.();
  }
}

export function show(error: unknown): string {
  return error instanceof Error ? (error.stack ?? String(error)) : String(error);
}
