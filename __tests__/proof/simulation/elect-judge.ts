/** The shortest pause before the second campaign; it doubles with each further one, and the library takes half of it at least. */
const FIRST_PAUSE_MS = 1_000 / 2;
const LONGEST_PAUSE_MS = 30_000 / 2;

/** A stopwatch that runs fast, and a timer that rings early. */
const FASTEST = 1 - 1e-3;
const EARLY_MS = 2;

/** Watches one candidacy: whether it leads, and when it does not. */
export class ElectionJudge {
  readonly #now: () => number;
  #terms = 0;
  #isLeading = false;
  #stoppedAt = Number.NEGATIVE_INFINITY;
  #isTold = false;
  /** The signal of the lock under which `lead` has returned: a release that finds it lost aborts it, and the candidacy goes on. */
  #returned: AbortSignal | undefined;

  constructor(now: () => number) {
    this.#now = now;
  }

  get isLeading(): boolean {
    return this.#isLeading;
  }

  /** How many times it has led. */
  get terms(): number {
    return this.#terms;
  }

  /** `lead` is called. @returns what is wrong with that. */
  leads(): string | undefined {
    const pauseMs = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** (this.#terms - 1)) * FASTEST - EARLY_MS;
    const pausedMs = this.#now() - this.#stoppedAt;
    const wasLeading = this.#isLeading;
    this.#isLeading = true;
    this.#terms += 1;
    if (this.#isTold) return "it leads, and was told to end";
    if (this.#returned?.aborted === false) return "it leads, and has returned as leader";
    if (wasLeading) return "it leads twice at once";
    return pausedMs < pauseMs ? `it leads again after ${pausedMs} ms, and its pause is ${pauseMs}` : undefined;
  }

  /** `lead` ends. @param returned the signal of its lock, where it has returned: then the candidacy is over, unless it was lost. */
  stops(returned: AbortSignal | undefined): void {
    this.#isLeading = false;
    this.#stoppedAt = this.#now();
    this.#returned = returned;
  }

  /** It resigns, or its signal says so. */
  toldToEnd(): void {
    this.#isTold = true;
  }

  /** Its `done` has resolved. @returns what is wrong with that. */
  isDone(): string | undefined {
    if (this.#isLeading) return "it is over, and `lead` runs";
    const hasReturned = this.#returned?.aborted === false;
    return this.#isTold || hasReturned ? undefined : "it is over, and has neither returned nor been told to end";
  }
}
