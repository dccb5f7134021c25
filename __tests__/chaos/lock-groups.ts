import type { MutexOptions } from "../../lib/index.js";

/** The length of all leases, in ms. */
export const TTL_MS = 1_500;

/** Locks that some of the hosts share, and how these use them. */
export interface LockGroup {
  readonly title: string;
  /** The beginning of its hosts' names. */
  readonly tag: string;
  /** Of one lock, or of several that are taken as a set or one alone. Each has a log of its own. */
  readonly names: readonly string[];
  /** With `fencing`, lines are written by guarded transactions. */
  readonly mutex: MutexOptions;
  /** Hosts that share a lock have one kind of clock. Their own time of day is wrong with either. */
  readonly clock: "table" | "own";
}

/** All that a run has on its stage. */
export const LOCK_GROUPS: readonly LockGroup[] = [
  {
    title: "by the table's clock",
    tag: "table",
    names: ["by the table's clock"],
    mutex: { ttlMs: TTL_MS },
    clock: "table",
  },
  {
    title: "by watching alone",
    tag: "own",
    names: ["by watching alone"],
    mutex: { ttlMs: TTL_MS, takeover: "unchanged" },
    clock: "own",
  },
  {
    title: "fenced and guarded",
    tag: "guarded",
    names: ["fenced and guarded"],
    mutex: { ttlMs: TTL_MS, fencing: true },
    clock: "table",
  },
  { title: "fair", tag: "fair", names: ["fair"], mutex: { ttlMs: TTL_MS, fair: true }, clock: "table" },
  {
    title: "sets",
    tag: "sets",
    names: ["one of a set", "other of a set"],
    mutex: { ttlMs: TTL_MS },
    clock: "table",
  },
];
