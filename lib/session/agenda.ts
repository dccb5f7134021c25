import { type Clock, sleepUntilRung } from "../time/clock.js";

/** If a process has this many leases or more, their renewals leave together. */
const TOGETHER = 8;

/** How often an alarm checks whether the process was suspended meanwhile: timers do not count that time, but leases do. */
const CHECK_EVERY_MS = 1_000;

/** An alarm that rings later than this says that the process did not run: garbage collection and other callbacks take less. */
const LATE_MS = 100;

/** A moment counts as one of the grid if it is at most this much before it: alarms ring early, and stopwatches differ, by less. */
const NEARLY_MS = 5;

/**
 * The alarms for renewals and their retries. If the process has many leases, moments are rounded down to a grid, and everything
 * that is due at one moment begins in one synchronous turn. So the renewals of that turn can be sent in one request. All
 * moments are on `atMost`: what fell due during a suspend begins soon after it.
 */
export class Agenda {
  readonly #clock: Clock;
  readonly #leases: { readonly size: number };
  readonly #from: number;
  /** The callbacks that are due at a moment, and what cancels the alarm for that moment. */
  readonly #rounds = new Map<number, { readonly rings: Set<() => void>; readonly cancel: () => void }>();
  /** When alarms that have not rung are due, on `atMost`, in the order in which they were set. */
  readonly #due = new Set<{ readonly at: number }>();
  /** The last alarm that rang late: by how much, and when, on `atMost`. */
  #late = { ms: 0, rangAt: Number.NEGATIVE_INFINITY };

  /** @param from the least number of leases with which moments are rounded. */
  constructor(clock: Clock, leases: { readonly size: number }, from: number = TOGETHER) {
    this.#clock = clock;
    this.#leases = leases;
    this.#from = from;
  }

  /**
   * Calls `ring` once, after `ms` or at most half of it sooner. The returned function cancels it.
   *
   * @param gridMs the moments are multiples of this, or closer together where that would shorten `ms` by more than half.
   */
  alarm(ms: number, ring: () => void, gridMs: number = Number.POSITIVE_INFINITY): () => void {
    const now = this.#clock.atMost();
    if (this.#leases.size < this.#from) return this.#ringAt(now, now + ms, ring);
    const moment = roundedDown(now, ms, gridMs);
    const round = this.#rounds.get(moment) ?? this.#open(now, moment);
    // A function of its own, in case one is added twice.
    const own = (): void => ring();
    round.rings.add(own);
    return () => {
      if (!round.rings.delete(own) || round.rings.size > 0 || this.#rounds.get(moment) !== round) return;
      this.#rounds.delete(moment);
      round.cancel();
    };
  }

  /** Waits as long as {@link alarm} does. @throws the reason of `signal`, if it aborts first. */
  readonly sleep: Clock["sleep"] = async (ms, signal) => {
    // With few leases nothing is due together. Either way, the wait keeps the process alive, as every wait of a call does.
    if (this.#leases.size < this.#from) return await this.#clock.sleep(ms, signal);
    const mayExit = this.#clock.stay?.();
    await sleepUntilRung((wake) => this.alarm(ms, wake), signal).finally(mayExit);
  };

  /**
   * For how long, at the least, the process has not run since then, in one go: 0 if it always ran. Its event loop was busy, its
   * host suspended, or its wall clock set forward, which looks the same.
   *
   * @param since on `atMost`.
   */
  stalledMs(since: number): number {
    const [first] = this.#due;
    const presentMs = first === undefined ? 0 : this.#clock.atMost() - first.at;
    return Math.max(0, presentMs, this.#late.rangAt > since ? this.#late.ms : 0);
  }

  #open(now: number, moment: number): { readonly rings: Set<() => void>; readonly cancel: () => void } {
    const rings = new Set<() => void>();
    const cancel = this.#ringAt(now, moment, () => {
      this.#rounds.delete(moment);
      for (const ring of rings) ring();
    });
    const round = { rings, cancel };
    this.#rounds.set(moment, round);
    return round;
  }

  /**
   * Rings when `atMost` shows the moment, or nearly; after a suspend, at the next check.
   * @param now the present on `atMost`: each section sets alarms, and reads the clock once for each.
   */
  #ringAt(now: number, moment: number, ring: () => void): () => void {
    let cancel: () => void;
    const wait = (from: number): void => {
      const ms = Math.min(moment - from, CHECK_EVERY_MS);
      const due = { at: from + ms };
      this.#due.add(due);
      const stop = this.#clock.alarm(ms, () => check(due));
      cancel = () => {
        this.#due.delete(due);
        stop();
      };
    };
    const check = (due: { readonly at: number }): void => {
      const rangAt = this.#clock.atMost();
      this.#due.delete(due);
      if (rangAt - due.at > LATE_MS) this.#late = { ms: rangAt - due.at, rangAt };
      if (moment - rangAt < NEARLY_MS) ring();
      else wait(rangAt);
    };
    wait(now);
    return () => cancel();
  }
}

/** A grid whose step is a power of two contains all coarser ones: so pauses of about the same length end at the same moments. */
function roundedDown(now: number, ms: number, gridMs: number): number {
  const stepMs = Math.min(gridMs, 2 ** Math.floor(Math.log2(ms / 2)));
  if (stepMs < 1) return now + ms;
  // Without a grid, nothing has to stay on one, and a deadline must not come late.
  const nearlyMs = gridMs === Number.POSITIVE_INFINITY ? 0 : Math.min(NEARLY_MS, stepMs / 4);
  return Math.max(now, Math.floor((now + ms + nearlyMs) / stepMs) * stepMs);
}
