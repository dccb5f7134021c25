import { type Address, LOCK_SORT } from "../protocol/addresses.js";
import type { Row } from "../protocol/row.js";
import type { Clock } from "../time/clock.js";

/** For how long a mark counts, whatever it says: the clock of its writer may be wrong, and its writer gone. */
export const WANTED_FOR_MS = 60_000;

/** For how many of its longest polls a process leaves a row to others. */
const STAND_BACK_POLLS = 2;

/** By when each of those others has looked once: the longest poll, jittered. */
const ALL_LOOKED_POLLS = 1.25;

/** Beyond this many names the oldest are forgotten: their waiters mark once more. */
const MOST_NAMES = 10_000;

/** A process leaves a row to others: when it looks whether they came, and until when it asks for nothing. On `atLeast`. */
export interface OthersTurn {
  readonly lookAt: number;
  readonly until: number;
}

/** What is known of a name that others want, or wanted lately. Moments are on `atLeast`, but for the mark's own. */
interface Contended {
  /** What the mark says, on the table's clock. */
  wanted: number;
  /** Until when it is believed. */
  believedUntil: number;
  /** Since when this process has the row, while it knows of the mark; undefined where it has had its turn. */
  turnSince: number | undefined;
  othersTurn: OthersTurn | undefined;
}

/**
 * The turns of this process among those that want the same row. There is an entry for a name only after a mark.
 *
 * 1. A mark is remembered by its name for as long as it says, by whoever has written it, or has found it on a row: by a
 *    read, or in the answer to a take or a release, which show the row as it was. Each take carries it on, so that others
 *    see it too, and write none.
 * 2. A process that finds one while it has the row knows that somebody has been waiting for `handOverMs`: its turn is over.
 *    A process that takes the row while it knows of one has a turn of `handOverMs`.
 * 3. After its turn it stands back for two of its longest polls. It looks in between whether somebody came. If not, the mark
 *    is forgotten, so that one that nobody stands behind costs one pause; a waiter that was late marks again.
 */
export class Contention {
  readonly #clock: Clock;
  readonly #contended = new Map<string, Contended>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Learns the mark that a row carries, whoever holds it. */
  sees(row: Row | undefined): void {
    if (row?.wanted === undefined || row.sort !== LOCK_SORT) return;
    const bounds = this.#clock.wall();
    const wanted = bounds === undefined ? row.wanted : Math.min(row.wanted, Math.ceil(bounds.latest) + WANTED_FOR_MS);
    const runsMs = bounds === undefined ? WANTED_FOR_MS : wanted - bounds.earliest;
    if (runsMs <= 0) return;
    const believedUntil = this.#clock.atLeast() + Math.min(WANTED_FOR_MS, runsMs);
    const known = this.#of(row.name);
    if (known === undefined) {
      this.#add(row.name, { wanted, believedUntil, turnSince: undefined, othersTurn: undefined });
      return;
    }
    known.wanted = Math.max(known.wanted, wanted);
    known.believedUntil = Math.max(known.believedUntil, believedUntil);
  }

  /** A row is in the way: where somebody holds it, it is not this process's turn. */
  waitsFor(row: Row): void {
    this.sees(row);
    const known = row.uuid === undefined ? undefined : this.#of(row.name);
    if (known !== undefined) known.turnSince = undefined;
  }

  /** This process has taken the row: so a look at it, which comes `handOverMs` later, comes after the turn. */
  begins(name: string, takenAt: number): void {
    const known = this.#of(name);
    if (known !== undefined) known.turnSince ??= takenAt;
  }

  /** The mark that a take of this row carries on. */
  markOf({ name, sort }: Address): number | undefined {
    const known = sort === LOCK_SORT ? this.#of(name) : undefined;
    return known !== undefined && this.#isBelieved(known) ? known.wanted : undefined;
  }

  /** Whether this process, which has the row, is to let others in. */
  isTurnOver(name: string, handOverMs: number): boolean {
    const known = this.#of(name);
    if (known === undefined || !this.#isBelieved(known)) return false;
    return known.turnSince === undefined || this.#clock.atLeast() - known.turnSince >= handOverMs;
  }

  /** From here on this process leaves the row to others, who look at least every `longestPollMs`. */
  giveTurn(name: string, longestPollMs: number): void {
    const now = this.#clock.atLeast();
    const othersTurn = {
      lookAt: now + ALL_LOOKED_POLLS * longestPollMs,
      until: now + STAND_BACK_POLLS * longestPollMs,
    };
    const known = this.#of(name);
    if (known === undefined) this.#add(name, { wanted: 0, believedUntil: now, turnSince: undefined, othersTurn });
    else [known.turnSince, known.othersTurn] = [undefined, othersTurn];
  }

  /** How this process leaves the row to others at present, if it does. */
  othersTurnOf(name: string): OthersTurn | undefined {
    const othersTurn = this.#of(name)?.othersTurn;
    return othersTurn !== undefined && this.#clock.atLeast() < othersTurn.until ? othersTurn : undefined;
  }

  /** It was left to others for as long as they needed, and none of them has taken it. */
  nobodyCame(name: string): void {
    const known = this.#of(name);
    if (known !== undefined) [known.wanted, known.believedUntil] = [0, this.#clock.atLeast()];
  }

  #isBelieved({ believedUntil }: Contended): boolean {
    return this.#clock.atLeast() < believedUntil;
  }

  #of(name: string): Contended | undefined {
    if (this.#contended.size === 0) return undefined;
    const known = this.#contended.get(name);
    if (known === undefined || this.#isBelieved(known)) return known;
    if (known.othersTurn !== undefined && this.#clock.atLeast() < known.othersTurn.until) return known;
    this.#contended.delete(name);
    return undefined;
  }

  #add(name: string, contended: Contended): void {
    this.#contended.set(name, contended);
    const [oldest = ""] = this.#contended.keys();
    if (this.#contended.size > MOST_NAMES) this.#contended.delete(oldest);
  }
}
