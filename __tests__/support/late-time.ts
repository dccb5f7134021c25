import { type Clock, sleepUntilRung, timers } from "../../lib/time/clock.js";
import { tableClockOn } from "../../lib/time/table-clock.js";

interface LateTimer {
  readonly dueAt: number;
  readonly ring: () => void;
  timer?: NodeJS.Timeout;
}

/**
 * A time that passes only while a test computes, on Node's own event loop: what has fallen due meanwhile rings at the next turn
 * of the loop, before the sockets are read.
 */
export class LateTime {
  readonly #epoch = Date.UTC(2030, 0, 1);
  readonly #timers = new Set<LateTimer>();
  #elapsed = 0;

  /** As the default clock is, for a table that tells no date. */
  readonly clock: Clock = tableClockOn({
    ...timers,
    time: { monotonic: () => this.#elapsed, wall: () => this.#epoch + this.#elapsed },
    alarm: (ms, ring) => this.#set(ms, ring),
    sleep: (ms, signal) => sleepUntilRung((wake) => this.#set(ms, wake), signal),
  });

  /** @param compute blocks the event loop for a few ms at the least, so that Node's timers are due. */
  passWhile(ms: number, compute: () => void): void {
    this.#elapsed += ms;
    const due = [...this.#timers].filter(({ dueAt }) => dueAt <= this.#elapsed);
    for (const timer of due.sort((one, other) => one.dueAt - other.dueAt))
      timer.timer ??= setTimeout(() => this.#ring(timer), 1);
    compute();
  }

  #set(ms: number, ring: () => void): () => void {
    const timer: LateTimer = { dueAt: this.#elapsed + Math.max(0, ms), ring };
    if (ms <= 0) timer.timer = setTimeout(() => this.#ring(timer), 1);
    this.#timers.add(timer);
    return () => {
      clearTimeout(timer.timer);
      this.#timers.delete(timer);
    };
  }

  #ring(timer: LateTimer): void {
    this.#timers.delete(timer);
    timer.ring();
  }
}
