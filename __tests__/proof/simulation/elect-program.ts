import { ElectionJudge } from "./elect-judge.js";
import { type Holding, Violation } from "./invariants.js";
import type { SimElection, SimLock } from "./protocol.js";
import type { Step } from "./schedule.js";
import { type Asked, endsAsDocumented, hold, outcomeOf, type Stage, section, show } from "./section.js";

/** How long a candidate that nobody elects goes on, after the faults. */
const PATIENCE_MS = 60_000;

class LeadError extends Error {}

/** Stands for election until it has led and returned, or resigns. */
export async function stand(stage: Stage, step: Step): Promise<void> {
  const { judge, coverage, process, now } = stage;
  const asking = stage.askingFor("mutex", step.name);
  const handOverMs = stage.handOverMs(asking);
  if (handOverMs !== undefined) judge.handOver.takesTurns(process, asking.key);
  const asked = { asking, handOverMs, askedAt: undefined };
  const candidacy = new ElectionJudge(now);
  const blame = (wrong: string | undefined): void => judge.blame("an election keeps its word", wrong);
  const stands = (): (() => void) => judge.calls(process, [asking.key]);
  let ended = stands();
  let [failures, lock]: [number, SimLock | undefined] = [step.throws ? step.times : 0, undefined];

  const lead = async (led: SimLock): Promise<void> => {
    ended();
    blame(candidacy.leads());
    lock = led;
    const holding = holdOrBlame(stage, led, asked);
    if (election.lock !== led) blame(`${led.uuid} leads, and is not its lock`);
    await section(stage, step, holding);
    if (election.isLeader !== led.held) blame(`${led.uuid} is held: ${led.held}, and it leads: ${election.isLeader}`);
    judge.gaveBack(holding);
    ended = stands();
    failures -= 1;
    lock = undefined;
    candidacy.stops(failures < 0 ? led.signal : undefined);
    coverage.count(failures < 0 ? "terms that returned" : "terms that failed");
    if (failures >= 0) throw new LeadError("the leader failed");
  };

  const giveUp = new AbortController();
  const options = step.guarded ? { signal: giveUp.signal } : {};
  let election: SimElection;
  try {
    election = stage.lockable(asking).elect?.(lead, options) ?? missing();
  } catch (error) {
    ended();
    checkEnd(stage, error);
    return;
  }
  const resign = (): void => {
    candidacy.toldToEnd();
    coverage.count(candidacy.isLeading ? "elections resigned by their leader" : "elections resigned by a candidate");
    if (step.guarded) giveUp.abort(new Error("the candidate gave up"));
    else void election.resign().catch((error: unknown) => blame(`resign() threw ${show(error)}`));
    if (lock !== undefined && !lock.signal.aborted) blame(`${lock.uuid} leads on, and has not heard of its end`);
  };
  const patienceMs = Math.max(0, stage.schedule.calmAtMs - now()) + PATIENCE_MS;
  const cancel = process.after(step.abortAfterMs ?? patienceMs, resign);
  const { error } = await outcomeOf(election.done);
  cancel();
  ended();
  if (election.lock !== undefined || election.isLeader) blame("it is over, and has a lock");
  if (error !== undefined) {
    checkEnd(stage, error);
    return;
  }
  blame(candidacy.isDone());
  coverage.count(candidacy.terms > 1 ? "elections over after several terms" : "elections over");
}

/** What `lead` throws is no end of an election, so a violation is told to the judge. */
function holdOrBlame(stage: Stage, led: SimLock, asked: Asked): Holding {
  try {
    return hold(stage, led, asked);
  } catch (error) {
    if (error instanceof Violation) stage.judge.blame(error.invariant, error.message);
    throw error;
  }
}

/** A close alone makes an election fail. */
function checkEnd(stage: Stage, error: unknown): void {
  if (!endsAsDocumented(stage, "elections", { error, wasCalm: true }))
    throw new Violation("a call ends as documented", `an election ended with ${show(error)}`);
}

function missing(): never {
  throw new Violation("a call ends as documented", "what is no mutex cannot elect");
}
