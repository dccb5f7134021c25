import type { Clock } from "../time/clock.js";

/** Whether the table answers this process at all, whatever it is asked. */
export class Contact {
  readonly #clock: Clock;
  /** When the first request left that came after the last answer, on `atMost`. */
  #silentSince: number | undefined;
  #answeredAt = Number.NEGATIVE_INFINITY;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  asked(): void {
    this.#silentSince ??= this.#clock.atMost();
  }

  answered(): void {
    this.#silentSince = undefined;
    this.#answeredAt = this.#clock.atMost();
  }

  hasAnsweredSince(moment: number): boolean {
    return this.#answeredAt >= moment;
  }

  /** Since when the table is asked and says nothing; now, if nothing is asked of it. On `atMost`. */
  get silentSince(): number {
    return this.#silentSince ?? this.#clock.atMost();
  }
}
