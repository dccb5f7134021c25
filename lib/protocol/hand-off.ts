/**
 * What a hand-off leaves on the row, for whoever resumes it and for people. It counts only as long as it names the hand-off
 * that it belongs to: an older process keeps it on updates, and a resumed row keeps it under another uuid.
 */
export interface HandOff {
  /** The uuid that the hand-off wrote. */
  readonly uuid: string;
  /** What the section was for, and not what the lease was taken for: a section before may have passed it on. */
  readonly tick?: number;
  /** Until when the lock stays taken at least, on the table's clock; missing for no longer than its section runs. */
  readonly heldUntil?: number;
  /** For how long that was at first, in ms. */
  readonly heldForMs?: number;
}

/** The last moment that a `Date` can show, in epoch ms. */
const LAST_DATE = 8.64e15;

/** What an attribute says of a hand-off. No condition looks into it, so one that does not parse is no fault of its row. */
export function handOffIn(value: unknown): HandOff | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  const { uuid, tick = 0, heldUntil = 0, heldForMs = 0 } = value as Record<string, unknown>;
  const areNumbers = [tick, heldUntil, heldForMs].every(
    (number) => Number.isSafeInteger(number) && Math.abs(number as number) <= LAST_DATE,
  );
  return typeof uuid === "string" && areNumbers ? (value as HandOff) : undefined;
}
