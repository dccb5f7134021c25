/**
 * Who was granted the last tick of a row, and when: a take without a tick replaces `owner` and `acquired`, and leaves this. It counts
 * only as long as it names the tick of the row and the number of its attempts: an older process keeps it on updates.
 */
export interface Ran {
  readonly tick: number;
  /** With `untilSuccess`: the number of that run. */
  readonly attempt?: number;
  readonly owner: string;
  /** Epoch ms on the table's clock, as its holder knew it. */
  readonly at: number;
}

/** The last moment that a `Date` can show, in epoch ms. */
const LAST_DATE = 8.64e15;

/** Reads the attribute `ran`. No condition looks into it, so one that does not parse counts as none, and its row stays valid. */
export function ranIn(value: unknown): Ran | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  const { tick, attempt = 0, owner, at } = value as Record<string, unknown>;
  const areWhole = [tick, attempt, at].every(Number.isSafeInteger);
  return areWhole && typeof owner === "string" && Math.abs(at as number) <= LAST_DATE ? (value as Ran) : undefined;
}
