import type { Clock } from "../../lib/clock.js";
import { eventually, turn } from "./eventually.js";

interface Timer {
  readonly dueAt: number;
  readonly ring: () => void;
}

/** How one host's clock errs. */
export interface ManualClockOptions {
  /** By how much its wall clock is ahead of the true time. */
  readonly aheadMs?: number;
  /** By how much it says that it may err, either way. */
  readonly maxSkewMs?: number;
}

/**
 * A time that passes only when a test says so. Requests take real time meanwhile, which is no time at all here: what
 * a lease or a wait comes to is exact to the millisecond.
 */
export class ManualTime {
  /** How long each sleep was asked to be, in order. */
  readonly sleeps: number[] = [];
  readonly #epoch = Date.UTC(2030, 0, 1);
  readonly #timers = new Set<Timer>();
  #elapsed = 0;

  /** Milliseconds since the start. */
  get elapsed(): number {
    return this.#elapsed;
  }

  /** The true time. */
  get now(): number {
    return this.#epoch + this.#elapsed;
  }

  /** How many alarms and sleeps are set. */
  get timers(): number {
    return this.#timers.size;
  }

  /** The clock of one host. */
  clock({ aheadMs = 0, maxSkewMs = 0 }: ManualClockOptions = {}): Clock {
    const alarm = (ms: number, ring: () => void) => this.#alarm(ms, ring);
    return {
      wall: () => ({ earliest: this.now + aheadMs - maxSkewMs, latest: this.now + aheadMs + maxSkewMs }),
      guess: () => this.now + aheadMs,
      atLeast: () => this.#elapsed,
      atMost: () => this.#elapsed,
      alarm,
      sleep: (ms, signal) => {
        this.sleeps.push(ms);
        return sleepOn(alarm, ms, signal);
      },
    };
  }

  /** Lets time pass. What falls due happens at its moment, and whatever it sets in motion in this process first. */
  async advance(ms: number): Promise<void> {
    await turn();
    const target = this.#elapsed + ms;
    for (let next = this.#next(); next !== undefined && next.dueAt <= target; next = this.#next()) {
      this.#timers.delete(next);
      this.#elapsed = Math.max(this.#elapsed, next.dueAt);
      next.ring();
      await turn();
    }
    this.#elapsed = target;
    await turn();
  }

  /** Goes from timer to timer until this is settled: for those who wait for nothing but time. */
  async advanceUntilSettled(promise: Promise<unknown>): Promise<void> {
    let settled = false;
    const settle = () => {
      settled = true;
    };
    promise.then(settle, settle);
    while (!settled) {
      await eventually(() => settled || this.#timers.size > 0);
      const next = this.#next();
      if (!settled && next !== undefined) await this.advance(Math.max(0, next.dueAt - this.#elapsed));
    }
  }

  /** Resolves when the next sleep from now on begins, with how long it is to be. */
  async nextSleep(): Promise<number> {
    const count = this.sleeps.length;
    await eventually(() => this.sleeps.length > count);
    return this.sleeps[count] as number;
  }

  #alarm(ms: number, ring: () => void): () => void {
    const timer = { dueAt: this.#elapsed + Math.max(0, ms), ring };
    this.#timers.add(timer);
    return () => this.#timers.delete(timer);
  }

  /** The earliest; of several, the one that was set first. */
  #next(): Timer | undefined {
    let next: Timer | undefined;
    for (const timer of this.#timers) if (next === undefined || timer.dueAt < next.dueAt) next = timer;
    return next;
  }
}

function sleepOn(alarm: Clock["alarm"], ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) {
      reject(signal.reason);
      return;
    }
    const stop = (): void => {
      cancel();
      reject(signal?.reason);
    };
    const cancel = alarm(ms, () => {
      signal?.removeEventListener("abort", stop);
      resolve();
    });
    signal?.addEventListener("abort", stop, { once: true });
  });
}
