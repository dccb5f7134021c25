import { FAST, host, type Limits, NONE, permit, reader, SLOW, writer } from "./limits.js";
import { TICK_MS } from "./time.js";

/** What is explored, by name. Together they cover every step; each goes deep where its own steps meet. */
export type Stage =
  /** Takes by both rules, renewals and releases of two hosts whose stopwatches are 1 000 ppm apart. */
  | "leases"
  /** Several acquisitions of one process, crashes, and late copies of all that came before. */
  | "restarts"
  /** Suspends, wall clocks that are set forward (large bounds), leases of different lengths, a host that trusts no clock. */
  | "clocks"
  /** Guards, and leases that are passed on, with two late copies. */
  | "guards"
  /** The same with fencing tokens, and three late copies. */
  | "fenced guards"
  /** Hand-offs that are resumed twice, takes of both, with two late copies. */
  | "hand-offs"
  /** A lease that goes on for longer elsewhere, watched by the host that handed it off. */
  | "watched hand-offs"
  /** Three hosts that want two permits: a crash, and a late copy. */
  | "permits"
  /** Wide bounds; leases that end, and a renewal (large). */
  | "leases of permits"
  /** Takes, looks and removals; wide bounds (small), renewals of both and leases of different lengths (large). */
  | "readers and a writer"
  /** Two acquisitions of each, a crash, and late copies of all that came before. */
  | "restarts of both sides"
  /** As `clocks`. */
  | "clocks of both sides"
  /** Three hosts: lost replies (small); leases that end, and a late copy (large). */
  | "two readers"
  | "two writers"
  /** Guards of readers that are dead by the time they arrive. */
  | "guards of readers"
  /** The same for writers, who pass their lease on, and readers who remove the row of a dead writer: elsewhere they pass it by. */
  | "guards of both sides";

/** Stopwatches at the ends of what is permitted, either way. */
const DRIFTING = [host(2, SLOW), host(2, FAST)] as const;

/** The same for a reader and a writer, by whose stopwatch is slow. */
const SLOW_READER = [reader(2, SLOW), writer(2, FAST)] as const;
const SLOW_WRITER = [reader(2, FAST), writer(2, SLOW)] as const;

/** What the other stages have looked at is left out. */
const SHARED = { ...NONE, polls: [], hearsReleases: false } as const;

/** The part of a mutex in the tests: a few seconds. */
const SMALL_MUTEX = {
  leases: { ...NONE, ticks: 3, hosts: [DRIFTING] },
  restarts: { ...NONE, ticks: 0, hosts: [DRIFTING], takes: [2, 1], crashes: 1, lateCopies: 1 },
  clocks: { ...NONE, ticks: 2, hosts: [[host(3, SLOW), host(2, FAST, "unchanged")]], suspends: 1 },
  guards: { ...NONE, ticks: 0, hosts: [DRIFTING], renewals: [1, 0], guards: [1, 1], reissues: 1, lateCopies: 2 },
  "fenced guards": {
    ...NONE,
    ticks: 0,
    hosts: [DRIFTING],
    renewals: [1, 0],
    guards: [1, 1],
    lateCopies: 3,
    fenced: true,
  },
  "hand-offs": {
    ...NONE,
    ticks: 0,
    hosts: [DRIFTING],
    renewals: [1, 0],
    handOffs: 1,
    resumes: 1,
    lateCopies: 2,
    polls: [],
  },
  // It watches the lease that it has handed off, and that another goes on with for longer.
  "watched hand-offs": {
    ...NONE,
    ticks: 3,
    hosts: [[host(2, FAST), host(3, SLOW)]],
    takes: [2, 0],
    renewals: [1, 0],
    handOffs: 1,
    resumes: 1,
    polls: [true],
    losses: false,
    hearsReleases: false,
  },
} as const;

const PERMITS = {
  ...NONE,
  permits: 2,
  hosts: [[permit(2, SLOW), permit(2, FAST), permit(2, SLOW)]],
  polls: [],
  hearsReleases: false,
} as const;

/** The same of a semaphore. */
const SMALL_SEMAPHORE = {
  permits: { ...PERMITS, ticks: 0, takes: [1, 1, 1], crashes: 1, lateCopies: 1, losses: false },
  "leases of permits": { ...PERMITS, ticks: 1, takes: [1, 1, 1], widths: [0, 2], losses: false },
} as const;

/** The same of a shared mutex. */
const SMALL_SHARED = {
  "readers and a writer": { ...SHARED, ticks: 3, hosts: [SLOW_READER], widths: [0, 2], lateCopies: 1 },
  "restarts of both sides": { ...SHARED, ticks: 0, hosts: [SLOW_READER], takes: [2, 2], crashes: 1, lateCopies: 1 },
  "clocks of both sides": {
    ...SHARED,
    ticks: 2,
    hosts: [
      [reader(3, SLOW), writer(2, FAST, "unchanged")],
      [reader(2, FAST, "unchanged"), writer(3, SLOW)],
    ],
    suspends: 1,
    polls: [true],
    losses: false,
  },
  "two readers": { ...SHARED, ticks: 0, hosts: [[reader(2, FAST), ...SLOW_READER]], takes: [1, 1, 1] },
  "two writers": { ...SHARED, ticks: 0, hosts: [[...SLOW_WRITER, writer(2, FAST)]], takes: [1, 1, 1] },
  "guards of readers": {
    ...SHARED,
    ticks: 3,
    hosts: [SLOW_READER],
    renewals: [1, 0],
    guards: [1, 0],
    lateCopies: 1,
    losses: false,
  },
  "guards of both sides": {
    ...SHARED,
    ticks: 2,
    hosts: [SLOW_WRITER],
    renewals: [0, 1],
    guards: [1, 1],
    reissues: 1,
    lateCopies: 1,
    polls: [true],
    losses: false,
    rules: { deadWriter: "removes it" },
  },
} as const;

export const SMALL: Readonly<Record<Stage, Limits>> = { ...SMALL_MUTEX, ...SMALL_SEMAPHORE, ...SMALL_SHARED };

/** Some minutes, in `npm run proof -- model`. */
export const LARGE: Readonly<Record<Stage, Limits>> = {
  leases: { ...SMALL.leases, renewals: [1, 1], lateCopies: 1 },
  restarts: { ...SMALL.restarts, ticks: 1 },
  clocks: { ...SMALL.clocks, jumps: 1 },
  guards: { ...SMALL.guards, ticks: 1 },
  "fenced guards": { ...SMALL["fenced guards"], renewals: [1, 1], reissues: 1 },
  "hand-offs": { ...SMALL["hand-offs"], ticks: 1 },
  "watched hand-offs": { ...SMALL["watched hand-offs"], forges: true, lateCopies: 1, withinMs: 3 * TICK_MS },
  permits: { ...SMALL.permits, takes: [2, 2, 1] },
  "leases of permits": { ...SMALL["leases of permits"], ticks: 3, renewals: [1, 0, 0] },
  "readers and a writer": {
    ...SMALL["readers and a writer"],
    hosts: [SLOW_READER, SLOW_WRITER, [reader(2, SLOW), writer(3, FAST)]],
    widths: [0],
    renewals: [1, 1],
    polls: [true],
    losses: false,
  },
  "restarts of both sides": { ...SMALL["restarts of both sides"], ticks: 1 },
  "clocks of both sides": { ...SMALL["clocks of both sides"], ticks: 3, jumps: 1 },
  "two readers": { ...SMALL["two readers"], ticks: 3, lateCopies: 1, losses: false },
  "two writers": { ...SMALL["two writers"], ticks: 3, lateCopies: 1, losses: false },
  "guards of readers": { ...SMALL["guards of readers"], renewals: [1, 1], lateCopies: 2 },
  "guards of both sides": { ...SMALL["guards of both sides"], ticks: 3, lateCopies: 2 },
};
