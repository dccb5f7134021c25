import type { MutexOptions } from "../../../lib/index.js";
import { type Holding, PERMITS } from "./holding.js";

/** The length of all leases, in ms. */
export const TTL_MS = 1_500;

/** Locks that some of the hosts share, and how these use them. */
export interface LockGroup {
  /** The beginning of its hosts' names, and what its figures are printed with. */
  readonly tag: string;
  /** Of one lock, or of several that are taken as a set or one alone. Each has a log of its own. */
  readonly names: readonly string[];
  readonly kind: "mutex" | "semaphore" | "shared mutex";
  /** With `fencing`, lines are written by guarded transactions. */
  readonly mutex: MutexOptions;
  /** Hosts that share a lock have one kind of clock. Their own time of day is wrong with either. */
  readonly clock: "table" | "own";
  /** How many sections each host has at a time; every other host has one more. */
  readonly loops: number;
  /** Whether some sections hand their lock off, to whichever process resumes it. */
  readonly handsOff?: boolean;
}

/** All that a run has on its stage. */
export const LOCK_GROUPS: readonly LockGroup[] = [
  {
    tag: "table",
    names: ["by the table's clock"],
    kind: "mutex",
    mutex: { ttlMs: TTL_MS },
    clock: "table",
    loops: 1,
  },
  {
    tag: "own",
    names: ["by watching alone"],
    kind: "mutex",
    mutex: { ttlMs: TTL_MS, takeover: "unchanged" },
    clock: "own",
    loops: 1,
  },
  {
    tag: "guarded",
    names: ["fenced and guarded"],
    kind: "mutex",
    mutex: { ttlMs: TTL_MS, fencing: true },
    clock: "table",
    loops: 1,
    handsOff: true,
  },
  {
    tag: "fair",
    names: ["fair"],
    kind: "mutex",
    mutex: { ttlMs: TTL_MS, fair: true },
    clock: "table",
    loops: 1,
  },
  {
    tag: "sets",
    names: ["one of a set", "other of a set"],
    kind: "mutex",
    mutex: { ttlMs: TTL_MS },
    clock: "table",
    loops: 1,
  },
  {
    tag: "semaphore",
    names: ["semaphore"],
    kind: "semaphore",
    mutex: { ttlMs: TTL_MS },
    clock: "table",
    loops: 2,
    handsOff: true,
  },
  {
    tag: "shared",
    names: ["shared mutex"],
    kind: "shared mutex",
    mutex: { ttlMs: TTL_MS },
    clock: "table",
    loops: 3,
  },
];

/** A log that sections of a group write. */
export interface LogName {
  readonly name: string;
  /** Whether it is the guarded log of both sides of a shared mutex. */
  readonly isOfSides?: boolean;
}

/** Where a section that has this of a lock writes by guarded transactions, beside the log of all sections of the lock. */
export function guardedLogOf(name: string, holding: Holding): LogName {
  if (holding.startsWith("permit")) return { name: `${holding} of ${name}` };
  return { name: `sides of ${name}`, isOfSides: true };
}

/** The names of all logs of a group. */
export function logsOf({ names, kind }: LockGroup): string[] {
  return names.flatMap((name) => {
    if (kind === "mutex") return [name];
    if (kind === "shared mutex") return [name, guardedLogOf(name, "shared").name];
    // One more, for those who believe in it.
    const permits = Array.from({ length: PERMITS + 1 }, (_, permit) => guardedLogOf(name, `permit ${permit}`).name);
    return [name, ...permits];
  });
}
