import type { MutexSettings } from "../options/mutex.js";
import type { Row } from "../protocol/row.js";
import type { Clock } from "../time/clock.js";

/** How soon the next in line looks again, at the soonest. */
const NEXT_MS = 90;

/** Of the time for which the present holder has the lock, so much may pass between two looks of the next in line. */
const SHARE_OF_HOLD = 0.02;

/** How soon those behind it look again, at the soonest. */
const BEHIND_MS = 50;

/** For each turn before a waiter, so many of the longest polls may pass between two looks: the next section may be short. */
const POLLS_A_TURN = 2.5;

/** The longest pause of anybody. */
const LONGEST_MS = 5_000;

/**
 * When a waiter looks at its queue again. The next in line looks often, and less often the longer the same section runs.
 * Those behind look at half of the estimated time until their turn, so that the number of their looks grows with the
 * logarithm of their place: the estimate is their distance times the pace at which turns have passed lately. A turn is a
 * place, or several that go in together.
 */
export class Pace {
  readonly #clock: Clock;
  readonly #random: () => number;
  /** The first place, and since when it was seen to be the first, on `atLeast`. */
  #first: { readonly ticket: bigint; readonly since: number } | undefined;
  #msPerTurn: number | undefined;
  /** Who holds the lock, and since when that was seen. */
  #holders: { readonly uuids: string; readonly since: number } | undefined;

  constructor({ clock, random }: { readonly clock: Clock; readonly random: () => number }) {
    this.#clock = clock;
    this.#random = random;
  }

  /** Notes what a look has shown. @param turns how many turns there were from one ticket to another. */
  saw(gate: readonly Row[], first: bigint | undefined, turns: (from: bigint, to: bigint) => number): void {
    const now = this.#clock.atLeast();
    const uuids = gate.map(({ uuid }) => uuid).join();
    if (this.#holders?.uuids !== uuids) this.#holders = { uuids, since: now };
    if (first === undefined || first === this.#first?.ticket) return;
    if (this.#first !== undefined && first > this.#first.ticket) {
      const ms = (now - this.#first.since) / turns(this.#first.ticket, first);
      // A faster pace is believed at once: a waiter that looks too late delays all behind it.
      this.#msPerTurn = ms < (this.#msPerTurn ?? Number.POSITIVE_INFINITY) ? ms : ((this.#msPerTurn ?? ms) + ms) / 2;
    }
    this.#first = { ticket: first, since: now };
  }

  /** How long the next in line waits before it looks again. */
  next({ maxMs }: MutexSettings["poll"]): number {
    const heldMs = this.#holders === undefined ? 0 : this.#clock.atLeast() - this.#holders.since;
    return this.#jittered(Math.min(maxMs, Math.max(NEXT_MS, heldMs * SHARE_OF_HOLD)));
  }

  /** How long a waiter waits before it looks again, if so many turns are before its own. */
  behind(turns: number | bigint, { maxMs }: MutexSettings["poll"]): number {
    if (this.#first === undefined) return this.#jittered(Math.min(maxMs, BEHIND_MS));
    const distance = Math.max(1, Number(turns));
    const stoodMs = this.#clock.atLeast() - this.#first.since;
    const turnMs = distance * Math.max(this.#msPerTurn ?? 0, stoodMs);
    const longestMs = Math.min(LONGEST_MS, distance * POLLS_A_TURN * maxMs);
    return this.#jittered(Math.min(longestMs, Math.max(BEHIND_MS, turnMs / 2)));
  }

  #jittered(ms: number): number {
    return ms * (0.89 + 0.22 * this.#random());
  }
}
