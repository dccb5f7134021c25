import type { Place } from "./place.js";

/**
 * The places of this process in one queue, in the order of their tickets. A place is shared by all callers of this process that
 * asked before the draw of its ticket left and have no earlier place. If a place is lost, its callers share the next one: they
 * asked before the callers for whom that one was drawn.
 */
export class OwnPlaces {
  readonly #standing: Place[] = [];

  /** The first place that is not lost. Lost places before it are given up. */
  get first(): Place | undefined {
    while (this.#standing[0]?.lost !== undefined) this.#standing.shift()?.giveUp();
    return this.#standing[0];
  }

  /** Up to which number callers have a place. */
  get serve(): number {
    return this.#standing.findLast(({ lost }) => lost === undefined)?.last ?? 0;
  }

  /** The place of this process whose row has this uuid, if there is one. */
  on(uuid: string | undefined): Place | undefined {
    return this.#standing.find((place) => place.uuid === uuid && place.lost === undefined);
  }

  add(place: Place): void {
    this.#standing.push(place);
  }

  /**
   * Gives up the places that no caller needs any more.
   * @param first the number of the first caller that still waits; without it, nobody waits.
   */
  leaveBefore(first: number = Number.POSITIVE_INFINITY): void {
    while (this.#standing[0] !== undefined && this.#standing[0].last < first) this.#standing.shift()?.giveUp();
  }
}
