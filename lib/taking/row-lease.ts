import { LockLostError, type LossReason } from "../errors.js";
import type { LockData, LockInfo } from "../lock-info.js";
import type { MutexSettings } from "../options/mutex.js";
import type { Address } from "../protocol/addresses.js";
import { leaseEnd } from "../protocol/lease-time.js";
import { infoOf, type Memory, type Row } from "../protocol/row.js";
import type { Check } from "../protocol/writes.js";
import { rowsOf, type Session } from "../session/session.js";

/** Which row to take, and how its lease is kept. */
export interface Target {
  readonly at: Address;
  readonly settings: MutexSettings;
  /** How many permits the semaphore has, where the row is one of them. */
  readonly permits?: number | undefined;
}

/** The rule by which a row was taken from a holder that did not release it. */
export type TakeoverRule = "expired" | "unchanged";

/** What is known of a row that a write of this process has taken, or may have taken. */
export interface Taken {
  readonly uuid: string;
  readonly expires: number;
  /** When the first copy of that write left, on `atMost`. */
  readonly sentAt: number;
  /** Since when the lock is taken, on the table's clock, for people. */
  readonly acquired: number;
  readonly data?: LockData | undefined;
  readonly tick?: number | undefined;
  /** With `untilSuccess`: the number of this run of the tick. */
  readonly attempt?: number | undefined;
  readonly remembers: Memory;
  /** The fencing token that goes with the uuid, on a fenced mutex. */
  readonly fence?: bigint | undefined;
  readonly takeover?: TakeoverRule | undefined;
  /** The `expires` by which the write has named a row without a holder, if it has. */
  readonly namedHold?: number | undefined;
}

/**
 * One lease on a row, a lock's or a place's, as its holder knows it: a value. Each write of row-writes.ts returns the next one.
 * `uuid`, `expires`, `data` and `fence` are those that are known to be on the row.
 */
export interface RowLease extends Target, Omit<Taken, "sentAt"> {
  /** The uuid of the take. */
  readonly takenAs: string;
  /** A uuid that a reissue or a transfer without an answer may have put on the row. */
  readonly maybeUuid: string | undefined;
  /** The first stamp under this uuid. */
  readonly firstStamp: number;
  /** The latest stamp that was ever sent: the next one lies after it. */
  readonly lastStamp: number;
  /** Until when the row is certainly ours, on `atMost`, as known when its stamp was confirmed; not reduced by the safety margin. */
  readonly validUntil: number;
  /**
   * The other rows of a lock of several permits, which are taken, renewed and given up together. `validUntil` is then the least of
   * them all; everything else of a lease is about its own row.
   */
  readonly others: readonly RowLease[] | undefined;
}

/** The lease that a take or a resume has got, or may have got. */
export function rowLease({ clock }: Session, { at, settings, permits }: Target, taken: Taken): RowLease {
  const { ttlMs } = settings;
  const { expires, sentAt } = taken;
  const validUntil = leaseEnd({ expires, ttlMs, sentAt, bounds: clock.wall(), atMost: clock.atMost() });
  // One flat literal: with spreads, a cycle in memory takes a tenth more CPU time.
  return {
    at,
    settings,
    permits,
    uuid: taken.uuid,
    takenAs: taken.uuid,
    maybeUuid: undefined,
    expires,
    firstStamp: expires,
    lastStamp: expires,
    validUntil,
    acquired: taken.acquired,
    data: taken.data,
    tick: taken.tick,
    attempt: taken.attempt,
    remembers: taken.remembers,
    fence: taken.fence,
    takeover: taken.takeover,
    namedHold: taken.namedHold,
    others: undefined,
  };
}

/** One lease of several rows, from a lease of each. */
export function asOne([first, ...others]: readonly [RowLease, ...RowLease[]]): RowLease {
  if (others.length === 0) return first;
  return { ...first, others, validUntil: Math.min(first.validUntil, ...others.map(({ validUntil }) => validUntil)) };
}

/** The uuids that its rows may have: of a reissue without an answer, and of a late copy of the take. */
export function uuidsOf(lease: RowLease): readonly string[] {
  return rowsOf(lease).flatMap(({ takenAs, uuid, maybeUuid }) =>
    maybeUuid === undefined ? [takenAs, uuid] : [takenAs, uuid, maybeUuid],
  );
}

/** Whether less than half is left of the time for which a new lease may be relied on. */
export function isHalfGone({ clock }: Session, { settings, validUntil }: RowLease): boolean {
  const { ttlMs, safetyMarginMs } = settings;
  return validUntil - safetyMarginMs - clock.atMost() < (ttlMs - safetyMarginMs) / 2;
}

/** Whether the row stays ours for a whole period of its rate from now on, even if this process dies at once. */
export function coversPeriod({ clock }: Session, { settings, validUntil }: RowLease): boolean {
  return settings.perMs === 0 || validUntil - clock.atMost() > settings.perMs;
}

/** The condition that the row fulfils as long as it is ours; undefined before the first renewal under its uuid. */
export function guardOf(lease: RowLease): Check | undefined {
  const { at, uuid, firstStamp: after, fence } = lease;
  const isRenewed = rowsOf(lease).every(({ expires, firstStamp }) => expires > firstStamp);
  return isRenewed ? { kind: "check", at, uuid, after, fence } : undefined;
}

/** What is known to be on the row, for people. */
export function infoOfLease({ owner }: Session, lease: RowLease): LockInfo {
  const { at, uuid, acquired, expires, data, tick, attempt, settings } = lease;
  const due = attempt === undefined ? undefined : tick;
  return infoOf({ ...at, uuid, owner, acquired, expires, ttlMs: settings.ttlMs, data, tick, due, attempt });
}

/** @param because what is said in place of what the reason says. */
export function lossOf(
  { at, uuid }: RowLease,
  reason: LossReason,
  { cause, because }: { readonly cause?: unknown; readonly because?: string | undefined } = {},
): LockLostError {
  return new LockLostError(at.name, uuid, reason, {
    ...(cause !== undefined && { cause }),
    ...(because !== undefined && { because }),
  });
}

/** Why the lease was lost, judged by the row that refused the write, or by its absence. */
export function reasonOf({ owner }: Session, { acquired }: RowLease, row: Row | undefined): LossReason {
  if (row === undefined) return "deleted";
  if (row.uuid !== undefined) return "stolen";
  // Without a uuid, the row still shows its last holder. If that is us, it was unlocked by force, for we have not released it. Its
  // `expires` proves nothing: a renewal whose reply was lost may have moved it.
  return row.acquired === acquired && row.owner === owner ? "forced" : "stolen";
}
