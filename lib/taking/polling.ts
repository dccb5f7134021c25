import type { MutexSettings } from "../options/mutex.js";
import type { Session } from "../session/session.js";

/** By how much each pause is longer than the one before. */
const GROWTH = 1.5;

/** By how much a pause may be longer than stated. */
export const LONGEST_JITTER = 1.25;

/** A pause of `ms`, up to a quarter more or less: callers that began together do not go on looking at the same moments. */
export const jittered = ({ random }: Pick<Session, "random">, ms: number): number => ms * (0.75 + random() / 2);

/** Who pauses, within bounds of its own. */
interface Pausing {
  readonly view: { readonly shared: { readonly longestPauseMs: () => number } };
  pause(ms: number): Promise<void>;
}

/** The pauses between looks: jittered, from `poll.minMs` growing to `poll.maxMs`. */
export class Polling {
  readonly #session: Session;
  /** The next pause; 0 for the first. */
  #nextMs = 0;
  /** When the pause that has begun is over, on `atLeast`: the next bid goes on with a pause in which another was withdrawn. */
  #lookAt = Number.POSITIVE_INFINITY;
  #isPausing = false;

  constructor(session: Session) {
    this.#session = session;
  }

  /**
   * Waits until the next look.
   * @param poll that of the bid.
   * @param dueInMs in how many ms a look would certainly show something new: the next look is no later.
   * @throws what ended the call.
   */
  async pause(bid: Pausing, { minMs, maxMs }: MutexSettings["poll"], dueInMs: number): Promise<void> {
    const { clock } = this.#session;
    const longestMs = Math.min(maxMs, bid.view.shared.longestPauseMs());
    const ms = Math.min(longestMs, Math.max(minMs, this.#nextMs));
    if (!this.#isPausing || this.#nextMs === 0) {
      const whole = clock.atLeast() + jittered(this.#session, ms);
      // Of a pause that has begun, no more than its rest.
      this.#lookAt = this.#isPausing ? Math.min(this.#lookAt, whole) : whole;
      this.#nextMs = Math.min(longestMs, ms * GROWTH);
    }
    this.#isPausing = true;
    await bid.pause(Math.min(Math.max(0, this.#lookAt - clock.atLeast()), Math.max(1, dueInMs)));
    this.#isPausing = false;
  }

  /** Sets the next pause, from which the following ones grow. Default: as long as the first. A pause that has begun gets no longer. */
  set(ms = 0): void {
    this.#nextMs = ms;
  }
}
