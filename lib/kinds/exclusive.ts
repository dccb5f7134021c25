import type { Section } from "../holding/lease.js";
import { type Claimed, looksFreeIn } from "../taking/claim.js";
import { Polling } from "../taking/polling.js";
import type { InTheWay } from "../taking/row-take.js";
import { untilFree } from "../taking/watch.js";
import { Kind, type OwnLease, type QueueRules, type ResourceClaim, takeRow, targetOf } from "./kind.js";
import { grantedUnless, lookForReaders, WRITER_GATE } from "./shared-mutex-rows.js";

/** A writer that waits: its lease is renewed, and its loss is noticed when it is next looked at. */
const WAITING_WRITER: Section = { abort: () => undefined };

/**
 * The exclusive side of a shared mutex. Both sides put their flag first and look at the other's then, so that one of two
 * always sees the other:
 *
 * 1. It takes the row `writer` by the ordinary claim. From then on no further reader gets in.
 * 2. It looks for readers, consistent, until none is left. Dead ones are removed exactly as they were seen.
 * 3. Only an empty look, made while its own lease stands, lets it in.
 */
export class ExclusiveSide extends Kind {
  readonly id = "exclusive";
  override readonly rowDecides = false;
  readonly queue: QueueRules = {
    ...WRITER_GATE,
    side: "exclusive",
    room: (resource, rows) => (looksFreeIn(this.session, targetOf(resource), rows) ? 1 : 0),
    weight: () => 1,
  };

  override async claim(claimed: ResourceClaim): Promise<Claimed<OwnLease>> {
    const result = await takeRow(this.session, claimed);
    if (result.kind !== "granted") return result;
    return await grantedUnless(this.session, result.granted, (own) => this.#readerInTheWay(own, claimed));
  }

  /**
   * Waits for the readers to leave. From the take on the lease must not lapse, not even for a moment that a renewal mends: a
   * reader that looks at such a row takes its writer for dead. So it is watched from here until its section begins.
   *
   * @returns a reader, if the call does not wait. Undefined when no reader is left, and when the lease was lost, on which no
   * section begins.
   * @throws what ended the wait.
   */
  async #readerInTheWay(
    { lease, resource }: OwnLease,
    { wait, onTaken }: ResourceClaim,
  ): Promise<InTheWay | undefined> {
    const polling = new Polling(this.session, resource.settings.poll);
    lease.keep();
    lease.watch(WAITING_WRITER);
    while (lease.held) {
      const { found, alive } = await lookForReaders(this.session, resource, wait);
      wait.enough.throwIfAborted();
      if (!lease.held) break;
      if (alive !== undefined) {
        const target = { ...resource, at: alive };
        wait.blocker.saw(alive);
        if (!wait.isPatient) return { target, row: alive };
        onTaken?.();
        await polling.pause(wait, untilFree(this.session, target, alive));
      } else if (found) {
        await wait.pacing.again();
      } else {
        lease.endSection(WAITING_WRITER);
        break;
      }
    }
    return undefined;
  }
}
