import { once } from "node:events";
import { MessageChannel } from "node:worker_threads";
import { LockConfigError } from "../errors.js";
import { type Clock, hostTime, MAX_TIMER_MS, sleepUntilRung, timers } from "../time/clock.js";

/** The time of a table in memory: the same for all of its hosts. */
export interface TestClock {
  /** What the table's clock shows. */
  readonly now: Date;
  /**
   * Lets so much time pass at once. Whatever of the locks falls due meanwhile (renewals, deadlines, polls, timeouts)
   * happens in its order and at its moment, and the promises that it settles are settled before time goes on. Your own
   * timers do not notice. With 0, it only waits until what is settled has had its effect.
   *
   * It does not wait for the network, the disk or other real work of your sections.
   *
   * @param ms 0 or more.
   * @throws `LockConfigError` for anything else.
   *
   * @example
   * const waiting = other.mutex("report").lock({ waitMs: 5_000 });
   * await Promise.all([assert.rejects(waiting, { code: "LOCK_TIMEOUT" }), table.clock.advance(5_000)]);
   */
  advance(ms: number): Promise<void>;
}

/** Where the time comes from. `real`: it passes by itself, and `advance()` lets more pass. `manual`: by `advance()` alone. */
export type TestTime = "real" | "manual";

interface Alarm {
  readonly dueAt: number;
  readonly ring: () => void;
  /** What rings it in real time. */
  readonly timer: Clock["alarm"];
  /** Ends that. */
  stop: () => void;
}

const nothing = (): void => undefined;

/** As `timers.alarm`, for somebody who does nothing but wait for it: it keeps the process alive. */
const awaited: Clock["alarm"] = (ms, ring) => {
  const stopped = new AbortController();
  timers.sleep(ms, stopped.signal).then(ring, nothing);
  return () => stopped.abort();
};

/**
 * A clock for all hosts of a table in memory.
 *
 * Real time is the wall clock, by which it never goes back, and timers: one that rings shows that its time has come. So it
 * follows a test runner's fake timers, whichever of the two they replace.
 */
export class TableTime implements TestClock {
  /** What the hosts use. Its bounds are exact. */
  readonly clock: Clock;
  readonly #isReal: boolean;
  readonly #startedAt: number;
  readonly #alarms = new Set<Alarm>();
  #elapsed = 0;
  /** What the wall clock showed last. */
  #wall = hostTime.wall();

  constructor({ time, startAt }: { readonly time: TestTime; readonly startAt: Date | undefined }) {
    this.#isReal = time === "real";
    this.#startedAt = startAt?.getTime() ?? this.#wall;
    this.clock = {
      wall: () => ({ earliest: this.#now, latest: this.#now }),
      atLeast: () => this.#read(),
      atMost: () => this.#read(),
      alarm: (ms, ring) => this.#set(ms, ring, timers.alarm),
      sleep: (ms, signal) => sleepUntilRung((wake) => this.#set(ms, wake, awaited), signal),
      ...(this.#isReal && timers.stay && { stay: timers.stay }),
    };
  }

  get now(): Date {
    return new Date(this.#now);
  }

  async advance(ms: number): Promise<void> {
    if (!Number.isFinite(ms) || ms < 0) {
      throw new LockConfigError("ms", ms, "must be a number of milliseconds, 0 or more");
    }
    await settled();
    const target = this.#read() + ms;
    for (let next = this.#next(target); next !== undefined; next = this.#next(target)) {
      next.stop();
      this.#ring(next);
      await settled();
    }
    this.#elapsed = Math.max(this.#read(), target);
    if (this.#isReal) for (const alarm of this.#alarms) this.#start(alarm);
  }

  get #now(): number {
    return this.#startedAt + this.#read();
  }

  #read(): number {
    if (!this.#isReal) return this.#elapsed;
    const wall = hostTime.wall();
    this.#elapsed += Math.max(0, wall - this.#wall);
    this.#wall = wall;
    return this.#elapsed;
  }

  /** The earliest that is due by then; of several, the one that was set first. */
  #next(target: number): Alarm | undefined {
    const due = [...this.#alarms].filter(({ dueAt }) => dueAt <= target);
    return due.sort((one, other) => one.dueAt - other.dueAt)[0];
  }

  #ring(alarm: Alarm): void {
    if (!this.#alarms.delete(alarm)) return;
    this.#elapsed = Math.max(this.#read(), alarm.dueAt);
    alarm.ring();
  }

  #set(ms: number, ring: () => void, timer: Clock["alarm"]): () => void {
    // Whole milliseconds, as timers have them, and no more of them than these.
    const wholeMs = Math.min(Math.max(0, Math.ceil(ms)), MAX_TIMER_MS);
    const alarm: Alarm = { dueAt: this.#read() + wholeMs, ring, timer, stop: nothing };
    this.#alarms.add(alarm);
    if (this.#isReal) this.#start(alarm);
    return () => {
      alarm.stop();
      this.#alarms.delete(alarm);
    };
  }

  /** Has it ring in real time, when that time has come. */
  #start(alarm: Alarm): void {
    alarm.stop();
    alarm.stop = alarm.timer(alarm.dueAt - this.#read(), () => this.#ring(alarm));
  }
}

/**
 * Resolves in a later turn of the event loop, when all promise reactions have run. Fake timers replace `setImmediate` and
 * `process.nextTick`, and nobody replaces this.
 */
async function settled(): Promise<void> {
  const { port1, port2 } = new MessageChannel();
  port2.postMessage(undefined);
  await once(port1, "message");
  port1.close();
}
