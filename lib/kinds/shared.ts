import { readerAt } from "../protocol/addresses.js";
import type { Session } from "../session/session.js";
import { giveBack } from "../taking/abandoned-claims.js";
import { type Claimed, claim, looksFreeIn, type RowsInTheWay } from "../taking/claim.js";
import type { InTheWay } from "../taking/row-take.js";
import type { Wait } from "../taking/wait.js";
import { type KeptOut, watch } from "../taking/watch.js";
import { type Kind, OwnLease, type QueueRules, type Resource, type ResourceClaim, targetOf } from "./kind.js";
import { lookForWriter, untilNoWriter, WRITER_GATE } from "./shared-mutex-rows.js";

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
export class SharedSide implements Kind {
  readonly id = "shared";
  readonly rowDecides = false;
  readonly isJoined = true;
  readonly queue: QueueRules;
  readonly #session: Session;

  constructor(session: Session) {
    this.#session = session;
    this.queue = {
      ...WRITER_GATE,
      side: "shared",
      room: (resource, rows) => (looksFreeIn(session, targetOf(resource), rows) ? Number.POSITIVE_INFINITY : 0),
      weight: ({ data }) => (data?.side === "shared" ? 0 : Number.POSITIVE_INFINITY),
    };
  }

  async claim({ resource, wait, data, until, seen, open }: ResourceClaim): Promise<Claimed<OwnLease>> {
    const own = open();
    if (own !== undefined) {
      // What was seen just now has shown no writer.
      if (seen !== undefined) own.lookedAt = this.#session.clock.atLeast();
      const writer = await this.#writerBehind(own, wait);
      if (writer !== undefined) return { kind: "held", inTheWay: [writer] };
      // It may have been renewed long ago, where it does not renew itself.
      if (own.lease.row.isHalfGone && own.lease.stands) await own.lease.renewals.renew();
      if (own.lease.stands && !own.lease.row.isHalfGone && !own.isClosed) return { kind: "granted", granted: own };
    }
    if (!this.#session.sightings.mayBeFree(resource.at, resource.settings.takeover)) {
      const writer = await lookForWriter(this.#session, resource, wait);
      if (writer !== undefined) return { kind: "held", inTheWay: [writer] };
      wait.throwIfEnough();
    }
    return await this.#claimRow({ resource, wait, data, until });
  }

  watch(_resource: Resource, [first]: RowsInTheWay, wait: Wait, keptOut: KeptOut): Promise<undefined> {
    return watch(this.#session, first, wait, keptOut);
  }

  async #claimRow({
    resource,
    wait,
    data,
    until,
  }: Pick<ResourceClaim, "resource" | "wait" | "data" | "until">): Promise<Claimed<OwnLease>> {
    const session = this.#session;
    const target = { at: readerAt(resource.name, session.uuid()), settings: resource.settings };
    const claimed = await claim(session, target, wait, { data, until });
    if (claimed.kind !== "granted") return claimed;
    let isOurs = false;
    try {
      const writer = await untilNoWriter(session, resource, wait);
      isOurs = writer === undefined;
      if (writer !== undefined) return { kind: "held", inTheWay: [writer] };
      return { kind: "granted", granted: new OwnLease(session, resource, claimed.granted) };
    } finally {
      if (!isOurs) session.detach(giveBack(session, claimed.granted));
    }
  }

  /** The writer that waits for a row of this process to go, looked for every `handOverMs`. Nobody joins that row any more. */
  async #writerBehind(own: OwnLease, wait: Wait): Promise<InTheWay | undefined> {
    const { clock } = this.#session;
    const now = clock.atLeast();
    if (now - own.lookedAt < own.resource.settings.handOverMs) return undefined;
    const writer = await lookForWriter(this.#session, own.resource, wait);
    if (writer === undefined) own.lookedAt = now;
    else own.isClosed = true;
    return writer;
  }
}
