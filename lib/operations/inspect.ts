import type { Resource } from "../kinds/kind.js";
import type { LockInfo, LockState, SemaphoreState, SharedMutexState, WaiterInfo } from "../lock-info.js";
import {
  MUTEX_QUEUE,
  PERMITS,
  permitOf,
  placesOf,
  type QueueKeys,
  READERS,
  SEMAPHORE_QUEUE,
  SHARED_MUTEX_QUEUE,
  type SortRange,
  ticketOf,
  writerAt,
} from "../protocol/addresses.js";
import { earliestOf } from "../protocol/lease-time.js";
import { mayTake } from "../protocol/may-take.js";
import { infoOf, type Row } from "../protocol/row.js";
import type { Session } from "../session/session.js";
import type { RangeQuery } from "../store.js";
import type { Target } from "../taking/acquisition.js";
import { PAGE_ROWS, restOf } from "../taking/rows.js";
import type { Bounds } from "../time/clock.js";
import { adminRequest } from "./admin-request.js";

/** Who has the lock, by one consistent read, and who waits in its queue; null if it is free. @throws the store's error. */
export async function inspect(session: Session, { at, settings }: Target): Promise<LockState | null> {
  const row = await adminRequest(session, (signal) => session.store.read(at, { consistent: true }, signal));
  if (row === undefined || !isTaken(row, session.clock.wall())) return null;
  return { ...infoOf(row), waiters: settings.fair ? await listWaiters(session, at.name, MUTEX_QUEUE) : [] };
}

/** Who has the permits, by a consistent query, and who waits for one. @throws the store's error. */
export async function inspectSemaphore(session: Session, resource: Resource): Promise<SemaphoreState> {
  const { name, permits, settings } = resource;
  const rows = await rowsIn(session, name, PERMITS, { consistent: true });
  const bounds = session.clock.wall();
  const holders = rows
    .filter((row) => isTaken(row, bounds))
    .map((row) => ({ ...infoOf(row), permit: permitOf(row.sort) ?? 0 }));
  return { permits, holders, waiters: settings.fair ? await listWaiters(session, name, SEMAPHORE_QUEUE) : [] };
}

/** Who has either side, by consistent reads, and who waits. @throws the store's error. */
export async function inspectSharedMutex(session: Session, resource: Resource): Promise<SharedMutexState> {
  const { name, settings } = resource;
  const readers = await rowsIn(session, name, READERS, { consistent: true });
  const writer = await adminRequest(session, (signal) => session.store.read(writerAt(name), CONSISTENT, signal));
  const bounds = session.clock.wall();
  const infoIf = (row: Row | undefined): LockInfo | null => (row && isTaken(row, bounds) ? infoOf(row) : null);
  return {
    exclusive: infoIf(writer),
    shared: readers.flatMap((row) => infoIf(row) ?? []),
    waiters: settings.fair ? await listWaiters(session, name, SHARED_MUTEX_QUEUE) : [],
  };
}

const CONSISTENT = { consistent: true } as const;

/**
 * Whether a lock is shown as taken: it has a holder, even one whose lease is over, or it stays taken without one for a
 * while. Without bounds, no such hold is known to be over.
 */
export function isTaken(row: Row, bounds: Bounds | undefined): boolean {
  return row.uuid !== undefined || !mayTake(row, { earliest: earliestOf(bounds) });
}

/** All who wait for a lock and are alive as far as the clock knows, in order; eventually consistent. @throws the store's error. */
export async function listWaiters(session: Session, name: string, queue: QueueKeys): Promise<WaiterInfo[]> {
  const rows = await rowsIn(session, name, placesOf(queue), { consistent: false });
  const earliest = earliestOf(session.clock.wall());
  return rows.filter((row) => !mayTake(row, { earliest })).map(waiterInfo);
}

/** All rows of a range, page by page. @throws the store's error. */
export async function rowsIn(
  session: Session,
  name: string,
  range: SortRange,
  { consistent, signal: ends }: { readonly consistent: boolean; readonly signal?: AbortSignal | undefined },
): Promise<Row[]> {
  const rows: Row[] = [];
  for (let rest: RangeQuery | undefined = { name, ...range, limit: PAGE_ROWS, consistent }; rest !== undefined; ) {
    const asked: RangeQuery = rest;
    const page = await adminRequest(session, (signal) => session.store.query(asked, signal), { signal: ends });
    rows.push(...page.rows);
    rest = restOf(asked, page);
  }
  return rows;
}

function waiterInfo({ sort, uuid = "", owner, data, acquired, expires }: Row): WaiterInfo {
  const sections = typeof data?.sections === "number" ? data.sections : 1;
  const side = data?.side === "exclusive" || data?.side === "shared" ? data.side : undefined;
  const [since, until] = [new Date(acquired), new Date(expires)];
  return { ticket: ticketOf(sort) ?? 0n, uuid, owner, sections, side, since, expires: until };
}
