import { Lease } from "../holding/lease.js";
import { claim, looksFree } from "../taking/claim.js";
import { watch } from "../taking/watch.js";
export const resourceKey = ({ kind, name }) => `${kind.id}/${name}`;
export class OwnLease {
    lease;
    resource;
    lookedAt;
    before;
    admitsNobody = false;
    request;
    constructor(session, request, row) {
        this.lease = new Lease(session, row);
        this.request = request;
        this.resource = request.resource;
        this.lookedAt = this.lease.takenAt;
    }
}
export class Kind {
    rowDecides = true;
    sectionsShareLease = false;
    session;
    constructor(session) {
        this.session = session;
    }
    claim(claimed) {
        return takeRow(this.session, claimed);
    }
    watch(_resource, [first], wait, blocked) {
        return watch(this.session, first, wait, blocked);
    }
    ended(_own, _isFree) {
    }
}
export async function takeRow(session, claimed, target = rowTarget(claimed.request.resource)) {
    const { request, wait, until } = claimed;
    const { data, once, flight } = request;
    if (flight !== undefined) {
        const row = await wait.answered(flight.looked());
        if (row !== undefined && !looksFree(wait, target, row)) {
            wait.saw(row);
            return { kind: "held", inTheWay: [{ target, row }] };
        }
    }
    const after = flight && { id: flight.lastId };
    const result = await claim(session, target, wait, { data, once, after, until });
    if (result.kind !== "granted")
        return result;
    return { kind: "granted", granted: new OwnLease(session, request, result.granted) };
}
export const rowTarget = ({ at, settings }) => ({ at, settings });
export function newest(rows) {
    return rows.toSorted((one, other) => other.acquired - one.acquired)[0];
}
