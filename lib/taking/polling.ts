import type { MutexSettings } from "../options/mutex.js";
import type { Session } from "../session/session.js";
import type { Wait } from "./wait.js";

/** By how much each pause is longer than the one before. */
const GROWTH = 1.5;

/** By how much a pause may be longer than stated. */
export const LONGEST_JITTER = 1.25;

/** A pause of `ms`, up to a quarter more or less: callers that began together do not go on looking at the same moments. */
export const jittered = ({ random }: Pick<Session, "random">, ms: number): number => ms * (0.75 + random() / 2);

/** The pauses between the looks of a call that waits: jittered, from `poll.minMs` growing to `poll.maxMs`. */
export class Polling {
  readonly #session: Session;
  readonly #poll: MutexSettings["poll"];
  #nextMs: number;

  constructor(session: Session, poll: MutexSettings["poll"]) {
    this.#session = session;
    this.#poll = poll;
    this.#nextMs = poll.minMs;
  }

  /**
   * Waits until the next look.
   * @param dueInMs in how many ms a look would certainly show something new: the next look is no later.
   * @throws what ended the wait.
   */
  async pause(wait: Wait, dueInMs: number): Promise<void> {
    const longestMs = Math.min(this.#poll.maxMs, wait.longestPauseMs());
    const ms = jittered(this.#session, Math.min(longestMs, this.#nextMs));
    this.#nextMs = Math.min(longestMs, this.#nextMs * GROWTH);
    await wait.pause(Math.min(ms, Math.max(1, dueInMs)));
  }

  /** Sets the next pause, from which the following ones grow. Default: as long as the first. */
  set(ms: number = this.#poll.minMs): void {
    this.#nextMs = ms;
  }
}
