import { publish } from "../diagnostics.js";
import type { LockInfo } from "../lock-info.js";
import { displayTime } from "../protocol/lease-time.js";
import type { HeldLease, Session } from "../session/session.js";

/** How long a call waits before that is told. */
const LONG_MS = 5_000;

/** Whether this process was warned: a process whose sections are long has many such calls, which the channel tells one by one. */
let isWarned = false;

/** What is watched of a call that waits. */
interface WaitingCall {
  readonly name: string;
  readonly number: number;
  /** Who is in its way at present, as last seen. */
  readonly holder: () => LockInfo | undefined;
}

/**
 * Tells once a call that it has waited for 5 s, behind whomever: a holder that was killed keeps its lock until its lease ends. And
 * once that one and the same section of its own process has held the lock for that time: a `lock()` inside of a section of
 * the same name waits for ever. The call is not refused, because an innocent call may wait as long.
 *
 * The time is counted on the stopwatch that never runs ahead: a host that was suspended has not waited.
 *
 * @returns a function that ends the watch.
 */
export function watchLongWait(session: Session, call: WaitingCall): () => void {
  const { clock } = session;
  const { name, number } = call;
  const waitsSince = clock.atLeast();
  let isTold = false;
  let isOver = false;
  const look = (): void => {
    const now = clock.atLeast();
    const holder = call.holder();
    if (holder !== undefined && !isTold) {
      isTold = true;
      publish("dynamutex:blocked", { name, call: number, holder, waitedMs: now - waitsSince });
      // A subscriber may end the call.
      if (isOver) return;
    }
    const lease = leaseInUse(session, holder?.uuid);
    const together = lease === undefined ? now : Math.max(waitsSince, lease.inUseSince);
    const leftMs = together + LONG_MS - now;
    if (lease === undefined || leftMs > 0) cancel = clock.alarm(leftMs, look);
    else tell(session, number, lease, now - waitsSince);
  };
  let cancel = clock.alarm(LONG_MS, look);
  return () => {
    isOver = true;
    cancel();
  };
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
