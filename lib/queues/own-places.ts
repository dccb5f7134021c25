import type { Place } from "./place.js";

/**
 * The places of this process in one queue, in the order of their tickets. Each is shared by all of its callers that asked
 * before the draw of its ticket left, and that no earlier place serves. If a place is lost, those who shared it share the
 * next one: they asked before those for whom it was drawn.
 */
export class OwnPlaces {
  readonly #standing: Place[] = [];

  /** The first that stands. Those that were lost are nobody's. */
  get first(): Place | undefined {
    while (this.#standing[0]?.lost !== undefined) this.#standing.shift()?.leave();
    return this.#standing[0];
  }

  /** Up to which number callers have a place. */
  get serve(): number {
    return this.#standing.findLast(({ lost }) => lost === undefined)?.last ?? 0;
  }

  /** The place on this row, if it is one of them. */
  on(uuid: string | undefined): Place | undefined {
    return this.#standing.find((place) => place.uuid === uuid && place.lost === undefined);
  }

  add(place: Place): void {
    this.#standing.push(place);
  }

  /** Gives up those that nobody shares any more, because the first who still waits has this number, or nobody waits. */
  leaveBefore(first: number = Number.POSITIVE_INFINITY): void {
    while (this.#standing[0] !== undefined && this.#standing[0].last < first) this.#standing.shift()?.leave();
  }
}
