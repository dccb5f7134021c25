import type { MutexSettings } from "../options/mutex.js";
import { tooSlow } from "./too-slow.js";

/** How many leases of one call may be over before they are handed out. One or two may be by chance: a host was suspended. */
const MOST_OVER = 3;

/** What one call has tried in vain: for the error that ends it. */
export class CallFailures {
  /** Why the last of its requests failed; undefined if none has. */
  last: unknown;
  #leasesOver = 0;

  /** Notes a lease that was over before it could be handed out. @throws {@link LockStoreError} if that is so again and again. */
  leaseWasOver({ name, settings }: { readonly name: string; readonly settings: MutexSettings }): void {
    this.#leasesOver += 1;
    if (this.#leasesOver >= MOST_OVER) throw tooSlow(name, settings);
  }
}
