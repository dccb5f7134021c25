import { TICK_MS } from "./time.js";

/** How a claimant's process is set up. Nothing of it changes during a run. */
export interface Host {
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
  /** Renewals of each claimant, in all of its acquisitions. */
  readonly renewals: readonly number[];
  /** Of each claimant. */
  readonly guards: number;
  readonly reissues: number;
  /** Of all claimants together. */
  readonly crashes: number;
  /** Ticks during which a host is suspended, and by which its wall clock is set forward. */
  readonly suspends: number;
  readonly jumps: number;
  /** Arrivals of a copy for which nobody waits any more. */
  readonly lateCopies: number;
  readonly fenced: boolean;
}

/** The most by which a stopwatch may differ from the table's clock: 500 ppm. */
const SLOW = 1 - 500e-6;
const FAST = 1 + 500e-6;

const host = (ticks: number, rate: number, takeover: Host["takeover"] = "expired"): Host => {
  return { ttlMs: ticks * TICK_MS, rate, takeover };
};

/** Stopwatches at the ends of what is permitted, either way. */
const DRIFTING = [
  [host(2, SLOW), host(2, FAST)],
  [host(2, FAST), host(2, SLOW)],
] as const;

const NONE = {
  widths: [0],
  takes: [1, 1],
  renewals: [0, 0],
  guards: 0,
  reissues: 0,
  crashes: 0,
  suspends: 0,
  jumps: 0,
  lateCopies: 0,
  fenced: false,
} as const;

/** What is explored, by name. Together they cover every step; each goes deep where its own steps meet. */
export type Stage = "leases" | "restarts" | "clocks" | "guards" | "fenced guards";

/** A few seconds, in `npm test`. */
export const SMALL: Readonly<Record<Stage, Limits>> = {
  leases: { ...NONE, ticks: 3, hosts: [DRIFTING[0]] },
  restarts: { ...NONE, ticks: 0, hosts: [DRIFTING[0]], takes: [2, 1], crashes: 1, lateCopies: 1 },
  clocks: {
    ...NONE,
    ticks: 2,
    hosts: [[host(3, SLOW), host(2, FAST, "unchanged")]],
    suspends: 1,
  },
  guards: {
    ...NONE,
    ticks: 0,
    hosts: [DRIFTING[0]],
    renewals: [1, 0],
    guards: 1,
    reissues: 1,
    lateCopies: 2,
  },
  "fenced guards": {
    ...NONE,
    ticks: 0,
    hosts: [DRIFTING[0]],
    renewals: [1, 0],
    guards: 1,
    lateCopies: 3,
    fenced: true,
  },
};

/** Some minutes, in `npm run model`. */
export const LARGE: Readonly<Record<Stage, Limits>> = {
  leases: { ...SMALL.leases, renewals: [1, 1], lateCopies: 1 },
  restarts: { ...SMALL.restarts, ticks: 1 },
  clocks: { ...SMALL.clocks, jumps: 1 },
  guards: { ...SMALL.guards, ticks: 1 },
  "fenced guards": { ...SMALL["fenced guards"], renewals: [1, 1], reissues: 1 },
};
