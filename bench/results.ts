import type { ContenderName } from "./contenders/index.js";
import type { Ground } from "./ground.js";

/** One line of the table. */
export interface Line {
  readonly title: string;
  /** Of the values: `ms`, `RRU`. Default: none. */
  readonly unit?: string | undefined;
  /** Default: less. */
  readonly better?: "more" | undefined;
  readonly values: Partial<Record<ContenderName, number>>;
  /** What dynamutex has to reach. */
  readonly goal?: number | undefined;
}

/** What a chart shows, where a workload varies something. */
export interface Series {
  readonly title: string;
  readonly points: readonly (readonly [x: number, y: number])[];
}

export interface Chart {
  /** The file's name in `docs/design/bench/`, without `.svg`. */
  readonly file: string;
  readonly title: string;
  readonly x: { readonly title: string; readonly log?: boolean };
  readonly y: { readonly title: string; readonly log?: boolean };
  readonly series: readonly Series[];
}

/** A table of its own, for what the contenders are not compared in. */
export interface Detail {
  readonly columns: readonly string[];
  readonly rows: readonly (readonly string[])[];
}

export interface Outcome {
  readonly lines?: readonly Line[];
  readonly charts?: readonly Chart[];
  readonly detail?: Detail;
  /** What somebody has to know to read the figures. */
  readonly notes?: readonly string[];
}

export interface Workload {
  readonly name: string;
  /** What happens in it, for the table's heading of its lines. */
  readonly title: string;
  run(bench: Bench): Promise<Outcome>;
}

/** What every workload is given. */
export interface Bench {
  readonly ground: Ground;
  readonly quick: boolean;
  readonly say: (progress: string) => void;
}

/** What requests cost, in read units: a write unit costs as much as five. */
export function moneyOf({ read, write }: { readonly read: number; readonly write: number }): number {
  return read + 5 * write;
}

/** Who is compared with whom where somebody has to keep a lock: the floor does not. */
export const KEEPERS = ["dynamutex", "deliveryhero", "lock-client"] as const satisfies readonly ContenderName[];

/** And where somebody takes a lock that nobody else wants. Where others do, `fair` has a workload of its own. */
export const TAKERS = ["dynamutex", "fair", "deliveryhero", "lock-client"] as const satisfies readonly ContenderName[];
