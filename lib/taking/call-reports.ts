import { CHANNELS, type Diagnostics, publish } from "../diagnostics.js";
import type { LockInfo } from "../lock-info.js";

/** The number of the last call: global, because the channels are, which all copies of this library in a process share. */
const LAST_CALL = Symbol.for("dynamutex.lastCall");
const numbering = globalThis as { [LAST_CALL]?: number };

/** Why a call ends without the lock, and why it fails. */
export type Missed = Diagnostics["dynamutex:missed"]["because"];
export type Failed = Diagnostics["dynamutex:failed"]["because"];

/** What a message says of a call, as of the moment at which it is sent. */
interface Reported {
  readonly name: string | undefined;
  readonly holder: LockInfo | undefined;
  readonly waitedMs: number;
}

/** What the channels hear of one call. */
export class CallReports {
  /** The number of the call, which tells its messages from those of others. */
  readonly call: number;
  readonly #wait: Reported;
  readonly #asksFor: number;
  #isMissed = false;

  /** @param asksFor how many locks; 0 for a call of the library's own, of which only `missed` is told. */
  constructor(wait: Reported, asksFor: number) {
    this.call = (numbering[LAST_CALL] ?? 0) + 1;
    numbering[LAST_CALL] = this.call;
    this.#wait = wait;
    this.#asksFor = asksFor;
  }

  asked(): void {
    if (this.#asksFor === 0 || !CHANNELS["dynamutex:asked"].hasSubscribers) return;
    const { name = "" } = this.#wait;
    publish("dynamutex:asked", { name, call: this.call, locks: this.#asksFor });
  }

  missed(because: Missed): void {
    this.#isMissed = true;
    if (!CHANNELS["dynamutex:missed"].hasSubscribers) return;
    const { name = "", holder, waitedMs } = this.#wait;
    publish("dynamutex:missed", { name, call: this.call, because, holder, waitedMs });
  }

  /** A call that was missed has told why it ends. */
  failed(because: Failed, cause: unknown): void {
    if (this.#asksFor === 0 || this.#isMissed || !CHANNELS["dynamutex:failed"].hasSubscribers) return;
    const { name = "", waitedMs } = this.#wait;
    publish("dynamutex:failed", { name, call: this.call, because, cause, waitedMs });
  }
}
