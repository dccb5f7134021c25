import { setTimeout as sleep } from "node:timers/promises";
import { findLockLost, type Lock, LockConfigError } from "../../../lib/index.js";
import { now } from "../../support/monotonic.js";
import { idOf, type Line, type Log } from "./register.js";

/** Which line of which section. */
type LineId = Pick<Line, "section" | "step">;

/** What was written in a section's time by somebody whose own time was over: the section still held the lock after it. */
export type OnLateWrite = (line: Line) => void;

/**
 * Writes one line: 1. reads the last one, 2. asserts that the lock is held, 3. writes the next where there is none yet.
 *
 * In this order, on which the checker's proof rests. An outage is waited out, by starting again with 1: the section's
 * own line is then found if an earlier copy of the write got there.
 *
 * @throws LockLostError, at 2; and at 3, where a guard tells.
 */
export async function append(
  log: Log,
  lock: Pick<Lock, "assertHeld">,
  own: LineId,
  onLateWrite: OnLateWrite,
): Promise<Line> {
  const id = idOf(own);
  for (;;) {
    try {
      const last = await log.last();
      if (last !== undefined && idOf(last) === id) return last;
      const there = await log.put(nextLine(last, lock, own));
      if (idOf(there) === id) return there;
      lock.assertHeld();
      onLateWrite(there);
    } catch (error) {
      lock.assertHeld();
      if (findLockLost(error) !== undefined || isMistake(error)) throw error;
      await sleep(20);
    }
  }
}

/** The line after the last one, which has been read before. @throws LockLostError */
export function nextLine(last: Line | undefined, lock: Pick<Lock, "assertHeld">, { section, step }: LineId): Line {
  const checkedFrom = now();
  lock.assertHeld();
  const checkedTo = now();
  const after = last === undefined ? "" : idOf(last);
  return { place: (last?.place ?? 0) + 1, section, step, after, checkedFrom, checkedTo };
}

/** Whether the fault is in this program rather than in the network or the engine. */
function isMistake(error: unknown): boolean {
  if (error instanceof TypeError || error instanceof ReferenceError || error instanceof LockConfigError) return true;
  return error instanceof Error && error.name === "ValidationException";
}
