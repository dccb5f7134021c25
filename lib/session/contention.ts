import { type Address, kindOf } from "../protocol/addresses.js";
import { markInNumber, NEED_STEP_MS, numberOfMark } from "../protocol/mark.js";
import type { Row } from "../protocol/row.js";
import type { Clock } from "../time/clock.js";
import { BoundedMap } from "./bounded-map.js";
import { addressKey } from "./sightings.js";

/** For how long a mark counts at most, whatever it says: its writer's clock may be wrong, and its writer may have died. */
export const WANTED_FOR_MS = 60_000;

/** For how many of its longest polls a process stands back for a mark that does not say how long its writer needs. */
const STAND_BACK_POLLS = 2;

/** After how many of the longest polls each waiter has looked once: a pause is at most the longest poll, and its jitter. */
const ALL_LOOKED_POLLS = 1.25;

/** Beyond this many rows the oldest are forgotten: their waiters mark them once more. */
const MOST_ROWS = 10_000;

/** This process leaves a lock to others: when it looks whether one of them came, and until when it sends no claim. On `atLeast`. */
export interface OthersTurn {
  readonly at: Address;
  readonly lookAt: number;
  readonly until: number;
}

/** What is known of a row that others want, or wanted lately. Moments are on `atLeast`; the mark's own is on the table's clock. */
interface Contended {
  /** What the mark says, on the table's clock. */
  wanted: number;
  /** The longest need of a mark that was seen; undefined if none said what it needs. */
  needMs: number | undefined;
  /** Until when it is believed. */
  believedUntil: number;
  /** Since when this process has its turn with the row, which it took while it knew of the mark; undefined if its turn is over. */
  turnSince: number | undefined;
}

/**
 * The turns of this process, where several processes want the same row. There is an entry for a row only after a mark.
 *
 * 1. A process remembers a mark for as long as it lasts, if it wrote the mark or found it on the row: by a read, or in the answer
 *    to a take or a release, which show the row as it was. Each take carries the mark on, so that others see it and write none.
 * 2. A process that finds a mark while it has the row knows that somebody has been waiting for `handOverMs`: its turn is over. A
 *    process that takes the row while it knows of a mark has a turn of `handOverMs`.
 * 3. After its turn it sends no claim for that lock for as long as the mark's writer needs, the longest need if there are several,
 *    but keeps the permits that it still has. Shortly before, it looks whether another process has taken the row. If not, it forgets
 *    the mark, so that a mark whose waiter has gone costs one pause; a waiter that was late marks again.
 */
export class Contention {
  readonly #clock: Clock;
  readonly #uuidsOn: (at: Address) => readonly string[];
  readonly #contended = new BoundedMap<string, Contended>(MOST_ROWS);
  /** One for each lock: the permits of a semaphore share it. */
  readonly #othersTurns = new BoundedMap<string, OthersTurn>(MOST_ROWS);

  /** @param uuidsOn those of the leases that this process has on a row. */
  constructor(clock: Clock, uuidsOn: (at: Address) => readonly string[]) {
    this.#clock = clock;
    this.#uuidsOn = uuidsOn;
  }

  /** Learns the mark that a row carries, whoever holds it. */
  sees(row: Row | undefined): void {
    if (row?.wanted === undefined || !isContended(row)) return;
    const bounds = this.#clock.wall();
    const { until, needMs } = markInNumber(row.wanted);
    const wanted = bounds === undefined ? until : Math.min(until, Math.ceil(bounds.latest) + WANTED_FOR_MS);
    const runsMs = bounds === undefined ? WANTED_FOR_MS : wanted - bounds.earliest;
    if (runsMs <= 0) return;
    const believedUntil = this.#clock.atLeast() + Math.min(WANTED_FOR_MS, runsMs);
    const known = this.#of(row) ?? { wanted, needMs, believedUntil, turnSince: undefined };
    known.wanted = Math.max(known.wanted, wanted);
    if (needMs !== undefined) known.needMs = Math.max(known.needMs ?? 0, needMs);
    known.believedUntil = Math.max(known.believedUntil, believedUntil);
    this.#contended.set(addressKey(row), known);
  }

  /**
   * A row is in the way of a call. If another process holds the row, the turn of this process is over. But this process may
   * hold the row itself: the call may wait for a further permit, or rely on a look from before the take, whose mark is from before it.
   */
  waitsFor(row: Row): void {
    const ours = this.#uuidsOn(row);
    if (ours.length > 0 && !ours.includes(row.uuid ?? "")) return;
    this.sees(row);
    const known = row.uuid === undefined ? undefined : this.#of(row);
    if (known?.turnSince !== undefined && ours.length === 0) known.turnSince = undefined;
  }

  /**
   * This process has taken the row, and its turn begins. A look for marks, which comes `handOverMs` later, comes after the turn.
   */
  begins(at: Address, takenAt: number): void {
    const known = this.#of(at);
    if (known !== undefined) known.turnSince ??= takenAt;
  }

  /** The mark that a take of this row carries on. */
  markOf(at: Address): number | undefined {
    const known = this.#of(at);
    return known && numberOfMark({ until: known.wanted, needMs: known.needMs });
  }

  /** Whether this process, which has the row, must let others in. */
  isTurnOver(at: Address, handOverMs: number): boolean {
    return this.turnLeftMs(at, handOverMs) <= 0;
  }

  /** In how many ms the turn of this process, which has the row, is over: Infinity while no mark is known. */
  turnLeftMs(at: Address, handOverMs: number): number {
    const known = this.#of(at);
    if (known === undefined) return Number.POSITIVE_INFINITY;
    return known.turnSince === undefined ? 0 : Math.max(0, known.turnSince + handOverMs - this.#clock.atLeast());
  }

  /**
   * From here on this process leaves the row to other processes, for as long as they need. Those of which it does not know what
   * they need look at least every `longestPollMs`.
   */
  giveTurn(at: Address, longestPollMs: number): void {
    const now = this.#clock.atLeast();
    const known = this.#of(at);
    const needMs = known?.needMs;
    // Look as soon as a waiter may have come: one that came early has had its turn soon after, and leaves the row free.
    const lookAt = now + (needMs === undefined ? ALL_LOOKED_POLLS * longestPollMs : needMs - NEED_STEP_MS);
    const until = now + (needMs ?? STAND_BACK_POLLS * longestPollMs);
    // The waiter for another permit of the same semaphore may need longer.
    if (until >= (this.othersTurnOf(at)?.until ?? 0)) this.#othersTurns.set(lockOf(at), { at, lookAt, until });
    if (known !== undefined) known.turnSince = undefined;
  }

  /** Whether this process leaves the lock of this row to others at present, and until when. */
  othersTurnOf(at: Address): OthersTurn | undefined {
    if (this.#othersTurns.size === 0) return undefined;
    const othersTurn = this.#othersTurns.get(lockOf(at));
    if (othersTurn === undefined || this.#clock.atLeast() < othersTurn.until) return othersTurn;
    this.#othersTurns.delete(lockOf(at));
    return undefined;
  }

  /** Forgets the mark of a row: each waiter had the time to look once, and none of them has taken the row. */
  nobodyCame(at: Address): void {
    this.#contended.delete(addressKey(at));
  }

  /** What is known of a row, while its mark is believed. */
  #of(at: Address): Contended | undefined {
    if (this.#contended.size === 0) return undefined;
    const key = addressKey(at);
    const known = this.#contended.get(key);
    if (known === undefined || this.#clock.atLeast() < known.believedUntil) return known;
    this.#contended.delete(key);
    return undefined;
  }
}

/** A key for all rows of one lock. */
const lockOf = ({ name, sort }: Address): string => `${kindOf(sort)}/${name}`;

/** Whether processes take turns with such a row. Nobody waits to take a place, and readers come and go, each on its own row. */
function isContended({ sort }: Address): boolean {
  const kind = kindOf(sort);
  return kind === "lock" || kind === "permit" || kind === "writer";
}
