import { LockStoreError } from "../errors.js";
import type { MutexSettings } from "../options/mutex.js";
import type { Session } from "../session/session.js";
import type { Bid } from "./bid.js";
import { FIRST_ANSWER_MS } from "./call.js";
import type { Target } from "./row-lease.js";

/**
 * A call fails when this many of its leases were over before they could be handed out. One or two may be chance: a suspended host.
 */
const MOST_OVER = 3;

/** The table's answers take longer than a lease: no retry helps. */
export function tooSlow(name: string, { ttlMs }: MutexSettings, cause?: unknown): LockStoreError {
  const message = `Lock ${JSON.stringify(name)}: the table's answers take longer than a lease of ${ttlMs} ms lasts; raise ttlMs`;
  return new LockStoreError(message, cause === undefined ? {} : { cause });
}

/** Notes a lease that was over before it could be handed out. @throws {@link LockStoreError} if it is the third of this call. */
export function leaseWasOver(
  bid: Bid,
  { name, settings }: { readonly name: string; readonly settings: MutexSettings },
): void {
  bid.call.leasesOver += 1;
  if (bid.call.leasesOver >= MOST_OVER) throw tooSlow(name, settings);
}

/**
 * Called when a claim got no answer before its lease would have been over. That is an outage, which is waited out, unless for
 * {@link FIRST_ANSWER_MS} even the quickest answer to any request took longer than a lease lasts.
 * @throws {@link LockStoreError} in that case.
 */
export function throwIfTooSlow(
  { scheduler }: Session,
  { waitedMs }: Bid,
  { at, settings }: Target,
  cause: unknown,
): void {
  const { quickMs = 0 } = scheduler;
  const leaseMs = settings.ttlMs - settings.safetyMarginMs;
  if (waitedMs >= FIRST_ANSWER_MS && quickMs >= leaseMs) throw tooSlow(at.name, settings, cause);
}
