import { publish } from "../diagnostics.js";
import type { LockInfo } from "../lock-info.js";
import { displayTime } from "../protocol/lease-time.js";
import { HOW_TO_UNLOCK } from "../session/closing.js";
import type { Session } from "../session/session.js";
import { type LeaseInUse, leaseInUse, ownSections } from "./own-sections.js";

/** How long a call waits before that is told. */
const LONG_MS = 5_000;

/** Whether this process was warned: a process whose sections are long has many such calls, which the channel tells one by one. */
let isWarned = false;

/** What is watched of a call that waits. */
interface WaitingCall {
  readonly name: string | undefined;
  readonly number: number;
  /** Who is in its way at present, as last seen. A set waits for the lock that was last seen in the way. */
  readonly holder: LockInfo | undefined;
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
  const waitsSince = clock.atLeast();
  let isTold = false;
  let isOver = false;
  const look = (): void => {
    const now = clock.atLeast();
    const { name = "", number, holder } = call;
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

function tell(session: Session, call: number, { row, info, inUseSince }: LeaseInUse, waitedMs: number): void {
  const { clock } = session;
  const { name } = row.at;
  const heldMs = clock.atLeast() - inUseSince;
  const bounds = clock.wall();
  const since = bounds && new Date(displayTime(bounds) - heldMs);
  publish("dynamutex:stuck", { name, call, uuid: row.uuid, since, heldMs, waitedMs });
  // A clock without `stay` is set by hand, in a test: some seconds on it are no reason for a warning.
  if (isWarned || clock.stay === undefined) return;
  isWarned = true;
  const { held, each, remedy } = ownSections(session, info);
  process.emitWarning(
    `Lock ${JSON.stringify(name)}: a call has waited for ${seconds(waitedMs)} s, and the lock is ${held}, for ` +
      `${seconds(heldMs)} s${since === undefined ? "" : `, since ${since.toISOString()}`}. If ${each} awaits this call, ` +
      `neither ends: ${remedy}. Otherwise see that the section ends, and unlocks by ${HOW_TO_UNLOCK}. Further such calls of this ` +
      "process are told on the channel dynamutex:stuck alone",
    "DynamutexWarning",
  );
}

const seconds = (ms: number): number => Math.round(ms / 1_000);
