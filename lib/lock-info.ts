/** The caller's own attributes on a lock's row: whatever DynamoDB can store in a map. */
export type LockData = Readonly<Record<string, unknown>>;

/**
 * What a table could store, cut off from its owner: a later attempt must send the same as the first. Not by
 * `structuredClone`, which makes foreign objects of sets and bytes where a program runs in a realm of its own, as Jest's
 * tests do.
 */
export function copyOf<Value>(value: Value): Value {
  return copied(value) as Value;
}

function copied(value: unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (value instanceof Uint8Array) return new Uint8Array(value);
  if (value instanceof Set) return new Set([...value].map(copied));
  if (Array.isArray(value)) return value.map(copied);
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, copied(member)]));
}

/** What a row says about its lock, for people and dashboards. It may be out of date by the time it is read. */
export interface LockInfo {
  readonly name: string;
  /** The acquisition that holds the lock; absent while the row is parked, was unlocked by force, or is kept but free. */
  readonly uuid: string | undefined;
  readonly owner: string;
  /** When the lock was taken, on the table's clock as its holder knew it. */
  readonly acquired: Date;
  /** When the lease ends unless it is renewed, on the table's clock; the epoch's first moment on a row that is kept but free. */
  readonly expires: Date;
  /** The length of the lease, in ms. */
  readonly ttlMs: number;
  /** What its holder has put there. */
  readonly data: LockData | undefined;
  /** The last tick that was granted, for `once` and `everyMs`; for the latter, the beginning of a period in epoch ms. */
  readonly tick: number | undefined;
}

/** What the table says about a lock that somebody has. It may be out of date by the time it is read. */
export interface LockState extends LockInfo {
  /** Who waits for it, first come first. Of a mutex that is not `fair` nothing is known: the waiters poll, and stand nowhere. */
  readonly waiters: readonly WaiterInfo[];
}

/** What a row says about somebody who waits for a fair mutex. It may be out of date by the time it is read. */
export interface WaiterInfo {
  /** The place in the queue: lower is sooner. */
  readonly ticket: bigint;
  readonly uuid: string;
  readonly owner: string;
  /** Since when it waits, on the table's clock as the waiter knew it. */
  readonly since: Date;
  /** When its place is lost unless it is renewed, on the table's clock. */
  readonly expires: Date;
}
