import type { Clock } from "../time/clock.js";

/** How many requests of one kind a process has under way at once. */
const LANES = 48;

/** A request that is under way for longer keeps its lane no more: a hung one must not hold up the others. */
const SLOW_MS = 250;

interface Waiting {
  readonly urgency: number;
  readonly enter: () => void;
}

/**
 * Keeps a process with thousands of locks from sending all their renewals at once: so many at a time, the most urgent
 * first, where urgent is what has the lowest number.
 */
export class Lanes {
  readonly #clock: Clock;
  /** Sorted, the most urgent last. */
  readonly #waiting: Waiting[] = [];
  #free = LANES;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * Waits for a lane.
   * @returns what gives the lane back; to be called when the request is settled.
   * @throws the reason of `enough`.
   */
  async enter(urgency: number, enough: AbortSignal | undefined): Promise<() => void> {
    if (this.#free > 0) this.#free -= 1;
    else await this.#queue(urgency, enough);
    let inside = true;
    const leave = (): void => {
      if (!inside) return;
      inside = false;
      cancel();
      const next = this.#waiting.pop();
      if (next === undefined) this.#free += 1;
      else next.enter();
    };
    const cancel = this.#clock.alarm(SLOW_MS, leave);
    return leave;
  }

  async #queue(urgency: number, enough: AbortSignal | undefined): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      const giveUp = (): void => {
        this.#waiting.splice(this.#waiting.indexOf(waiting), 1);
        reject(enough?.reason);
      };
      const waiting: Waiting = {
        urgency,
        enter: () => {
          enough?.removeEventListener("abort", giveUp);
          resolve();
        },
      };
      if (enough?.aborted) {
        reject(enough.reason);
        return;
      }
      enough?.addEventListener("abort", giveUp, { once: true });
      this.#waiting.splice(this.#placeFor(urgency), 0, waiting);
    });
  }

  /** Before the first that is as urgent, so that the one that came first among equals is nearer the end. */
  #placeFor(urgency: number): number {
    let low = 0;
    let high = this.#waiting.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#waiting[middle]?.urgency ?? 0) > urgency) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
