import { readerAt } from "../protocol/addresses.js";
import type { Bid } from "../taking/bid.js";
import { type Claimed, looksFreeIn } from "../taking/claim.js";
import { isHalfGone } from "../taking/row-lease.js";
import type { InTheWay } from "../taking/row-take.js";
import { Kind, type QueueRules, type ResourceClaim, rowTarget, type Tenure, takeRow } from "./kind.js";
import { grantedUnless, lookForWriter, untilNoWriter, WRITER_GATE } from "./shared-mutex-rows.js";

/**
 * The shared side of a shared mutex. Each side puts its own flag first and looks at the other's afterwards, so one of the two
 * always sees the other:
 *
 * 1. A reader takes a row of its own, `reader#<uuid>`, by the ordinary claim.
 * 2. It reads `writer`, consistently. If a writer has that row, judged by what was known before the read left, the reader gives
 *    its own row back and waits.
 * 3. It removes the row of a dead writer, on the condition that the row is still exactly as it was seen: from there on no guard
 *    of that writer passes. If the removal is refused, the reader goes on with 2. Otherwise it has the lock.
 *
 * A reader that has seen a writer before looks first whether that writer is still there: otherwise flags of readers that come
 * and go would keep the writer out.
 *
 * Callers of one process share a row. A caller that joins sends nothing, and needs no safety of its own: while the row is
 * there, no writer gets in. To let writers in, no caller joins once this process has seen a writer, which it looks for every
 * `handOverMs`. The row goes when the last of its sections ends.
 */
export class SharedSide extends Kind {
  readonly id = "shared";
  override readonly rowDecides = false;
  override readonly sectionsShareLease = true;
  readonly queue: QueueRules = {
    ...WRITER_GATE,
    side: "shared",
    room: (resource, rows) => (looksFreeIn(this.session, rowTarget(resource), rows) ? Number.POSITIVE_INFINITY : 0),
    weight: ({ data }) => (data?.side === "shared" ? 0 : Number.POSITIVE_INFINITY),
  };

  override async claim(claimed: ResourceClaim): Promise<Claimed<Tenure>> {
    const { session } = this;
    const { request, bid, seen, open } = claimed;
    const { resource } = request;
    const joined = open();
    if (joined !== undefined) {
      // The look that this claim relies on has shown no writer.
      if (seen !== undefined) joined.lookedAt = session.clock.atLeast();
      const writer = await this.#writerBehind(joined, bid);
      if (writer !== undefined) return { kind: "held", inTheWay: [writer] };
      const { lease } = joined;
      // Without `autoRenew`, the last renewal may be long ago.
      if (isHalfGone(session, lease.row) && lease.stands) await bid.answered(lease.renewals.renew());
      if (lease.stands && !isHalfGone(session, lease.row) && joined.isOpen) return { kind: "granted", granted: joined };
    }
    const { name, at, settings } = resource;
    if (!session.sightings.mayBeFree(at, settings.takeover)) {
      const writer = await lookForWriter(session, resource, bid);
      if (writer !== undefined) return { kind: "held", inTheWay: [writer] };
      bid.withdrawn.throwIfAborted();
    }
    for (;;) {
      const result = await takeRow(session, claimed, { at: readerAt(name, session.uuid()), settings });
      if (result.kind === "granted")
        return await grantedUnless(session, result.granted, () => untilNoWriter(session, resource, bid));
      // Nobody else uses this row: it was unlocked by force while the reply to its claim was lost. It keeps writers out until it
      // expires, and no reader, so another row will do.
      if (result.kind !== "held") return result;
      await bid.again();
    }
  }

  /**
   * Looks every `handOverMs` for a writer that waits for a row of this process to go. Once it has seen one, no caller joins the
   * row.
   */
  async #writerBehind(own: Tenure, bid: Bid): Promise<InTheWay | undefined> {
    const now = this.session.clock.atLeast();
    if (now - own.lookedAt < own.resource.settings.handOverMs) return undefined;
    const writer = await lookForWriter(this.session, own.resource, bid);
    if (writer === undefined) own.lookedAt = now;
    else own.close();
    return writer;
  }
}
