import { publish } from "../diagnostics.js";
import { attemptMs } from "../protocol/lease-time.js";
import { isTransient, persist } from "../session/retry.js";
import type { Host } from "../session/session.js";
import type { Parking, Row, WriteOutcome } from "../store.js";

/** One acquisition's row, and what its requests may take. */
export interface Releasable {
  readonly name: string;
  readonly uuid: string;
  readonly kept: boolean;
  readonly ttlMs: number;
  readonly ticked?: boolean | undefined;
  /** How the row stays taken, if it does. */
  readonly parked?: Parking | undefined;
}

/** What a release came to. After `unanswered` the row stays until its lease ends by itself. */
export type Release =
  | { readonly kind: "released" }
  /** The one and only copy of the delete was refused, by this row or by there being none. */
  | { readonly kind: "refused"; readonly row: Row | undefined }
  | { readonly kind: "unanswered" };

/**
 * Deletes a row where it is still ours; a kept one stays, free; a parked one stays, taken. Tried until `until`, and never thrown: a release that
 * the network prevents is told on the diagnostics channel, and the lease ends by itself.
 */
export async function releaseRow(host: Host, ours: Releasable, until: () => number): Promise<Release> {
  const { name, uuid, kept, parked, ticked } = ours;
  const persistence = { kind: "release", until, attemptMs: attemptMs(ours.ttlMs), random: host.random } as const;
  let attempts = 0;
  let outcome: WriteOutcome;
  try {
    outcome = await persist(host, persistence, (signal, attempt) => {
      attempts = attempt;
      return host.store.release(name, uuid, { kept, parked, ticked }, signal);
    });
  } catch (cause) {
    releaseFailed(name, uuid, cause);
    return { kind: "unanswered" };
  }
  // A refusal after an earlier copy of the same request says nothing: that copy may have done it, and somebody else may
  // have taken the lock since.
  if (outcome.kind === "refused" && !outcome.retried && attempts === 1) return { kind: "refused", row: outcome.row };
  publish("dynamutex:released", { name, uuid });
  return { kind: "released" };
}

function releaseFailed(name: string, uuid: string, cause: unknown): void {
  publish("dynamutex:release-failed", { name, uuid, cause });
  // What will not pass by itself, such as a missing permission, would otherwise only show as slow locks.
  if (!isTransient(cause))
    process.emitWarning(`${JSON.stringify(name)} was not released: ${cause}`, "DynamutexWarning");
}
