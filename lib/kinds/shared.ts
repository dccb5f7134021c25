import { readerAt } from "../protocol/addresses.js";
import { type Claimed, looksFreeIn } from "../taking/claim.js";
import type { InTheWay } from "../taking/row-take.js";
import type { Wait } from "../taking/wait.js";
import { Kind, type OwnLease, type QueueRules, type ResourceClaim, takeRow, targetOf } from "./kind.js";
import { grantedUnless, lookForWriter, untilNoWriter, WRITER_GATE } from "./shared-mutex-rows.js";

/**
 * The shared side of a shared mutex. Both sides put their flag first and look at the other's then, so that one of two always
 * sees the other:
 *
 * 1. It takes a row of its own, `reader#<uuid>`, by the ordinary claim.
 * 2. It reads `writer`, consistent. Where a writer has it, judged by what was known before the read left, it gives its row
 *    back and waits.
 * 3. The row of a dead writer it removes, on the condition that it is still exactly as it was seen: from there on no guard of
 *    that writer passes. Where that is refused, it goes on with 2. Else it has the lock.
 *
 * A caller that has seen a writer before looks first whether it is still there: flags that come and go would keep it out.
 *
 * Callers of one process share a row. A caller that joins sends nothing, and needs no safety of its own: while the row is
 * there, no writer gets in. So that writers do get in, nobody joins once the process has seen one, which it looks for every
 * `handOverMs`; the row goes when the last of its sections ends.
 */
export class SharedSide extends Kind {
  readonly id = "shared";
  override readonly rowDecides = false;
  override readonly isJoined = true;
  readonly queue: QueueRules = {
    ...WRITER_GATE,
    side: "shared",
    room: (resource, rows) => (looksFreeIn(this.session, targetOf(resource), rows) ? Number.POSITIVE_INFINITY : 0),
    weight: ({ data }) => (data?.side === "shared" ? 0 : Number.POSITIVE_INFINITY),
  };

  override async claim(claimed: ResourceClaim): Promise<Claimed<OwnLease>> {
    const { session } = this;
    const { resource, wait, seen, open } = claimed;
    const joined = open();
    if (joined !== undefined) {
      // What was seen just now has shown no writer.
      if (seen !== undefined) joined.lookedAt = session.clock.atLeast();
      const writer = await this.#writerBehind(joined, wait);
      if (writer !== undefined) return { kind: "held", inTheWay: [writer] };
      const { lease } = joined;
      // It may have been renewed long ago, where it does not renew itself.
      if (lease.row.isHalfGone && lease.stands) await lease.renewals.renew();
      if (lease.stands && !lease.row.isHalfGone && !joined.isClosed) return { kind: "granted", granted: joined };
    }
    const { name, at, settings } = resource;
    if (!session.sightings.mayBeFree(at, settings.takeover)) {
      const writer = await lookForWriter(session, resource, wait);
      if (writer !== undefined) return { kind: "held", inTheWay: [writer] };
      wait.enough.throwIfAborted();
    }
    const result = await takeRow(session, claimed, { at: readerAt(name, session.uuid()), settings });
    if (result.kind !== "granted") return result;
    return await grantedUnless(session, result.granted, () => untilNoWriter(session, resource, wait));
  }

  /** The writer that waits for a row of this process to go, looked for every `handOverMs`. Nobody joins that row any more. */
  async #writerBehind(own: OwnLease, wait: Wait): Promise<InTheWay | undefined> {
    const now = this.session.clock.atLeast();
    if (now - own.lookedAt < own.resource.settings.handOverMs) return undefined;
    const writer = await lookForWriter(this.session, own.resource, wait);
    if (writer === undefined) own.lookedAt = now;
    else own.isClosed = true;
    return writer;
  }
}
