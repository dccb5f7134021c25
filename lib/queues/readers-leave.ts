import type { Lease, Section } from "../holding/lease.js";
import type { Row } from "../protocol/row.js";
import type { Session } from "../session/session.js";
import type { Resource } from "../taking/kind.js";
import { lookForReaders, untilDead } from "../taking/readers.js";
import type { Wait } from "../taking/wait.js";

/** A writer that waits: its lease is renewed, and its loss is noticed when it is next looked at. */
export const WAITING_WRITER: Section = { abort: () => undefined };

/** What came of waiting for the readers. */
export type ReadersLeft =
  | { readonly kind: "gone" }
  /** One is there, and this call does not wait. */
  | { readonly kind: "there"; readonly row: Row }
  /** The writer's own lease is over. Readers may have come in since. */
  | { readonly kind: "lost" };

/**
 * Waits until no reader is left, for a writer whose row is there, so that no further one gets in: only an empty look, made
 * while the own lease stands, lets the writer in.
 *
 * From the take on the lease must not lapse, not even for a moment that a renewal mends: a reader that looks at such a row
 * takes its writer for dead. So it is watched from here until its section begins.
 *
 * @throws what ended the wait.
 */
export async function readersLeave(
  session: Session,
  resource: Resource,
  lease: Lease,
  wait: Wait,
  { waits }: { readonly waits: boolean },
): Promise<ReadersLeft> {
  const { clock, random } = session;
  const { minMs, maxMs } = resource.settings.poll;
  lease.keep();
  lease.watch(WAITING_WRITER);
  let interval = minMs;
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
      case "there": {
        wait.saw(readers.row);
        if (!waits) return readers;
        const jittered = interval * (0.75 + random() / 2);
        await clock.sleep(Math.min(jittered, Math.max(1, untilDead(session, resource, readers.row))), wait.enough);
        wait.pacing.paused();
        interval = Math.min(maxMs, interval * 1.5);
        break;
      }
      default:
        readers satisfies never;
    }
  }
}
