import type { Section } from "../holding/lease.js";
import type { Row } from "../protocol/row.js";
import type { Session } from "../session/session.js";
import { type Claimed, claim, looksFreeIn, type RowsInTheWay } from "../taking/claim.js";
import { Polling } from "../taking/polling.js";
import type { Wait } from "../taking/wait.js";
import { type KeptOut, untilFree, watch } from "../taking/watch.js";
import { type Kind, OwnLease, type QueueRules, type Resource, type ResourceClaim, targetOf } from "./kind.js";
import { lookForReaders, WRITER_GATE } from "./shared-mutex-rows.js";

/** A writer that waits: its lease is renewed, and its loss is noticed when it is next looked at. */
const WAITING_WRITER: Section = { abort: () => undefined };

/** What came of waiting for the readers. */
type ReadersLeft =
  | { readonly kind: "gone" }
  /** One is there, and this call does not wait. */
  | { readonly kind: "there"; readonly row: Row }
  /** The writer's own lease is over. Readers may have come in since. */
  | { readonly kind: "lost" };

/**
 * The exclusive side of a shared mutex. Both sides put their flag first and look at the other's then, so that one of two
 * always sees the other:
 *
 * 1. It takes the row `writer` by the ordinary claim. From then on no further reader gets in.
 * 2. It looks for readers, consistent, until none is left. Dead ones are removed exactly as they were seen.
 * 3. Only an empty look, made while its own lease stands, lets it in.
 */
export class ExclusiveSide implements Kind {
  readonly id = "exclusive";
  readonly rowDecides = false;
  readonly isJoined = false;
  readonly queue: QueueRules;
  readonly #session: Session;

  constructor(session: Session) {
    this.#session = session;
    this.queue = {
      ...WRITER_GATE,
      side: "exclusive",
      room: (resource, rows) => (looksFreeIn(session, targetOf(resource), rows) ? 1 : 0),
      weight: () => 1,
    };
  }

  async claim({ resource, wait, waits, data, until }: ResourceClaim): Promise<Claimed<OwnLease>> {
    for (;;) {
      const claimed = await claim(this.#session, targetOf(resource), wait, { data, until });
      if (claimed.kind !== "granted") return claimed;
      const own = new OwnLease(this.#session, resource, claimed.granted);
      let left: ReadersLeft | undefined;
      try {
        left = await this.#readersLeave(own, wait, { waits });
      } finally {
        if (left?.kind !== "gone") this.#session.detach(own.lease.exit.giveBack());
      }
      switch (left.kind) {
        case "gone":
          own.lease.endSection(WAITING_WRITER);
          return { kind: "granted", granted: own };
        case "there":
          return { kind: "held", inTheWay: [{ target: { at: left.row, settings: resource.settings }, row: left.row }] };
        case "lost":
          // One that was renewed is lost for another reason than a slow table.
          if (own.lease.row.guard === undefined) wait.failures.leaseWasOver(resource);
          await wait.pacing.again();
          break;
        default:
          left satisfies never;
      }
    }
  }

  watch(_resource: Resource, [first]: RowsInTheWay, wait: Wait, keptOut: KeptOut): Promise<undefined> {
    return watch(this.#session, first, wait, keptOut);
  }

  /**
   * From the take on the lease must not lapse, not even for a moment that a renewal mends: a reader that looks at such a row
   * takes its writer for dead. So it is watched from here until its section begins.
   *
   * @throws what ended the wait.
   */
  async #readersLeave(
    { lease, resource }: OwnLease,
    wait: Wait,
    { waits }: { readonly waits: boolean },
  ): Promise<ReadersLeft> {
    const session = this.#session;
    const polling = new Polling(session, resource.settings.poll);
    lease.keep();
    lease.watch(WAITING_WRITER);
    for (;;) {
      if (!lease.held) return { kind: "lost" };
      const readers = await lookForReaders(session, resource, wait);
      wait.throwIfEnough();
      if (!lease.held) return { kind: "lost" };
      switch (readers.kind) {
        case "gone":
          return readers;
        case "removed":
          await wait.pacing.again();
          break;
        case "there":
          wait.blocker.saw(readers.row);
          if (!waits) return readers;
          await polling.pause(wait, untilFree(session, { ...resource, at: readers.row }, readers.row));
          break;
        default:
          readers satisfies never;
      }
    }
  }
}
