import { setTimeout as sleep } from "node:timers/promises";
import type { Lock } from "../../lib/index.js";
import { now } from "../support/monotonic.js";
import { idOf, type Line, type Register } from "./register.js";

/** What was written in a section's time by somebody whose own time was over: the section still held the lock after it. */
export type OnLateWrite = (line: Line) => void;

/**
 * Writes one line: 1. reads the last one, 2. asserts that the lock is held, 3. writes the next where there is none yet.
 *
 * In this order, on which the checker's proof rests. An outage is waited out, by starting again with 1: the section's
 * own line is then found if an earlier copy of the write got there.
 *
 * @throws LockLostError, at 2.
 */
export async function append(
  register: Register,
  lock: Pick<Lock, "assertHeld">,
  section: string,
  step: number,
  onLateWrite: OnLateWrite,
): Promise<Line> {
  const id = idOf({ section, step });
  for (;;) {
    try {
      const last = await register.last();
      if (last !== undefined && idOf(last) === id) return last;
      const checkedFrom = now();
      lock.assertHeld();
      const checkedTo = now();
      const after = last === undefined ? "" : idOf(last);
      const version = (last?.version ?? 0) + 1;
      const there = await register.put({ version, section, step, after, checkedFrom, checkedTo });
      if (idOf(there) === id) return there;
      lock.assertHeld();
      onLateWrite(there);
    } catch (error) {
      lock.assertHeld();
      if (isMistake(error)) throw error;
      await sleep(20);
    }
  }
}

/** Whether the fault is in this program rather than in the network or the engine. */
function isMistake(error: unknown): boolean {
  return error instanceof TypeError || error instanceof ReferenceError;
}
