import type { MutexSettings } from "../options/mutex.js";
import { isTransient, type Tried } from "../session/retry.js";
import { tooSlow } from "./too-slow.js";

/** How many leases of one call may be over before they are handed out. One or two may be by chance: a host was suspended. */
const MOST_OVER = 3;

/** What one call has tried in vain: for the error that ends it. */
export class CallFailures {
  /** The ticks that a claim of this call without an answer may have taken, and what that claim failed of. */
  readonly doubtfulTicks: Map<number | undefined, unknown> = new Map();
  /** The uuids of its claims for a tick that were refused: a late copy of one may take the tick all the same. */
  readonly refusedClaims: Set<string | undefined> = new Set();
  /** What its requests have tried since the table last answered one of them; undefined for nothing. */
  sinceAnswer: Tried | undefined;
  /** What the last of its requests failed of; undefined if none has. */
  last: unknown;
  #leasesOver = 0;

  /** @param tried what was tried by then since the table last answered. */
  failed(cause: unknown, tried: Tried): void {
    this.sinceAnswer = tried;
    if (tried.sent > 0) this.last = cause;
    else this.last ??= cause;
  }

  /** What had no time to leave hides no failure before it, also where the table has answered something since. */
  reasonFor(error: unknown): unknown {
    return (this.sinceAnswer?.sent ?? 0) === 0 && isTransient(error) ? (this.last ?? error) : error;
  }

  /** Notes a lease that was over before it could be handed out. @throws {@link LockStoreError} if that is so again and again. */
  leaseWasOver({ name, settings }: { readonly name: string; readonly settings: MutexSettings }): void {
    this.#leasesOver += 1;
    if (this.#leasesOver >= MOST_OVER) throw tooSlow(name, settings);
  }
}
