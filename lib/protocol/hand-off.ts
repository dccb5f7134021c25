/**
 * What a hand-off leaves on the row, for the process that resumes it and for people. It counts only as long as it names the
 * uuid of the row: an older process keeps it on updates, and a resumed row keeps it under another uuid.
 */
export interface HandOff {
  /** The uuid that the hand-off wrote. */
  readonly uuid: string;
  /** The tick of the section. The lease may have been taken for another tick, and passed on to this section. */
  readonly tick?: number;
  /** Until when the lock stays taken at least, on the table's clock; missing for no longer than its section runs. */
  readonly heldUntil?: number;
  /** How long that hold was at first, in ms. */
  readonly heldForMs?: number;
}

/** The last moment that a `Date` can show, in epoch ms. */
const LAST_DATE = 8.64e15;

/**
 * Reads the attribute `handOff`. No condition looks into it, so one that does not parse counts as none, and its row stays valid.
 */
export function handOffIn(value: unknown): HandOff | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  const { uuid, tick = 0, heldUntil = 0, heldForMs = 0 } = value as Record<string, unknown>;
  const areNumbers = [tick, heldUntil, heldForMs].every(
    (number) => Number.isSafeInteger(number) && Math.abs(number as number) <= LAST_DATE,
  );
  return typeof uuid === "string" && areNumbers ? (value as HandOff) : undefined;
}
