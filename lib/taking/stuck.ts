import { publish } from "../diagnostics.js";
import { displayTime } from "../protocol/lease-time.js";
import { type HeldLease, leasesOfProcess, type Session } from "../session/session.js";

/** How long a call waits behind one section of its own process before a warning is published. */
const STUCK_AFTER_MS = 60_000;

/**
 * Warns once if a call has waited for a minute while one and the same section of its own process held the lock: a `lock()`
 * inside of a section of the same name waits for ever. The call is not refused, because an innocent call may wait as long.
 *
 * The time is counted on the stopwatch that never runs ahead: a host that was suspended has not waited.
 *
 * @param call the call that waits.
 * @param inTheWay the uuid of the acquisition that the call waits for at present.
 * @returns a function that ends the watch.
 */
export function watchForStuck(session: Session, call: number, inTheWay: () => string | undefined): () => void {
  const { clock } = session;
  const waitsSince = clock.atLeast();
  const look = (): void => {
    const now = clock.atLeast();
    const lease = leaseInUse(session, inTheWay());
    const together = lease === undefined ? now : Math.max(waitsSince, lease.inUseSince);
    const leftMs = together + STUCK_AFTER_MS - now;
    if (lease === undefined || leftMs > 0) cancel = clock.alarm(leftMs, look);
    else tell(session, call, lease, now - waitsSince);
  };
  let cancel = clock.alarm(STUCK_AFTER_MS, look);
  return () => cancel();
}

/**
 * The lease that this process has under a uuid: on this table, or on the same table by way of another `LockTable` that names
 * the same owner. Another owner would be another host, such as one of a table in memory.
 */
export function leaseOfThisProcess({ leases, owner }: Session, uuid: string | undefined): HeldLease | undefined {
  if (uuid === undefined) return undefined;
  for (const lease of leases) if (lease.row.uuid === uuid) return lease;
  return leasesOfProcess().find(({ row }) => row.uuid === uuid && row.info.owner === owner);
}

/** The same lease, if a section runs on it. */
function leaseInUse(session: Session, uuid: string | undefined): LeaseInUse | undefined {
  const lease = leaseOfThisProcess(session, uuid);
  return lease !== undefined && isInUse(lease) ? lease : undefined;
}

type LeaseInUse = HeldLease & { readonly inUseSince: number };

function isInUse(lease: HeldLease): lease is LeaseInUse {
  return lease.inUseSince !== undefined;
}

function tell({ clock }: Session, call: number, { row, inUseSince }: LeaseInUse, waitedMs: number): void {
  const { name } = row.at;
  const heldMs = clock.atLeast() - inUseSince;
  const bounds = clock.wall();
  const since = bounds && new Date(displayTime(bounds) - heldMs);
  publish("dynamutex:stuck", { name, call, uuid: row.uuid, since, heldMs, waitedMs });
  // A clock without `stay` is set by hand, in a test: a minute on it is no reason for a warning.
  if (clock.stay === undefined) return;
  process.emitWarning(
    `Lock ${JSON.stringify(name)}: a call has waited for ${seconds(waitedMs)} s behind a section of its own process, which ` +
      `has held the lock for ${seconds(heldMs)} s${since === undefined ? "" : `, since ${since.toISOString()}`}. If the ` +
      "call is inside of that section, it waits for ever: use the lock that the section has. If it is not, that section " +
      "may never end: see that it calls unlock()",
    "DynamutexWarning",
  );
}

const seconds = (ms: number): number => Math.round(ms / 1_000);
