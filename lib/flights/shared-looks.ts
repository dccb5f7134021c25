import { answeredWithin } from "../session/overdue.js";
import type { Requests } from "../session/requests.js";
import { LONGEST_ATTEMPT_MS } from "../session/retry.js";

/** What a look that leaves knows of its order. */
export interface NumberedLook {
  readonly number: number;
  /** The number of the last look that has left. */
  readonly lastNumber: () => number;
  /** Whether no later look was answered before. */
  readonly isLatest: () => boolean;
  /** Called when the first copy leaves. */
  readonly onSent: () => void;
}

/** A look as those know it who wait for it. */
export interface AskedLook {
  /** Resolves when it has left, or when nothing is left of it to wait for. */
  readonly left: Promise<true>;
  /** Resolves when it, or a later look, is answered. */
  readonly answered: Promise<void>;
}

/** A look, and the calls that wait for it. */
interface Shared extends AskedLook {
  readonly leave: () => void;
  readonly settle: (error?: unknown) => void;
  /** When it left, on `atLeast`, and for how long the next look waits for its answer. */
  sentAt: number;
  patienceMs: number;
}

/**
 * The looks that calls share. They are ordered by number and not by waiting.
 *
 * 1. One look serves all calls that ask before it leaves.
 * 2. It leaves when the look before it is answered, or when that answer is overdue. So a crowd of calls needs few looks, and a look
 *    that is lost does not hold up the next.
 * 3. A call goes on when its look is answered, or a later one. From then on, the answer to an earlier look is out of date.
 */
export class SharedLooks {
  readonly #session: Requests;
  readonly #look: (look: NumberedLook) => Promise<void>;
  #lastNumber = 0;
  /** The look that is to leave next. */
  #next: Shared | undefined;
  /** Those that have left, in order, since the last one that was answered. */
  readonly #underWay: Shared[] = [];

  /** @param look sends a look, and acts on its answer. */
  constructor(session: Requests, look: (look: NumberedLook) => Promise<void>) {
    this.#session = session;
    this.#look = look;
  }

  /** The look that leaves next. Its answer may be the store's error. */
  ask(): AskedLook {
    if (this.#next === undefined) {
      this.#next = newShared();
      void this.#send(this.#next);
    }
    return this.#next;
  }

  /** Resolves when the last look is answered, if there is one under way. If that answer is overdue, another look is sent. */
  async latest(): Promise<void> {
    const last = this.#underWay.at(-1);
    if (this.#next === undefined && last === undefined) return;
    if (this.#next === undefined && last !== undefined) {
      await this.#whileDue(last);
      if (!this.#underWay.includes(last)) return;
    }
    await this.ask().answered.catch(() => undefined);
  }

  /** Never rejects: who waits for the look has its error. */
  async #send(own: Shared): Promise<void> {
    const before = this.#underWay.at(-1);
    // All that is asked for in this turn goes with it.
    await (before === undefined ? undefined : this.#whileDue(before));
    this.#next = undefined;
    const { clock, scheduler } = this.#session;
    own.sentAt = clock.atLeast();
    // The longer nothing is answered, the longer the next look waits: in an outage there are few of them.
    const last = this.#underWay.at(-1);
    own.patienceMs = last === undefined ? scheduler.overdueMs : Math.min(LONGEST_ATTEMPT_MS, 2 * last.patienceMs);
    this.#underWay.push(own);
    try {
      const number = ++this.#lastNumber;
      const isLatest = (): boolean => this.#underWay.includes(own);
      await this.#look({ number, isLatest, lastNumber: () => this.#lastNumber, onSent: own.leave });
      // It answers those before it as well.
      for (const each of this.#underWay.splice(0, this.#underWay.indexOf(own) + 1)) each.settle();
    } catch (error) {
      const index = this.#underWay.indexOf(own);
      if (index >= 0) this.#underWay.splice(index, 1);
      own.settle(error);
    }
  }

  /** Waits until a look is answered or has failed, or its answer is overdue. */
  async #whileDue({ answered, sentAt, patienceMs }: Shared): Promise<void> {
    const { clock } = this.#session;
    await answeredWithin(clock, sentAt + patienceMs - clock.atLeast(), answered).catch(() => undefined);
  }
}

function newShared(): Shared {
  let [leave, settle]: [Shared["leave"], Shared["settle"]] = [() => undefined, () => undefined];
  const left = new Promise<true>((resolve) => {
    leave = () => resolve(true);
  });
  const answered = new Promise<void>((resolve, reject) => {
    settle = (error) => {
      leave();
      if (error === undefined) resolve();
      else reject(error);
    };
  });
  // A look that only a seen row has asked for may have nobody who waits for it.
  answered.catch(() => undefined);
  return { left, answered, leave, settle, sentAt: 0, patienceMs: 0 };
}
