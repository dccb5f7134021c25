import { type Clock, type HostTime, stopwatches, timers } from "../../../lib/time/clock.js";
import { tableClockOn } from "../../../lib/time/table-clock.js";
import type { Random } from "../../support/seeded-random.js";

const HOUR = 60 * 60 * 1_000;

/** A host's idea of the time of day: wrong from the start, and corrected now and then, to another wrong one. */
export class WrongTime implements HostTime {
  readonly #random: Random;
  readonly #onStep: () => void;
  #wrongByMs: number;

  constructor(random: Random, onStep: () => void) {
    this.#random = random;
    this.#onStep = onStep;
    this.#wrongByMs = this.#draw();
    this.#armStep();
  }

  monotonic(): number {
    return performance.now();
  }

  wall(): number {
    return Date.now() + this.#wrongByMs;
  }

  #armStep(): void {
    const timer = setTimeout(
      () => {
        this.#wrongByMs = this.#draw();
        this.#onStep();
        this.#armStep();
      },
      10_000 + 20_000 * this.#random(),
    );
    timer.unref();
  }

  /** Up to an hour fast or slow; half of the time up to two seconds. */
  #draw(): number {
    const most = this.#random() < 0.5 ? HOUR : 2_000;
    return most * (2 * this.#random() - 1);
  }
}

/** The kinds of clock that can do with such a host. */
export const clocksOn = {
  /** Learns the time from the table. */
  table: (time: HostTime): Clock => tableClockOn({ time, ...timers }),
  /** Believes the host. Only for hosts that take over by watching alone. */
  own: (time: HostTime): Clock => ({
    ...timers,
    ...stopwatches(time),
    wall: () => ({ earliest: time.wall(), latest: time.wall() }),
  }),
};
