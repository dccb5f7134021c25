import type { LockInfo } from "../lock-info.js";
import { infoOf, type Row } from "../protocol/row.js";
import type { Session } from "../session/session.js";
import { Polling } from "./polling.js";
import type { RowsInTheWay } from "./row-take.js";

/** Since when others have kept this process from a row, on `atLeast`. */
export interface Blocked {
  readonly since: number;
  /** When this process last marked the row; -Infinity if it has not. */
  markedAt: number;
}

/** What those who share a view decide about it. */
interface Shared {
  /** The longest pause between two looks that all of them allow. */
  readonly longestPauseMs: () => number;
  /** Called before the call of a bid looks at what has come of it: a try has ended or begun to wait, or an attempt has failed. */
  readonly onProgress: () => void;
}

const NOT_SHARED: Shared = { longestPauseMs: () => Number.POSITIVE_INFINITY, onProgress: () => undefined };

/**
 * What those who want a lock see of it. It outlives a bid: if that one was watching, the next bid goes on with its watch and with its
 * pause. After a claim, the next bid sends a claim of its own.
 */
export class View {
  readonly shared: Shared;
  /** The rows that keep its bids out, as last seen. While there are any, a bid begins by watching them. */
  inTheWay: RowsInTheWay | undefined;
  readonly #session: Session;
  #blocked: Blocked | undefined;
  #polling: Polling | undefined;
  /** The row that was last seen in the way. */
  #row: Row | undefined;

  constructor(session: Session, shared: Shared = NOT_SHARED) {
    this.#session = session;
    this.shared = shared;
  }

  /** Since when holders elsewhere have kept it from its rows: from now on, if they have not before. */
  get blocked(): Blocked {
    this.#blocked ??= { since: this.#session.clock.atLeast(), markedAt: Number.NEGATIVE_INFINITY };
    return this.#blocked;
  }

  /** The pauses between its looks. */
  get polling(): Polling {
    this.#polling ??= new Polling(this.#session);
    return this.#polling;
  }

  /** Whether a row was seen in the way. */
  get hasRow(): boolean {
    return this.#row !== undefined;
  }

  /**
   * The holder on the row that was seen. It may be a claim that this process has given up since, which was in the way then: without its
   * name a call would end with a `LOCK_STORE`, although the table answers. Others ask for this, so that no two calls ask each other.
   */
  get holder(): LockInfo | undefined {
    return this.#row && infoOf(this.#row);
  }

  /** Notes the row that is in the way. A claim that this process has given up is in nobody's way, so it hides no holder. */
  saw(row: Row): void {
    if (!this.#session.sightings.isDisowned(row)) this.#row = row;
  }

  /** Whoever waits after this has pauses of its own. */
  pauseAnew(): void {
    this.#polling = undefined;
  }

  /** Nobody elsewhere has kept it out until now. */
  unblock(): void {
    this.#blocked = undefined;
  }

  /** A lease of this process has passed to the one that waited with it: the pauses of the next one grow anew. */
  passed(): void {
    this.#polling?.set();
  }

  /** A bid has taken a lease, and no other one watches. */
  taken(): void {
    this.inTheWay = undefined;
    this.#polling = undefined;
    this.#row = undefined;
    this.unblock();
  }
}
