import { publish } from "../diagnostics.js";
import { displayTime } from "../protocol/lease-time.js";
import { leasesOfProcess, rowsOf } from "../session/session.js";
const STUCK_AFTER_MS = 5_000;
let isWarned = false;
export function watchForStuck(session, call, inTheWay) {
    const { clock } = session;
    const waitsSince = clock.atLeast();
    const look = () => {
        const now = clock.atLeast();
        const lease = leaseInUse(session, inTheWay());
        const together = lease === undefined ? now : Math.max(waitsSince, lease.inUseSince);
        const leftMs = together + STUCK_AFTER_MS - now;
        if (lease === undefined || leftMs > 0)
            cancel = clock.alarm(leftMs, look);
        else
            tell(session, call, lease, now - waitsSince);
    };
    let cancel = clock.alarm(STUCK_AFTER_MS, look);
    return () => cancel();
}
function leaseOfThisProcess({ leases, owner }, uuid) {
    if (uuid === undefined)
        return undefined;
    const hasIt = ({ row }) => rowsOf(row).some((one) => one.uuid === uuid);
    for (const lease of leases)
        if (hasIt(lease))
            return lease;
    return leasesOfProcess().find((lease) => hasIt(lease) && lease.info.owner === owner);
}
export function leaseInUse(session, uuid) {
    const lease = leaseOfThisProcess(session, uuid);
    return lease !== undefined && isInUse(lease) ? lease : undefined;
}
function isInUse(lease) {
    return lease.inUseSince !== undefined;
}
function tell({ clock }, call, { row, inUseSince }, waitedMs) {
    const { name } = row.at;
    const heldMs = clock.atLeast() - inUseSince;
    const bounds = clock.wall();
    const since = bounds && new Date(displayTime(bounds) - heldMs);
    publish("dynamutex:stuck", { name, call, uuid: row.uuid, since, heldMs, waitedMs });
    if (isWarned || clock.stay === undefined)
        return;
    isWarned = true;
    process.emitWarning(`Lock ${JSON.stringify(name)}: a call has waited for ${seconds(waitedMs)} s behind a section of its own process, which ` +
        `has held the lock for ${seconds(heldMs)} s${since === undefined ? "" : `, since ${since.toISOString()}`}. If that ` +
        "section awaits this call, neither ends: a mutex is not re-entrant, so use the lock that the section has. Otherwise see " +
        "that the section ends. Further such calls of this process are told on the channel dynamutex:stuck alone", "DynamutexWarning");
}
const seconds = (ms) => Math.round(ms / 1_000);
