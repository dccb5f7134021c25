import { publish } from "../diagnostics.js";
import { displayTime } from "../protocol/lease-time.js";
import type { HeldLease, Session } from "../session/session.js";

/** How long a call waits behind one section of its own process before that is told. */
const STUCK_AFTER_MS = 5_000;

/** Whether this process was warned: a process whose sections are long has many such calls, which the channel tells one by one. */
let isWarned = false;

/**
 * Tells once a call that it has waited for 5 s while one and the same section of its own process held the lock: a `lock()`
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
function leaseOfThisProcess({ leases, owner }: Session, uuid: string | undefined): HeldLease | undefined {
  const lease = uuid === undefined ? undefined : leases.with(uuid);
  return lease?.info.owner === owner ? lease : undefined;
}

/** The same lease, if a section runs on it. */
export function leaseInUse(session: Session, uuid: string | undefined): LeaseInUse | undefined {
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
  // A clock without `stay` is set by hand, in a test: some seconds on it are no reason for a warning.
  if (isWarned || clock.stay === undefined) return;
  isWarned = true;
  process.emitWarning(
    `Lock ${JSON.stringify(name)}: a call has waited for ${seconds(waitedMs)} s behind a section of its own process, which ` +
      `has held the lock for ${seconds(heldMs)} s${since === undefined ? "" : `, since ${since.toISOString()}`}. If that ` +
      "section awaits this call, neither ends: a mutex is not re-entrant, so use the lock that the section has. Otherwise see " +
      "that the section ends. Further such calls of this process are told on the channel dynamutex:stuck alone",
    "DynamutexWarning",
  );
}

const seconds = (ms: number): number => Math.round(ms / 1_000);
