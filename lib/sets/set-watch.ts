import type { Session } from "../session/session.js";
import type { Bid } from "../taking/bid.js";
import { looksFree } from "../taking/claim.js";
import type { Target } from "../taking/row-lease.js";
import type { InTheWay, RowsInTheWay } from "../taking/row-take.js";
import { ANSWERS, watch } from "../taking/watch.js";

/** How many times as many rows are read at once as the time before, while none of them is held. */
const GROWTH = 4;

/**
 * How a set waits for rows that have refused it. A refused transaction costs two write units for each of its rows, and a read half a
 * read unit. So all rows that have refused the call at any time are read again before its next transaction.
 *
 * 1. Watch one row that is held: one read a poll, however many rows there are.
 * 2. When it looks free, read the others, one first and then more at once, up to the first that is held. Go on with 1.
 * 3. If none is held, the set is asked for again.
 */
export class SetWatch {
  readonly #session: Session;
  readonly #bid: Bid;
  readonly #poll: Target["settings"]["poll"];
  /** The rows that have refused the call, as last seen, by name. */
  readonly #refusers = new Map<string, InTheWay>();

  /**
   * @param bid its pauses grow across transactions that came too late, so that a crowd costs fewer of them.
   * @param poll how often the set looks.
   */
  constructor(session: Session, bid: Bid, { settings: { poll } }: Target) {
    this.#session = session;
    this.#bid = bid;
    this.#poll = poll;
  }

  /** Waits until none of the rows that have refused looks held. @throws what ended the call. */
  async untilFree(refusers: RowsInTheWay): Promise<void> {
    for (const inTheWay of refusers) this.#refusers.set(inTheWay.target.at.name, inTheWay);
    let held = refusers.find((inTheWay) => this.#isHeld(inTheWay));
    // The rows have refused and look free already: the next transaction knows more of them. It is a repeated request.
    if (held === undefined) return await this.#bid.again();
    // For each round: one answer may tell that a row is free, and that the rest of them have to be read.
    const answers = ANSWERS + Math.ceil(Math.log2(1 + this.#refusers.size) / Math.log2(GROWTH));
    while (held !== undefined) {
      // Each row is marked by itself.
      await watch(this.#session, held, this.#bid, {
        blocked: { ...this.#bid.view.blocked },
        answers,
        poll: this.#poll,
      });
      held = await this.#nextHeld(held);
    }
  }

  /** The first of the rows that is still held, looking from behind one that was found free. */
  async #nextHeld({ target }: InTheWay): Promise<InTheWay | undefined> {
    const all = [...this.#refusers.values()];
    const from = all.findIndex((one) => one.target === target);
    const others = [...all.slice(from + 1), ...all.slice(0, from)];
    for (let [next, size] = [0, 1]; next < others.length; next += size, size *= GROWTH) {
      const read = await Promise.all(others.slice(next, next + size).map((one) => this.#readAfresh(one)));
      const held = read.find((one) => one !== undefined);
      if (held !== undefined) return held;
    }
    return undefined;
  }

  /** @returns the row, if it is held. */
  async #readAfresh({ target }: InTheWay): Promise<InTheWay | undefined> {
    const { at } = target;
    const row = await this.#bid.ask((signal) => this.#session.store.read(at, { consistent: false }, signal));
    this.#session.sightings.note(at, row);
    if (row === undefined) return undefined;
    const inTheWay = { target, row };
    this.#refusers.set(at.name, inTheWay);
    return this.#isHeld(inTheWay) ? inTheWay : undefined;
  }

  #isHeld({ target, row }: InTheWay): boolean {
    return !looksFree(this.#session, target, row);
  }
}
