import type { Session } from "../session/session.js";
import type { Place } from "./place.js";

/** A place that serves all who asked for it, and not yet entered: those of this process up to a number. */
export interface SharedPlace {
  readonly place: Place;
  /** The number of the last caller that shares it. */
  readonly last: number;
}

/**
 * The places of this process in one queue, in the order of their tickets. Each is shared by all of its callers that asked
 * before the draw of its ticket left, and that no earlier place serves. If a place is lost, those who shared it share the
 * next one: they asked before those for whom it was drawn.
 */
export class OwnPlaces {
  readonly #session: Session;
  #standing: SharedPlace[] = [];

  constructor(session: Session) {
    this.#session = session;
  }

  /** The first that stands. Those that were lost are nobody's. */
  get first(): SharedPlace | undefined {
    while (this.#standing[0]?.place.lost !== undefined) this.#giveUpFirst();
    return this.#standing[0];
  }

  /** Up to which number callers have a place. */
  get serve(): number {
    return this.#standing.findLast(({ place }) => place.lost === undefined)?.last ?? 0;
  }

  /** The place on this row, if it is one of them. */
  on(uuid: string | undefined): SharedPlace | undefined {
    return this.#standing.find(({ place }) => place.uuid === uuid && place.lost === undefined);
  }

  add(shared: SharedPlace): void {
    this.#standing.push(shared);
  }

  /** Gives up those that nobody shares any more, because the first who still waits has this number, or nobody waits. */
  leaveBefore(first: number = Number.POSITIVE_INFINITY): void {
    while (this.#standing[0] !== undefined && this.#standing[0].last < first) this.#giveUpFirst();
  }

  #giveUpFirst(): void {
    const shared = this.#standing.shift();
    if (shared !== undefined) this.#session.detach(shared.place.leave());
  }
}
