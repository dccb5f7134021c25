import type { OwnLease, SectionRequest } from "../kinds/kind.js";
import { permitOf } from "../protocol/addresses.js";
import { rowsOf } from "../session/session.js";

/**
 * Whether a section may run on a lease that another call took. Both calls must keep the lease in the same way and have no data,
 * and neither may hold the lock for longer than its section runs.
 */
export function fits(
  { lease, admitsNobody, request }: OwnLease,
  { resource, data, holdAtLeastMs, flight }: SectionRequest,
): boolean {
  const { settings, kind, permits } = resource;
  if (admitsNobody || request.flight !== undefined || flight !== undefined || !lease.stands) return false;
  // The success of this lease's tick is recorded under its uuid, so no other section may run under that uuid.
  if (lease.row.attempt !== undefined) return false;
  if (rowsOf(lease.row).length !== resource.weight) return false;
  if (data !== undefined || lease.renewals.mayHaveData || holdAtLeastMs > 0 || lease.exit.hold !== undefined)
    return false;
  if (rowsOf(lease.row).some(({ at }) => (permitOf(at.sort) ?? 0) >= permits)) return false;
  // A section that joins others would lose the lock as soon as the first of them has held it for `maxHoldMs`.
  if (kind.sectionsShareLease && settings.maxHoldMs !== Number.POSITIVE_INFINITY) return false;
  return KEPT_BY.every((option) => settings[option] === lease.settings[option]);
}

/** The options by which a lease is kept: two sections that share a lease must agree on them. */
const KEPT_BY = [
  ...(["ttlMs", "renewEveryMs", "safetyMarginMs", "autoRenew", "maxHoldMs"] as const),
  ...(["releaseWithinMs", "handOverMs", "fencing"] as const),
];
