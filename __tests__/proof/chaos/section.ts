import { setTimeout as sleep } from "node:timers/promises";
import { LockLostError } from "../../../lib/index.js";
import { now } from "../../support/monotonic.js";
import type { Random } from "../../support/seeded-random.js";
import { append } from "./append.js";
import type { SectionLock } from "./defects.js";
import { mayMeet } from "./holding.js";
import type { Log } from "./register.js";
import type { WorkerMessage } from "./worker-messages.js";

/** What a section works with. */
export interface SectionParts {
  readonly section: string;
  readonly lock: SectionLock;
  /** One for each lock that it holds, by name. */
  readonly logs: ReadonlyMap<string, Log>;
  readonly ttlMs: number;
  readonly random: Random;
  readonly tell: (message: WorkerMessage) => void;
  readonly joined?: boolean;
  /** Called with the step after the last one, right before the unlock. */
  readonly beforeUnlock?: (step: number) => Promise<void>;
  /** Ends the section, if not by `unlock()`. */
  readonly handOff?: (() => Promise<void>) | undefined;
}

/**
 * Some lines in each of its logs, over less than a lease or over several.
 * @returns why the lock was lost, if it was.
 */
export async function runSection(parts: SectionParts): Promise<string | undefined> {
  const { section, lock, logs, ttlMs, random, tell, joined = false, beforeUnlock, handOff } = parts;
  const names = [...logs.keys()];
  let belief: { from: number; to: number } | undefined;
  const look = (): void => {
    const before = now();
    if (!lock.held) return;
    belief ??= { from: now(), to: before };
    belief.to = before;
  };
  look();
  tell({ kind: "entered", section, joined });
  let lost: string | undefined;
  try {
    const steps = 2 + Math.floor(3 * random());
    const pauseMs = random() < 0.2 ? (2 * ttlMs) / steps : 30;
    for (let step = 1; step <= steps; step++) {
      await writeStep(parts, step);
      const until = now() + pauseMs * 2 * random();
      do {
        await sleep(10);
        look();
      } while (now() < until);
    }
    await beforeUnlock?.(steps + 1);
  } catch (error) {
    if (!(error instanceof LockLostError)) throw error;
    lost = error.reason;
  }
  look();
  await (lost === undefined && handOff ? handOff() : lock.unlock()).catch((error: unknown) => {
    if (!(error instanceof LockLostError)) throw error;
    lost ??= error.reason;
  });
  if (belief !== undefined) tell({ kind: "believed", logs: names, section, ...belief });
  tell({ kind: "left", section, names, lost });
  return lost;
}

/** A line in each log, one after the other. @throws LockLostError */
async function writeStep({ section, lock, logs, tell }: SectionParts, step: number): Promise<void> {
  for (const [name, log] of logs) {
    const { place } = await append(log, lock, { section, step }, ({ section: by }) => {
      if (!mayMeet(section, by)) tell({ kind: "late write", section, by });
    });
    tell({ kind: "acknowledged", logs: [name], place, section, step });
  }
}
