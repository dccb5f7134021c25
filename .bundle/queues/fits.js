import { permitOf } from "../protocol/addresses.js";
import { rowsOf } from "../session/session.js";
export function fits({ lease, admitsNobody, request }, { resource, data, holdAtLeastMs, flight }) {
    const { settings, kind, permits } = resource;
    if (admitsNobody || request.flight !== undefined || flight !== undefined || !lease.stands)
        return false;
    if (lease.row.attempt !== undefined)
        return false;
    if (rowsOf(lease.row).length !== resource.weight)
        return false;
    if (data !== undefined || lease.renewals.mayHaveData || holdAtLeastMs > 0 || lease.exit.hold !== undefined)
        return false;
    if (rowsOf(lease.row).some(({ at }) => (permitOf(at.sort) ?? 0) >= permits))
        return false;
    if (kind.sectionsShareLease && settings.maxHoldMs !== Number.POSITIVE_INFINITY)
        return false;
    return KEPT_BY.every((option) => settings[option] === lease.settings[option]);
}
const KEPT_BY = [
    ...["ttlMs", "renewEveryMs", "safetyMarginMs", "autoRenew", "maxHoldMs"],
    ...["releaseWithinMs", "handOverMs", "fencing"],
];
