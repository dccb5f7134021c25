import type { Requests } from "./requests.js";
import { pauseMs } from "./retry.js";

/** How many times a call may ask again at once: the second answer is mostly new. */
const AT_ONCE = 2;

/**
 * The pauses of a call that asks again although nothing has failed: the row looked free and was not, a place is gone, a
 * reply told no time. The first two times it goes on at once, and then after growing, jittered pauses. So no request is
 * repeated without a pause for ever, whatever the table answers.
 */
export class Pacing {
  readonly #session: Pick<Requests, "clock" | "random">;
  readonly #wait: { readonly endSignal: AbortSignal };
  #times = 0;

  constructor(session: Pick<Requests, "clock" | "random">, wait: { readonly endSignal: AbortSignal }) {
    this.#session = session;
    this.#wait = wait;
  }

  /** Called before a call asks again, if nothing else has made it pause. @throws the reason of `endSignal`. */
  async again(): Promise<void> {
    this.#times += 1;
    if (this.#times <= AT_ONCE) return;
    await this.#session.clock.sleep(pauseMs(this.#session, this.#times - AT_ONCE), this.#wait.endSignal);
  }

  /** Called when something else has made the call pause. */
  paused(): void {
    this.#times = 0;
  }
}
