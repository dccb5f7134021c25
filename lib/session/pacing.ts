import type { Clock } from "../time/clock.js";
import { FIRST_PAUSE_MS, LONGEST_PAUSE_MS } from "./retry.js";

/** How often a request of a call may follow another at once: what the second finds out is mostly news to the first. */
const AT_ONCE = 2;

/**
 * The pauses of a call that asks again although nothing has failed: the row looked free and was not, a place is gone, a
 * reply told no time. The first two times it goes on at once, and then after growing, jittered pauses. So no request is
 * repeated without a pause for ever, whatever the table answers.
 */
export class Pacing {
  readonly #parts: { readonly clock: Clock; readonly random: () => number };
  readonly #wait: { readonly enough: AbortSignal };
  #times = 0;

  constructor(parts: { readonly clock: Clock; readonly random: () => number }, wait: { readonly enough: AbortSignal }) {
    this.#parts = parts;
    this.#wait = wait;
  }

  /** Called before a call asks again, if nothing else has made it pause. @throws the reason of `enough`. */
  async again(): Promise<void> {
    this.#times += 1;
    if (this.#times <= AT_ONCE) return;
    const longestMs = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** (this.#times - AT_ONCE));
    await this.#parts.clock.sleep((0.5 + this.#parts.random()) * longestMs, this.#wait.enough);
  }

  /** Something else has made it pause. */
  paused(): void {
    this.#times = 0;
  }
}
