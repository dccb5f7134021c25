import { askingFor } from "./locks.js";
import type { Process } from "./machine.js";
import { FAIR_NAME } from "./schedule.js";
import { entryOf, Watcher } from "./watcher.js";

/** The lock which only fair mutexes use, and the semaphore of that name. Readers may go in beside one another. */
const FAIR_KEYS: ReadonlySet<string> = new Set([FAIR_NAME, askingFor("permit", FAIR_NAME).key]);

/** A call that waits for one of these. */
export interface Waiting {
  readonly askedAt: number;
  /** Whether its caller has given it up, or its time is over. */
  readonly isOver: () => boolean;
}

/** Sees to it that the fair sections of one process begin in the order in which they asked. */
export class LineJudge extends Watcher {
  /** By process, those that wait, and for which lock. */
  readonly #waiting = new Map<Process, Map<Waiting, string>>();

  /** A call begins to wait. The answer is called when it has got its lock, or waits no more. */
  begins(process: Process, name: string, waiting: Waiting): () => void {
    if (!FAIR_KEYS.has(name)) return () => undefined;
    const all = entryOf(this.#waiting, process, () => new Map<Waiting, string>());
    all.set(waiting, name);
    return () => void all.delete(waiting);
  }

  /** A section begins. @returns whom it has overtaken in its own process. */
  took(process: Process, name: string, askedAt: number | undefined): string | undefined {
    const all = this.#waiting.get(process);
    if (!FAIR_KEYS.has(name) || askedAt === undefined || all === undefined) return undefined;
    const others = [...all].flatMap(([waiting, lock]) => (lock === name ? waiting : []));
    if (others.length === 0) return undefined;
    this.count("fair sections with others of their process behind");
    for (const other of others) {
      if (other.askedAt < askedAt && !other.isOver())
        return `of two that asked at ${other.askedAt} and ${askedAt} in one process, the later one is in first`;
    }
    return undefined;
  }
}
