import type { Bounds, Clock } from "../../../lib/time/clock.js";
import type { Host } from "./limits.js";

/** The unit of true time: between two ticks nothing happens. */
export const TICK_MS = 1_000;

/** What the table's clock shows at tick 0, in ticks: an epoch long ago, so that bounds never reach below it. */
const EPOCH = 10;

/** A host's stopwatches and what has happened to them. */
export interface Stopwatches {
  readonly host: Host;
  /** Ticks that its monotonic clock has missed, because the host was suspended. */
  readonly missed: number;
  /** Ticks by which its wall clock was set forward. */
  readonly jumped: number;
}

/** The table's clock at a tick, in ms. */
export const tableTime = (tick: number): number => (EPOCH + tick) * TICK_MS;

/** Bounds that hold the table's clock at a tick. */
export const boundsAt = (tick: number, width: number): Bounds => {
  return { earliest: tableTime(tick - width), latest: tableTime(tick + width) };
};

/** A table's time, as a tick and its fraction. */
export const tickOf = (ms: number): number => (ms - EPOCH * TICK_MS) / TICK_MS;

/** `Clock.atLeast` of a host: its monotonic clock, which stops while the host is suspended. */
export const atLeastAt = (tick: number, { host, missed }: Stopwatches): number => {
  return host.rate * TICK_MS * (tick - missed);
};

/** `Clock.atMost` of a host: it counts suspends, and takes a wall clock that is set forward for one. */
export const atMostAt = (tick: number, { host, jumped }: Stopwatches): number => {
  return host.rate * TICK_MS * (tick + jumped);
};

/** A clock that shows what it is told to. */
export class HandClock implements Clock {
  bounds: Bounds | undefined;
  atLeastMs = 0;

  wall(): Bounds | undefined {
    return this.bounds;
  }

  atLeast(): number {
    return this.atLeastMs;
  }

  atMost(): number {
    throw new Error("Nothing of the model reads it here");
  }

  sleep(): Promise<void> {
    throw new Error("Nothing of the model sleeps");
  }

  alarm(): () => void {
    throw new Error("Nothing of the model sets an alarm");
  }
}
