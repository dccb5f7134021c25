import type { MutexSettings } from "../options/mutex.js";
import type { Row } from "../protocol/row.js";
import type { Clock } from "../time/clock.js";

/** The shortest pause between two looks of the waiter that is next. */
const NEXT_MS = 90;

/** The waiter that is next pauses for this share of the time for which the present holder has had the lock. */
const SHARE_OF_HOLD = 0.02;

/** The shortest pause between two looks of a waiter behind it. */
const BEHIND_MS = 50;

/** A waiter pauses for at most this many longest polls for each group before it: the next section may be short. */
const POLLS_A_GROUP = 2.5;

/** The longest pause of any waiter. */
const LONGEST_MS = 5_000;

/**
 * When a waiter looks at its queue again. The waiter that is next looks often, and less often the longer the same section runs.
 * A waiter behind it looks after half of the estimated time until it is in front, so the number of its looks grows with the logarithm
 * of its distance. The estimate is that distance times the pace at which groups have passed lately. A group is one place, or
 * several that enter together.
 */
export class Pace {
  readonly #clock: Clock;
  readonly #random: () => number;
  /** The last of the places that may enter together, and since when it was seen to be that, on `atLeast`. */
  #first: { readonly ticket: bigint; readonly since: number } | undefined;
  #msPerGroup: number | undefined;
  /** Who holds the lock, and since when that was seen. */
  #holders: { readonly uuids: string; readonly since: number } | undefined;

  constructor({ clock, random }: { readonly clock: Clock; readonly random: () => number }) {
    this.#clock = clock;
    this.#random = random;
  }

  /** Notes what a look has shown. @param groupsBetween how many groups there were from one ticket to another. */
  saw(gate: readonly Row[], first: bigint | undefined, groupsBetween: (from: bigint, to: bigint) => number): void {
    const now = this.#clock.atLeast();
    const uuids = gate.map(({ uuid }) => uuid).join();
    if (this.#holders?.uuids !== uuids) this.#holders = { uuids, since: now };
    if (first === undefined || first === this.#first?.ticket) return;
    if (this.#first !== undefined && first > this.#first.ticket) {
      const ms = (now - this.#first.since) / groupsBetween(this.#first.ticket, first);
      // Adopt a faster pace at once: a waiter that looks too late delays all waiters behind it.
      this.#msPerGroup = ms < (this.#msPerGroup ?? Number.POSITIVE_INFINITY) ? ms : ((this.#msPerGroup ?? ms) + ms) / 2;
    }
    this.#first = { ticket: first, since: now };
  }

  /** How long the next in line waits before it looks again. */
  next({ maxMs }: MutexSettings["poll"]): number {
    const heldMs = this.#holders === undefined ? 0 : this.#clock.atLeast() - this.#holders.since;
    return this.#jittered(Math.min(maxMs, Math.max(NEXT_MS, heldMs * SHARE_OF_HOLD)));
  }

  /** How long a waiter waits before it looks again, if this many groups come before it. */
  behind(groups: number | bigint, { maxMs }: MutexSettings["poll"]): number {
    if (this.#first === undefined) return this.#jittered(Math.min(maxMs, BEHIND_MS));
    const distance = Math.max(1, Number(groups));
    const stoodMs = this.#clock.atLeast() - this.#first.since;
    const untilFrontMs = distance * Math.max(this.#msPerGroup ?? 0, stoodMs);
    const longestMs = Math.min(LONGEST_MS, distance * POLLS_A_GROUP * maxMs);
    return this.#jittered(Math.min(longestMs, Math.max(BEHIND_MS, untilFrontMs / 2)));
  }

  #jittered(ms: number): number {
    return ms * (0.89 + 0.22 * this.#random());
  }
}
