import type { LockState, WaiterInfo } from "../lock-info.js";
import { MUTEX_QUEUE, placesOf, ticketOf } from "../protocol/addresses.js";
import { earliestOf } from "../protocol/lease-time.js";
import { mayTake } from "../protocol/may-take.js";
import { infoOf, type Row } from "../protocol/row.js";
import { PAGE_ROWS, restOf } from "../queues/queue-view.js";
import type { Session } from "../session/session.js";
import type { RangeQuery } from "../store.js";
import type { Target } from "../taking/acquisition.js";
import type { Bounds } from "../time/clock.js";
import { adminRequest } from "./admin-request.js";

/** Who has the lock, by one consistent read, and who waits in its queue; null if it is free. @throws the store's error. */
export async function inspect(session: Session, { at, settings }: Target): Promise<LockState | null> {
  const row = await adminRequest(session, (signal) => session.store.read(at, { consistent: true }, signal));
  if (row === undefined || !isTaken(row, session.clock.wall())) return null;
  return { ...infoOf(row), waiters: settings.fair ? await listWaiters(session, at.name) : [] };
}

/**
 * Whether a lock is shown as taken: it has a holder, even one whose lease is over, or it stays taken without one for a
 * while. Without bounds, no such hold is known to be over.
 */
export function isTaken(row: Row, bounds: Bounds | undefined): boolean {
  return row.uuid !== undefined || !mayTake(row, { earliest: earliestOf(bounds) });
}

/** All who wait for a lock and are alive as far as the clock knows, in order; eventually consistent. @throws the store's error. */
export async function listWaiters(session: Session, name: string): Promise<WaiterInfo[]> {
  const { clock, store } = session;
  const places = { name, ...placesOf(MUTEX_QUEUE) };
  const listed: WaiterInfo[] = [];
  for (let rest: RangeQuery | undefined = { ...places, limit: PAGE_ROWS, consistent: false }; rest !== undefined; ) {
    const asked: RangeQuery = rest;
    const page = await adminRequest(session, (signal) => store.query(asked, signal));
    const earliest = earliestOf(clock.wall());
    listed.push(...page.rows.filter((row) => !mayTake(row, { earliest })).map(waiterInfo));
    rest = restOf(asked, page);
  }
  return listed;
}

function waiterInfo({ sort, uuid = "", owner, data, acquired, expires }: Row): WaiterInfo {
  const sections = typeof data?.sections === "number" ? data.sections : 1;
  return { ticket: ticketOf(sort) ?? 0n, uuid, owner, sections, since: new Date(acquired), expires: new Date(expires) };
}
