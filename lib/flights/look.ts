import { rowsIn } from "../operations/inspect.js";
import { type Address, RESULT_AND_LOCK } from "../protocol/addresses.js";
import { countingResult, type FlightResult, overBy } from "../protocol/flight-result.js";
import type { Row } from "../protocol/row.js";
import type { Session } from "../session/session.js";
import { boundsOf } from "../time/clock.js";

/** What a query has shown of a lock and of the value of its last flight. */
export interface Look {
  /** The lock's row. */
  readonly row: Row | undefined;
  /** The result that counts, with its value. */
  readonly found: (FlightResult & { readonly data: Readonly<Record<string, unknown>> }) | undefined;
  /** The flights that may have been over when the look was made. */
  readonly ids: ReadonlySet<string>;
  /** Whether the table has certainly shown its state at a moment after the look left. */
  readonly isConsistent: boolean;
  /** Its number, in the order in which looks leave, and that of the last one that had left when it was answered. */
  readonly number: number;
  readonly lastNumber: number;
}

/** @param told is called as a copy of the look leaves, and with the failure of each attempt. @throws the store's error, after retries for 10 s; the error of a closed table. */
export async function lookForResult(
  session: Session,
  at: Address,
  isConsistent: boolean,
  told: { readonly onSent: () => void; readonly onFailure: (cause: unknown) => void },
): Promise<Omit<Look, "number" | "lastNumber">> {
  const { rows } = await rowsIn(session, at.name, RESULT_AND_LOCK, { consistent: isConsistent, ...told });
  const row = rows.find(({ sort }) => sort === at.sort);
  const value = rows.find(({ sort }) => sort === RESULT_AND_LOCK.first);
  const result = countingResult(row, value);
  const found = result && { ...result, data: value?.data ?? {} };
  const ids = overBy(row, value);
  return { row, found, ids, isConsistent };
}

/** Which results a call takes. */
export class Wish {
  readonly freshMs: number;
  readonly #session: Session;
  /** The upper bound of the table's time when the call began; if the time was not known then, as soon as it was known. */
  #latest: number | undefined;
  /** The flights that were over by the first consistent look that was answered after the call began. */
  #over: ReadonlySet<string> | undefined;
  /** The last look that had left by then. It may show an earlier state: only looks after it tell what has ended since. */
  #overBy = 0;

  constructor(session: Session, freshMs: number) {
    this.#session = session;
    this.freshMs = freshMs;
    this.#latest = session.clock.wall()?.latest;
  }

  /** Whether a look shows a result that the call takes. The look was sent after the call began. */
  takes({ found, ids, isConsistent, number, lastNumber }: Look): boolean {
    if (this.freshMs > 0) return found !== undefined && this.#isFresh(found.made);
    // With `freshMs: 0`, no clock tells which flights were over before the call began: those of the first look may have been.
    if (!isConsistent) return false;
    if (this.#over === undefined) [this.#over, this.#overBy] = [ids, lastNumber];
    return number > this.#overBy && found !== undefined && !this.#over.has(found.id);
  }

  /** Whether the call takes the result of a flight of its own process that is still running. */
  joins(made: number): boolean {
    return this.freshMs === 0 || this.#isFresh(made);
  }

  #isFresh(made: number): boolean {
    const { latest } = boundsOf(this.#session.clock);
    this.#latest ??= latest;
    return made <= latest && made >= this.#latest - this.freshMs;
  }
}
