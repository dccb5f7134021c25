/** The caller's own attributes on a lock's row: whatever DynamoDB can store in a map. */
export type LockData = Readonly<Record<string, unknown>>;

/**
 * A deep copy of data that DynamoDB can store. The caller may change its data later, and every attempt must send the
 * same. `structuredClone` does not fit: in a realm of its own, such as a Jest test, its sets and bytes are of another
 * realm.
 */
export function copyOf<Value>(value: Value): Value;
export function copyOf(value: unknown): unknown {
  // DynamoDB has one zero: adding 0 turns -0 into it.
  if (typeof value === "number") return value + 0;
  if (typeof value !== "object" || value === null) return value;
  if (value instanceof Uint8Array) return new Uint8Array(value);
  if (value instanceof Set) return new Set([...value].map(copyOf));
  // The map() of a subclass would make another of it.
  if (Array.isArray(value)) return Array.from(value, copyOf);
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, copyOf(member)]));
}

/** A lock's row, for people and dashboards. It may be stale by the time you read it. */
export interface LockInfo {
  readonly name: string;
  /** What holds it: a mutex, a permit of a semaphore, or one side of a shared mutex. */
  readonly kind: "mutex" | "semaphore" | "exclusive" | "shared";
  /**
   * The acquisition that holds the lock: shared by the sections of one process that follow each other on one lease. Undefined if
   * nobody holds the lock: it is free, was unlocked by force, or its `holdAtLeastMs` has not passed.
   */
  readonly uuid: string | undefined;
  /** Whether it is handed off: nobody holds it, and it stays taken until `expires` for whoever has the token. */
  readonly handedOff: boolean;
  /** Who holds it; without a `uuid`, and where it is handed off, who held it last. */
  readonly owner: string;
  /** When the lock was taken, on the table's clock as estimated by its holder. */
  readonly acquired: Date;
  /** When the lease ends unless it is renewed, on the table's clock. 1970-01-01T00:00Z on the row of a free lock. */
  readonly expires: Date;
  /** The length of the lease, in ms. Of a lock whose `holdAtLeastMs` has not passed, the rest of that time at its release. */
  readonly ttlMs: number;
  /** The holder's own attributes. */
  readonly data: LockData | undefined;
  /** The last tick granted, with `once` or `everyMs`. With the latter, the beginning of a period in epoch ms. */
  readonly tick: number | undefined;
  /** How many runs of that tick have begun, where it was asked for with `untilSuccess`; undefined for others. */
  readonly attempts: number | undefined;
  /** Whether one of them has succeeded. If not, the tick is due: whoever asks for it next runs it again. */
  readonly succeeded: boolean | undefined;
  /**
   * Who was granted that tick, and when its last run began, as the holder knew the table's clock. Missing without a tick, and if a
   * host with a version of this library that does not write it was granted the tick.
   */
  readonly lastRun?: { readonly owner: string; readonly began: Date };
  /**
   * What is wrong with the row, and how to remove it, where it is not one that this library writes: nobody takes the lock until
   * it is removed. It then has no `uuid`, its dates are 1970-01-01T00:00Z, and nothing else of it counts.
   */
  readonly problem?: string;
}

/** An acquisition of one permit of a semaphore, or of several at once. */
export interface PermitInfo extends LockInfo {
  /** The number of its permit, from 0; of several, the first. */
  readonly permit: number;
  /** The numbers of all permits that it holds, in order. */
  readonly permits: readonly number[];
}

/** Who holds the permits of a semaphore, and who waits. It may be stale by the time you read it. */
export interface SemaphoreState {
  /** How many permits there are, as this host knows it. */
  readonly permits: number;
  /**
   * Who holds permits, in the order of the numbers of their first ones: one for each acquisition, however many permits it has. Those
   * included that only a host with more permits knows of.
   */
  readonly holders: readonly PermitInfo[];
  /** The waiters of a fair semaphore, in order. Empty for others. */
  readonly waiters: readonly WaiterInfo[];
}

/** Who holds either side of a shared mutex, and who waits. It may be stale by the time you read it. */
export interface SharedMutexState {
  /** Who has the exclusive side, or waits for the last of the shared side to leave. */
  readonly exclusive: LockInfo | null;
  /** One for each process that shares it, mostly: sections of one process share a row. */
  readonly shared: readonly LockInfo[];
  /** The waiters of a fair one, in order, of both sides. Empty for others. */
  readonly waiters: readonly WaiterInfo[];
}

/** A lock's row and its queue. They may be stale by the time you read them. */
export interface LockState extends LockInfo {
  /** The waiters of a fair mutex, in order. Empty for other mutexes, whose waiters have no rows. */
  readonly waiters: readonly WaiterInfo[];
}

/** One entry in the queue of a fair lock. It may be stale by the time you read it. */
export interface WaiterInfo {
  /** The number of the entry: lower is sooner. */
  readonly ticket: bigint;
  readonly uuid: string;
  readonly owner: string;
  /** How many sections of its process shared the entry when it was made. Some may have run or given up since. */
  readonly sections: number;
  /** How many permits they need in all, where one of them needs several. */
  readonly permits?: number;
  /** Which side of a shared mutex it waits for; undefined for other locks. */
  readonly side: "exclusive" | "shared" | undefined;
  /** Since when it is there, on the table's clock as estimated by the waiter. */
  readonly since: Date;
  /** When the entry expires unless it is renewed, on the table's clock. */
  readonly expires: Date;
  /** As in {@link LockInfo}: the queue stands still until the row is removed. */
  readonly problem?: string;
}
