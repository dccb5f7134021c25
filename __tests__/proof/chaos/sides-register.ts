import type { TransactWriteItem } from "@aws-sdk/client-dynamodb";
import type { GuardedRegister } from "./guarded-log.js";
import { holdingOf } from "./holding.js";
import { idOf, type Line, placeKey } from "./register.js";
import { IS_NEW, type Shelf } from "./shelf.js";

/**
 * The log of both sides of a shared mutex, as one of its sections writes it. Lines of the exclusive side are numbered, as in
 * any log. One of the shared side stands before the exclusive line that has its number, beside any others: it is put there
 * only as long as that one is not, so the shared side has no need to agree on an order.
 *
 * What a section has read when it began goes into its lines: the place of the last exclusive line, and into an exclusive line
 * how many of the shared side it follows.
 */
export class SidesRegister implements GuardedRegister {
  readonly #lines: Shelf<Line>;
  readonly #isExclusive: boolean;
  #first: number | undefined;
  #seen = 0;

  constructor(lines: Shelf<Line>, section: string) {
    this.#lines = lines;
    this.#isExclusive = holdingOf(section) === "exclusive";
  }

  /** The last exclusive line. */
  async last(): Promise<Line | undefined> {
    const newest = await this.#lines.newest();
    const isExclusive = newest !== undefined && holdingOf(newest.section) === "exclusive";
    const last = isExclusive || newest === undefined ? newest : await this.#lines.get(exclusiveKey(newest.place - 1));
    const place = last?.place ?? 0;
    this.#first ??= place;
    if (this.#isExclusive) {
      const keys = sharedKeys(place + 1);
      this.#seen = (await this.#lines.all(keys, `${keys}~`)).length;
    }
    return last;
  }

  itemsOf(line: Line, { isLate }: { readonly isLate: boolean }): readonly TransactWriteItem[] {
    const key = exclusiveKey(line.place);
    const first = this.#first;
    if (this.#isExclusive) return [{ Put: this.#lines.putOf(key, { ...line, first, seen: this.#seen }) }];
    const put = { Put: this.#lines.putOf(sharedKey(line), { ...line, first }) };
    return isLate ? [put] : [put, { ConditionCheck: { ...this.#lines.keyOf(key), ...IS_NEW } }];
  }

  async find(line: Line): Promise<Line | undefined> {
    return this.#isExclusive ? undefined : await this.#lines.get(sharedKey(line));
  }
}

const sharedKeys = (place: number): string => `${placeKey(place)}/1/`;
const sharedKey = (line: Line): string => `${sharedKeys(line.place)}${idOf(line)}`;
const exclusiveKey = (place: number): string => `${placeKey(place)}/2`;
