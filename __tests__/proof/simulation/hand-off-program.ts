import { LockConfigError, LockLostError, LockStoreError } from "../../../lib/errors.js";
import type { Forgery } from "./forged-tokens.js";
import { check, type Holding, Violation } from "./invariants.js";
import type { Step } from "./schedule.js";
import {
  checkLoss,
  endsAsDocumented,
  endsWithin,
  type ForgedToken,
  type HandedOn,
  hold,
  outcomeOf,
  patiently,
  release,
  type Stage,
  section,
  show,
} from "./section.js";

/** Hands a lock off at the end of its section, and sends the token to whom the step says. */
export async function handOff(stage: Stage, step: Step, holding: Holding): Promise<void> {
  const { judge, coverage } = stage;
  const { lock, uuid, asking, told } = holding;
  if (lock.handOff === undefined) throw new Violation("a call ends as documented", `${uuid} cannot be handed off`);
  judge.gaveBack(holding);
  const handed = judge.handsOff(holding, step);
  const hasEnded = endsWithin(stage, holding);
  let token: string;
  try {
    token = await lock.handOff({ validForMs: step.withinMs }).finally(hasEnded);
    await lock.unlock();
  } catch (error) {
    judge.handOffs.failed(handed);
    // As `await using` does: a lock that was lost before is not ended by the call.
    await lock.unlock().catch(() => undefined);
    if (error instanceof LockLostError) {
      checkLoss(stage, holding, error);
      coverage.count("hand-offs that told of a loss");
    } else if (error instanceof LockStoreError && (!holding.calm || !holding.autoRenew)) {
      // Too little may be left of a lease that is not renewed by itself.
      coverage.count("hand-offs that the store failed");
    } else {
      throw new Violation("a call ends as documented", `handOff threw ${show(error)}`);
    }
    return;
  }
  if (told) throw new Violation("a release tells the truth", `${uuid} was lost and its hand-off succeeded`);
  holding.isOver = true;
  coverage.count("locks handed off");
  judge.handOffs.succeeded(handed);
  stage.handOn({ token, handed, step, asking, fencing: stage.fencing });
}

/** Goes on with a lock of which the token has arrived. */
export async function goOn(stage: Stage, { token, handed, step, asking, fencing }: HandedOn): Promise<void> {
  const { judge, coverage } = stage;
  const wasCalm = stage.calm();
  await patiently(stage, step, async (signal) => {
    try {
      const lock = await stage.lockable(asking, fencing).resume?.(token, { signal });
      if (lock === undefined) throw new Violation("a call ends as documented", `${asking.key} cannot be resumed`);
      coverage.count("locks resumed");
      if (fencing && asking.kind === "mutex" && lock.fencingToken === undefined)
        throw new Violation("tokens grow from lock to lock", `${lock.uuid} is resumed without a token`);
      const holding = hold(stage, lock, { asking, handOverMs: undefined, askedAt: undefined }, handed);
      await section(stage, step, holding);
      await release(stage, { ...step, holdAtLeastMs: 0 }, holding);
      // One that was lost is not taken any more, whatever its hold.
      if (holding.isOver && !stage.gaveUp(holding.uuid)) judge.holdsUntil(holding, handed.heldUntil);
    } catch (error) {
      if (error instanceof LockLostError) {
        check("a hand-off lasts", judge.handOffs.wrongWith(handed));
        coverage.count(`tokens of no use: ${error.reason}`);
      } else if (!endsAsDocumented(stage, "resumptions", { error, signal, wasCalm })) {
        throw new Violation("a call ends as documented", `resume threw ${show(error)}`);
      }
    }
  });
}

/** Somebody tries to go on with a lock who has no token for it. */
export async function attack(stage: Stage, how: Forgery, { token, asking, fencing }: ForgedToken): Promise<void> {
  const { coverage } = stage;
  const wasCalm = stage.calm();
  const { value: lock, error } = await outcomeOf(stage.lockable(asking, fencing).resume?.(token, {}));
  if (lock !== undefined) throw new Violation("a forged token lets nobody in", `${how}: ${token}`);
  if (error instanceof LockLostError || (error instanceof LockConfigError && error.option === "token")) {
    coverage.count(`attacks: ${how}`);
  } else if (!endsAsDocumented(stage, "attacks", { error, wasCalm })) {
    throw new Violation("a call ends as documented", `resume threw ${show(error)}`);
  }
}
