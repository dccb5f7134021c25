import type { Parking } from "../store.js";
import type { Clock } from "../time/clock.js";

/**
 * For how long a lock stays taken at least, from its hand-out on, however soon its section ends.
 *
 * Its end is chosen once, late enough on any clock within the bounds of that moment; whoever takes the row compares
 * with its own `earliest`, which no true time exceeds. So a wrong clock makes a hold longer, and never shorter.
 */
export class Hold {
  readonly #clock: Clock;
  readonly #ms: number;
  readonly #startedAt: number;
  readonly #expires: number;

  constructor(clock: Clock, ms: number) {
    this.#clock = clock;
    this.#ms = ms;
    this.#startedAt = clock.atLeast();
    this.#expires = Math.ceil((clock.wall()?.latest ?? clock.guess()) + ms);
  }

  /** How the row is to be left now; undefined once the hold is over, by the stopwatch or by the table's clock. */
  rest(): Parking | undefined {
    const left = this.#ms - (this.#clock.atLeast() - this.#startedAt);
    const bounds = this.#clock.wall();
    if (left <= 0 || (bounds !== undefined && bounds.earliest > this.#expires)) return undefined;
    return { expires: this.#expires, ttlMs: Math.ceil(left) };
  }
}
