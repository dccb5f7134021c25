import type { LeaseUser } from "../holding/term.js";
import { type Claimed, looksFreeIn } from "../taking/claim.js";
import { Polling } from "../taking/polling.js";
import type { InTheWay } from "../taking/row-take.js";
import { untilFree } from "../taking/watch.js";
import { Kind, type QueueRules, type ResourceClaim, rowTarget, type Tenure, takeRow } from "./kind.js";
import { grantedUnless, lookForReaders, WRITER_GATE } from "./shared-mutex-rows.js";

/** Stands for a writer that waits for readers, so that its lease is renewed. It is told nothing: the writer checks `lease.held`. */
const WAITING_WRITER: LeaseUser = { abort: () => undefined };

/**
 * The exclusive side of a shared mutex. Each side puts its own flag first and looks at the other's afterwards, so one of the
 * two always sees the other:
 *
 * 1. A writer takes the row `writer` by the ordinary claim. From then on no further reader gets in.
 * 2. It looks for readers, consistently, until none is left. Rows of dead readers are removed exactly as they were seen.
 * 3. It has the lock only after an empty look that was made while its own lease stood.
 */
export class ExclusiveSide extends Kind {
  readonly id = "exclusive";
  override readonly rowDecides = false;
  readonly queue: QueueRules = {
    ...WRITER_GATE,
    side: "exclusive",
    room: (resource, rows) => (looksFreeIn(this.session, rowTarget(resource), rows) ? 1 : 0),
    weight: () => 1,
  };

  override async claim(claimed: ResourceClaim): Promise<Claimed<Tenure>> {
    const result = await takeRow(this.session, claimed);
    if (result.kind !== "granted") return result;
    return await grantedUnless(this.session, result.granted, (own) => this.#readerInTheWay(own, claimed));
  }

  /**
   * Waits for the readers to leave. From the take on the lease must not lapse, not even for a moment before a renewal: a reader
   * that looks in that moment takes the writer for dead. So the lease is watched from here until its section begins.
   *
   * @returns a reader, if the call does not wait. Undefined if no reader is left, and also if the lease was lost: no section
   * begins on a lost lease.
   * @throws what ended the call.
   */
  async #readerInTheWay({ lease, resource }: Tenure, { bid, onTaken }: ResourceClaim): Promise<InTheWay | undefined> {
    const polling = new Polling(this.session);
    lease.keep();
    lease.watch(WAITING_WRITER);
    while (lease.held) {
      const { found, alive } = await lookForReaders(this.session, resource, bid);
      bid.withdrawn.throwIfAborted();
      if (!lease.held) break;
      if (alive !== undefined) {
        const target = { ...resource, at: alive };
        bid.saw(alive);
        if (!bid.isPatient) return { target, row: alive };
        onTaken?.();
        await polling.pause(bid, resource.settings.poll, untilFree(this.session, target, alive));
      } else if (found) {
        await bid.again();
      } else {
        lease.endUse(WAITING_WRITER);
        bid.tries();
        break;
      }
    }
    return undefined;
  }
}
