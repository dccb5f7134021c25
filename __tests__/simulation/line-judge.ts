import type { Coverage } from "./coverage.js";
import type { Process } from "./machine.js";
import { FAIR_NAME } from "./schedule.js";

/** A call that waits for the lock which only fair mutexes use. */
export interface Waiting {
  readonly askedAt: number;
  /** Whether its caller has given it up, or its time is over. */
  readonly isOver: () => boolean;
}

/** Sees to it that the fair sections of one process begin in the order in which they asked. */
export class LineJudge {
  readonly #coverage: Coverage;
  readonly #waiting = new Map<Process, Set<Waiting>>();

  constructor(coverage: Coverage) {
    this.#coverage = coverage;
  }

  /** A call begins to wait. The answer is called when it has got its lock, or waits no more. */
  begins(process: Process, name: string, waiting: Waiting): () => void {
    if (name !== FAIR_NAME) return () => undefined;
    const all = this.#waiting.get(process) ?? new Set();
    this.#waiting.set(process, all);
    all.add(waiting);
    return () => void all.delete(waiting);
  }

  /** A section begins. @returns whom it has overtaken in its own process. */
  took(process: Process, name: string, askedAt: number | undefined): string | undefined {
    const all = this.#waiting.get(process);
    if (name !== FAIR_NAME || askedAt === undefined || all === undefined || all.size === 0) return undefined;
    this.#coverage.count("fair sections with others of their process behind");
    for (const other of all) {
      if (other.askedAt < askedAt && !other.isOver())
        return `of two that asked at ${other.askedAt} and ${askedAt} in one process, the later one is in first`;
    }
    return undefined;
  }
}
