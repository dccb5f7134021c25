import type { Lease } from "../holding/lease.js";
import type { Session } from "../session/session.js";
import type { Claimed } from "../taking/claim.js";
import type { Resource } from "../taking/kind.js";
import { lookForWriter } from "../taking/readers.js";
import type { Wait } from "../taking/wait.js";

/** A reader's row of this process, and when it was last seen, on `atMost`, that no writer waits for it to go. */
interface Shared {
  readonly lease: Lease;
  lookedAt: number;
}

/**
 * The readers' rows that sections of this process share. Whoever joins one sends nothing, and needs no safety of its own:
 * while the row is there, no writer gets in. So that writers do get in, nobody joins once one was seen, which is looked for
 * every `handOverMs`; the row goes when the last of its sections ends.
 */
export class SharedLeases {
  readonly #session: Session;
  readonly #current = new Map<string, Shared>();

  constructor(session: Session) {
    this.#session = session;
  }

  /** From here on others may join this lease, which was taken a moment ago, where there was no writer. */
  add({ name }: Resource, lease: Lease): void {
    this.#current.set(name, { lease, lookedAt: this.#session.clock.atMost() });
  }

  /** Nobody joins this lease any more. */
  leave(lease: Lease): void {
    const { name } = lease.row.at;
    if (this.#current.get(name)?.lease === lease) this.#current.delete(name);
  }

  /**
   * A lease that this caller may join, or the writer that is in the way; undefined where it has to take a row of its own.
   *
   * @param hasLooked whether a look has just shown that no writer is there.
   */
  async join(
    resource: Resource,
    wait: Wait,
    fits: (lease: Lease) => boolean,
    { hasLooked }: { readonly hasLooked: boolean },
  ): Promise<Claimed<Lease> | undefined> {
    const { name, settings } = resource;
    const shared = this.#current.get(name);
    if (shared === undefined || !shared.lease.stands || !fits(shared.lease)) return undefined;
    const { lease } = shared;
    const now = this.#session.clock.atMost();
    if (hasLooked) shared.lookedAt = now;
    if (now - shared.lookedAt >= settings.handOverMs) {
      const writer = await lookForWriter(this.#session, resource, wait, { isConsistent: false });
      if (writer !== undefined) {
        this.leave(lease);
        return { kind: "held", inTheWay: [writer] };
      }
      shared.lookedAt = now;
    }
    // It may have been renewed long ago, where it does not renew itself.
    if (lease.row.isHalfGone && lease.stands) await lease.renew();
    const isJoined = lease.stands && !lease.row.isHalfGone && this.#current.get(name) === shared;
    return isJoined ? { kind: "granted", granted: lease } : undefined;
  }
}
