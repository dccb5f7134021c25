import type { Rules } from "./rules.js";
import { TICK_MS } from "./time.js";

/** What a claimant wants: the mutex, a permit of the semaphore, or one of the two sides of the shared mutex. */
export type Side = "mutex" | "permit" | "reader" | "writer";

/** How a claimant's process is set up. Nothing of it changes during a run. */
export interface Host {
  readonly side: Side;
  readonly ttlMs: number;
  /** How fast its stopwatches run, the table's clock being 1. */
  readonly rate: number;
  readonly takeover: "expired" | "unchanged";
}

/** How much of the protocol one exploration covers: each number bounds one kind of event. */
export interface Limits {
  /** How many ticks pass, at most. */
  readonly ticks: number;
  /** The hosts, one for each claimant, in each of the ways that are explored. */
  readonly hosts: readonly (readonly Host[])[];
  /** By how many ticks the bounds on the table's time lie off it, either way: chosen anew at each reading of the clock. */
  readonly widths: readonly number[];
  /** Acquisitions of each claimant. */
  readonly takes: readonly number[];
  /** Renewals and guards of each claimant, in all of its acquisitions. */
  readonly renewals: readonly number[];
  readonly guards: readonly number[];
  /** Of each claimant. */
  readonly reissues: number;
  readonly handOffs: number;
  readonly resumes: number;
  /** Whether somebody tries to resume by the uuid that a row shows. */
  readonly forges: boolean;
  /** For how long a lease that is handed off waits for whoever resumes it. */
  readonly withinMs: number;
  /** Of all claimants together. */
  readonly crashes: number;
  /** Ticks during which a host is suspended, and by which its wall clock is set forward. */
  readonly suspends: number;
  readonly jumps: number;
  /** Arrivals of a copy for which nobody waits any more. */
  readonly lateCopies: number;
  readonly fenced: boolean;
  /** How many permits the semaphore has. */
  readonly permits: number;
  /** Whether each claimant looks at the row that keeps it waiting, while it has no lease. */
  readonly polls: readonly boolean[];
  /** Whether replies are lost, and requests are sent again and given up. Without that, each may take any time. */
  readonly losses: boolean;
  /** Whether anybody listens to the reply to a release: it is sent once otherwise, and arrives or not. */
  readonly hearsReleases: boolean;
  /** What is done otherwise here than `RULES` says. */
  readonly rules?: Partial<Rules>;
}

/** The most by which a stopwatch may differ from the table's clock: 500 ppm. */
export const SLOW = 1 - 500e-6;
export const FAST = 1 + 500e-6;

export const host = (ticks: number, rate: number, takeover: Host["takeover"] = "expired"): Host => {
  return { side: "mutex", ttlMs: ticks * TICK_MS, rate, takeover };
};

export const permit = (...how: Parameters<typeof host>): Host => ({ ...host(...how), side: "permit" });
export const reader = (...how: Parameters<typeof host>): Host => ({ ...host(...how), side: "reader" });
export const writer = (...how: Parameters<typeof host>): Host => ({ ...host(...how), side: "writer" });

export const NONE = {
  widths: [0],
  takes: [1, 1],
  renewals: [0, 0],
  guards: [],
  reissues: 0,
  handOffs: 0,
  resumes: 0,
  forges: false,
  withinMs: TICK_MS,
  crashes: 0,
  suspends: 0,
  jumps: 0,
  lateCopies: 0,
  fenced: false,
  permits: 0,
  polls: [true, true],
  losses: true,
  hearsReleases: true,
} as const;

/** Whether anybody sends a guard. */
export const hasGuards = ({ guards }: Limits): boolean => guards.some((count) => count > 0);

export const isShared = (side: Side): boolean => side === "reader" || side === "writer";
