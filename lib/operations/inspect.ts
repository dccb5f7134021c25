import { isDeepStrictEqual } from "node:util";
import { LockStoreError } from "../errors.js";
import type { Resource } from "../kinds/kind.js";
import type { LockInfo, LockState, PermitInfo, SemaphoreState, SharedMutexState, WaiterInfo } from "../lock-info.js";
import { type CheckOptions, type InspectOptions, inspectOptions, type ListOptions } from "../options/calls.js";
import type { Address, QueueKeys, SortRange } from "../protocol/addresses.js";
import { acquisitionOf, PERMITS, permitOf, placesOf, READERS, ticketOf } from "../protocol/addresses.js";
import { earliestOf } from "../protocol/lease-time.js";
import { mayTake } from "../protocol/may-take.js";
import { infoOf, type Row } from "../protocol/row.js";
import type { Session } from "../session/session.js";
import { BadRow, type Cursor, type RangeQuery } from "../store.js";
import type { TableProblem } from "../table-report.js";
import { nextRange, PAGE_ROWS } from "../taking/rows.js";
import type { Bounds } from "../time/clock.js";
import { adminRequest } from "./admin-request.js";

/** Of how many semaphores `check()` looks at the rows. */
const MOST_LOOKED_AT = 100;

/** Who has the lock, by one consistent read, and who waits in its queue; null if it is free and has no tick. @throws the store's error. */
export async function inspect(
  session: Session,
  resource: Resource,
  options: InspectOptions,
): Promise<LockState | null> {
  const { signal } = inspectOptions(options);
  const info = await read(session, resource.at, signal);
  return info && { ...info, waiters: await waitersFor(session, resource, signal) };
}

/** Who has the permits, by a consistent query, and who waits for one. @throws the store's error. */
export async function inspectSemaphore(
  session: Session,
  resource: Resource,
  options: InspectOptions,
): Promise<SemaphoreState> {
  const { name, permits } = resource;
  const { signal } = inspectOptions(options);
  const { rows, bad } = await rowsIn(session, name, PERMITS, { consistent: true, signal });
  const bounds = session.clock.wall();
  const taken = byAcquisition(rows.filter((row) => isTaken(row, bounds)));
  const holders = [
    ...taken.map((each) => ({ ...infoOfSeveral(each), ...numbersOf(each) })),
    ...bad.map((row) => ({ ...infoOfBad(row), ...numbersOf([row.at]) })),
  ].sort((one, other) => one.permit - other.permit);
  return { permits, holders, waiters: await waitersFor(session, resource, signal) };
}

function numbersOf(permitRows: readonly Address[]): Pick<PermitInfo, "permit" | "permits"> {
  const permits = permitRows.map(({ sort }) => permitOf(sort) ?? 0);
  return { permit: permits[0] ?? 0, permits };
}

/** Rows, each with the others of its name that belong to the same acquisition, in the order of the first of each. */
export function byAcquisition(rows: readonly Row[]): (readonly [Row, ...Row[]])[] {
  const groups = new Map<string, [Row, ...Row[]]>();
  for (const row of rows) {
    const { name, sort, uuid } = row;
    const key = JSON.stringify([name, uuid === undefined ? sort : acquisitionOf({ sort, uuid }), uuid === undefined]);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [row]);
    else group.push(row);
  }
  return [...groups.values()];
}

/** What the rows of one acquisition say of it: it ends with the first of them. */
export function infoOfSeveral(rows: readonly [Row, ...Row[]]): LockInfo {
  const [first] = rows;
  return infoOf({ ...first, expires: Math.min(...rows.map(({ expires }) => expires)) });
}

/** Who has either side, by consistent reads, and who waits. @throws the store's error. */
export async function inspectSharedMutex(
  session: Session,
  resource: Resource,
  options: InspectOptions,
): Promise<SharedMutexState> {
  const { signal } = inspectOptions(options);
  const { rows, bad } = await rowsIn(session, resource.name, READERS, { consistent: true, signal });
  const exclusive = await read(session, resource.at, signal);
  const bounds = session.clock.wall();
  const shared = [...rows.filter((row) => isTaken(row, bounds)).map(infoOf), ...bad.map(infoOfBad)];
  return { exclusive, shared, waiters: await waitersFor(session, resource, signal) };
}

/** The lock of one row, or that it is damaged; null if it is free. @throws the store's error. */
async function read(session: Session, at: Address, ends: AbortSignal | undefined): Promise<LockInfo | null> {
  try {
    const look = (signal: AbortSignal) => session.store.read(at, { consistent: true }, signal);
    const row = await adminRequest(session, look, { signal: ends });
    return row !== undefined && (row.tick !== undefined || isTaken(row, session.clock.wall())) ? infoOf(row) : null;
  } catch (error) {
    if (error instanceof BadRow && error.isDamaged) return infoOfBad(error);
    throw error;
  }
}

/** What can be said of a row that is not one of ours. */
function infoOfBad(bad: BadRow): LockInfo {
  return { ...infoOf(blankOf(bad)), problem: bad.message };
}

/** Nothing but whose row it is can be relied on. */
function blankOf({ at, owner }: BadRow) {
  return { ...at, owner, uuid: undefined, acquired: 0, expires: 0, ttlMs: 0, data: undefined, tick: undefined };
}

/**
 * Whether a lock is shown as taken: it has a holder, even one whose lease is over, or it stays taken without one for a
 * while. Without bounds, no such hold is known to be over.
 */
export function isTaken(row: Row, bounds: Bounds | undefined): boolean {
  return row.uuid !== undefined || !mayTake(row, { earliest: earliestOf(bounds) });
}

async function waitersFor(
  session: Session,
  { name, kind, settings }: Resource,
  signal: AbortSignal | undefined,
): Promise<WaiterInfo[]> {
  return settings.fair ? await listWaiters(session, name, kind.queue.keys, signal) : [];
}

/** All who wait for a lock and are alive as far as the clock knows, in order; eventually consistent. @throws the store's error. */
export async function listWaiters(
  session: Session,
  name: string,
  queue: QueueKeys,
  signal?: AbortSignal,
): Promise<WaiterInfo[]> {
  const { rows, bad } = await rowsIn(session, name, placesOf(queue), { consistent: false, signal });
  const earliest = earliestOf(session.clock.wall());
  const waiters = rows.filter((row) => !mayTake(row, { earliest })).map(waiterInfo);
  const blocked = bad.map((row) => ({ ...waiterInfo(blankOf(row)), sections: 0, problem: row.message }));
  return [...waiters, ...blocked].sort((one, other) => (one.ticket < other.ticket ? -1 : 1));
}

/** All rows of a range, page by page, and what does not parse. @throws the store's error. */
export async function rowsIn(
  session: Session,
  name: string,
  range: SortRange,
  {
    consistent,
    signal: ends,
    onSent,
    onFailure,
  }: {
    readonly consistent: boolean;
    readonly signal?: AbortSignal | undefined;
    /** Called as a copy of a request leaves. */
    readonly onSent?: () => void;
    /** Called with the failure of each attempt that was not given up. */
    readonly onFailure?: (cause: unknown) => void;
  },
): Promise<{ readonly rows: readonly Row[]; readonly bad: readonly BadRow[] }> {
  const rows: Row[] = [];
  const bad: BadRow[] = [];
  const first = { name, ...range, limit: PAGE_ROWS, consistent };
  for (let rest: RangeQuery | undefined = first; rest !== undefined; ) {
    const asked: RangeQuery = rest;
    const query = (signal: AbortSignal) => {
      onSent?.();
      return session.store.query(asked, signal);
    };
    const page = await adminRequest(session, query, { signal: ends, ...(onFailure && { onFailure }) });
    rows.push(...page.rows);
    bad.push(...page.bad);
    rest = nextRange(asked, page);
  }
  return { rows, bad };
}

type Place = Pick<Row, "sort" | "uuid" | "owner" | "data" | "acquired" | "expires">;

function waiterInfo({ sort, uuid = "", owner, data, acquired, expires }: Place): WaiterInfo {
  const needed = typeof data?.sections === "number" ? data.sections : 1;
  const sections = typeof data?.callers === "number" ? data.callers : needed;
  const side = data?.side === "exclusive" || data?.side === "shared" ? data.side : undefined;
  const [since, until] = [new Date(acquired), new Date(expires)];
  const several = needed > sections ? { permits: needed } : undefined;
  return { ticket: ticketOf(sort) ?? 0n, uuid, owner, sections, ...several, side, since, expires: until };
}

/** The locks of a table, page by page: a page is read when the one before it has been used up. */
export async function* listLocks(
  session: Session,
  { prefix = "", includeFree = false, signal }: ListOptions,
): AsyncGenerator<LockInfo, void, undefined> {
  const isShown = alreadyShown();
  let after: Cursor | undefined;
  do {
    const from = after;
    const scan = (ends: AbortSignal) => session.store.scan(prefix, from, ends);
    const { rows, bad, next } = await adminRequest(session, scan, { signal });
    if (next !== undefined && isDeepStrictEqual(next, from))
      throw new LockStoreError(
        "A scan of the table goes on where it began: what answers is not DynamoDB; check the endpoint",
      );
    const bounds = session.clock.wall();
    const shown = rows.filter((row) => includeFree || isTaken(row, bounds));
    for (const info of [...shown.map(infoOf), ...bad.map(infoOfBad)]) {
      signal?.throwIfAborted();
      if (isShown(info)) continue;
      yield info;
    }
    after = next;
  } while (after !== undefined);
}

/** Whether another permit of the same acquisition was seen before: a scan shows the rows of one name in a row. */
function alreadyShown(): (info: LockInfo) => boolean {
  const acquisitions = new Set<string>();
  let last: string | undefined;
  return ({ kind, name, uuid }) => {
    if (kind !== "semaphore" || uuid === undefined) return false;
    if (name !== last) acquisitions.clear();
    last = name;
    const isShown = acquisitions.has(uuid);
    acquisitions.add(uuid);
    return isShown;
  };
}

/**
 * The semaphores of this process of which another host knows another number of permits, by those who hold one; and the rows of
 * these that are not rows of ours.
 */
export async function permitProblems(session: Session, { signal }: CheckOptions): Promise<TableProblem[]> {
  const problems: TableProblem[] = [];
  for (const [name, permits] of [...session.semaphores].slice(-MOST_LOOKED_AT)) {
    const { rows, bad } = await rowsIn(session, name, PERMITS, { consistent: false, signal });
    for (const { message } of bad) problems.push({ code: "row", severity: "warning", message });
    const bounds = session.clock.wall();
    const other = rows.find((row) => row.permits !== undefined && row.permits !== permits && isTaken(row, bounds));
    if (other === undefined) continue;
    const message =
      `Semaphore ${JSON.stringify(name)} has ${permits} permits here and ${other.permits} for ${other.owner}: each host uses as ` +
      "many as it knows of, so the larger number counts; deploy one number everywhere";
    problems.push({ code: "permits", severity: "warning", message });
  }
  return problems;
}
