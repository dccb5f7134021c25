import { AsyncResource } from "node:async_hooks";
import { type Clock, sleepUntilRung } from "../../lib/time/clock.js";
import { tableClockOn } from "../../lib/time/table-clock.js";
import { eventually, startPatience, turn, watch } from "./eventually.js";

interface Timer {
  readonly dueAt: number;
  readonly ring: () => void;
  /** Whether somebody does nothing but wait for it. */
  readonly isSleep: boolean;
}

/** How one host's clock errs. */
export interface ManualClockOptions {
  /** By how much its wall clock is ahead of the true time. */
  readonly aheadMs?: number;
  /** By how much it says that it may err, either way. */
  readonly maxSkewMs?: number;
  /** Whether it advances by itself, as far as the library can tell: then a process is warned. */
  readonly runsByItself?: boolean;
}

/**
 * A time that passes only when a test says so. Requests take real time meanwhile, which is no time at all here: what
 * a lease or a wait comes to is exact to the millisecond.
 */
export class ManualTime {
  /** How long each sleep is to be, in order. */
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
  clock({ aheadMs = 0, maxSkewMs = 0, runsByItself = false }: ManualClockOptions = {}): Clock {
    return {
      wall: () => ({ earliest: this.now + aheadMs - maxSkewMs, latest: this.now + aheadMs + maxSkewMs }),
      atLeast: () => this.#elapsed,
      atMost: () => this.#elapsed,
      alarm: (ms, ring) => this.#set(ms, ring, false),
      sleep: (ms, signal) => this.#sleep(ms, signal),
      ...(runsByItself && { stay: () => () => undefined }),
    };
  }

  /** The table's clock as one host learns it, whose own is ahead by so much. The table's replies must show this time. */
  tableClock({ aheadMs = 0 }: Pick<ManualClockOptions, "aheadMs"> = {}): Clock {
    const { sleep, alarm } = this.clock();
    const time = { monotonic: () => this.#elapsed, wall: () => this.now + aheadMs };
    return tableClockOn({ time, sleep, alarm });
  }

  /** What a `Date` header shows of this time: whole seconds, truncated. */
  readonly dateHeader = (): string => new Date(this.now).toUTCString();

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

  /** Time passes and no timer rings, as in a process that is suspended. What has fallen due rings when time is next let pass. */
  skip(ms: number): void {
    this.#elapsed += ms;
  }

  /**
   * Lets time pass until the condition holds, in steps: where nothing takes real time. Steps at which nothing falls due are made
   * at once. @throws if it does not within so long.
   */
  async advanceUntil(condition: () => boolean, { stepMs = 1, withinMs = 30_000 } = {}): Promise<void> {
    await turn();
    for (const end = this.#elapsed + withinMs; !condition(); ) {
      if (this.#elapsed >= end) throw new Error(`within ${withinMs} ms it never came true that ${condition}`);
      const dueAt = Math.min(end, this.#next()?.dueAt ?? end);
      await this.advance(stepMs * Math.max(1, Math.ceil((dueAt - this.#elapsed) / stepMs)));
    }
  }

  /** Lets time pass, in steps, until the work is done or has failed: where nothing takes real time. */
  async settle(work: Promise<unknown>, options: { stepMs?: number; withinMs?: number } = {}): Promise<void> {
    const watched = watch(work);
    await this.advanceUntil(() => watched.settled, options);
  }

  /** What the work comes to, or the error that it fails with, as time passes: where nothing takes real time. */
  async outcome(work: Promise<unknown>): Promise<unknown> {
    const outcome = work.catch((error: unknown) => error);
    await this.settle(outcome);
    return await outcome;
  }

  /** Goes from timer to timer until the condition holds: where the network is silent, so that only time can change anything. */
  async passUntil(condition: () => boolean): Promise<void> {
    await this.#goOn(condition, () => this.#next());
  }

  /** Goes on whenever somebody sleeps, until the condition holds: requests get their answers before time passes. */
  async sleepUntil(condition: () => boolean): Promise<void> {
    await this.#goOn(condition, () => this.#next((timer) => timer.isSleep));
  }

  /** Resolves when the next sleep from now on begins, with how long it is to be. */
  async nextSleep(): Promise<number> {
    const count = this.sleeps.length;
    await eventually(() => this.sleeps.length > count);
    return this.sleeps[count] as number;
  }

  async #goOn(condition: () => boolean, next: () => Timer | undefined): Promise<void> {
    const patience = startPatience(condition);
    while (!condition()) {
      patience.check();
      await eventually(() => condition() || next() !== undefined);
      const timer = next();
      if (!condition() && timer !== undefined) await this.advance(Math.max(0, timer.dueAt - this.#elapsed));
    }
  }

  #set(ms: number, ring: () => void, isSleep: boolean): () => void {
    // Whole milliseconds, as timers have them; then no sum is off by a rounding error.
    // As a timer of Node's does, it rings in the asynchronous context in which it was set.
    const context = new AsyncResource("ManualTimer");
    const own = () => context.runInAsyncScope(ring);
    const timer = { dueAt: this.#elapsed + Math.max(0, Math.ceil(ms)), ring: own, isSleep };
    this.#timers.add(timer);
    return () => this.#timers.delete(timer);
  }

  /** The earliest of these; of several, the one that was set first. */
  #next(which: (timer: Timer) => boolean = () => true): Timer | undefined {
    let next: Timer | undefined;
    for (const timer of this.#timers) {
      if (which(timer) && (next === undefined || timer.dueAt < next.dueAt)) next = timer;
    }
    return next;
  }

  #sleep(ms: number, signal: AbortSignal | undefined): Promise<void> {
    this.sleeps.push(Math.max(0, Math.ceil(ms)));
    return sleepUntilRung((wake) => this.#set(ms, wake, true), signal);
  }
}
