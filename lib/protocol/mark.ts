/** A waiter's mark on a row. */
export interface Mark {
  /** Until when others wait, in epoch ms on the table's clock. */
  readonly until: number;
  /** How long its writer needs from a release to its take; undefined in a mark that does not say so. */
  readonly needMs: number | undefined;
}

/** For how long a process stands back at most: a waiter that needs longer may not get in. */
export const MOST_NEED_MS = 5_000;

/** Needs are rounded up to this, so that waiters whose needs hardly differ do not mark a row in turn. */
export const NEED_STEP_MS = 250;

/** One step of the need in the fraction of the number: a power of 2, so that sums and differences are exact. */
const STEP_FRACTION = 1 / 32;

/** A need as a mark can say it. */
export const needInMark = (needMs: number): number =>
  Math.min(MOST_NEED_MS, Math.ceil(needMs / NEED_STEP_MS) * NEED_STEP_MS);

/**
 * A mark as the number on the row: whole milliseconds for the time, and the need in the fraction. As one number, no process can
 * carry on or replace one without the other, not even one that knows nothing of needs: it rounds the time up, and so removes the
 * need.
 */
export function numberOfMark({ until, needMs = 0 }: Mark): number {
  return Math.ceil(until) + (needInMark(needMs) / NEED_STEP_MS) * STEP_FRACTION;
}

/** Whether a number can be a mark: it has no other fraction than that of a need. */
export const isMark = (value: unknown): boolean => Number.isInteger(Number(value) / STEP_FRACTION);

/** What the number on a row says. */
export function markInNumber(wanted: number): Mark {
  const until = Math.floor(wanted);
  const needMs = Math.ceil((wanted - until) / STEP_FRACTION) * NEED_STEP_MS;
  return { until, needMs: needMs === 0 ? undefined : Math.min(MOST_NEED_MS, needMs) };
}
