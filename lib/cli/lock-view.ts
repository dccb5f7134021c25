import type { Bounds, LockInfo, LockTable, Mutex, PermitInfo, Semaphore, SharedMutex, WaiterInfo } from "../index.js";
import type { OpenTable } from "./open-table.js";
import { showDuration } from "./options.js";

/** One lock as `ls` and `inspect` show it, and as `--json` prints it. */
export interface LockView extends Omit<LockInfo, "handedOff"> {
  /**
   * What its row says of it at this moment. `held`: somebody has it. `handed-off`: nobody has it, and whoever has the token of the
   * hand-off may go on with it. `expired`: its holder's lease is over, and anybody may take it. `blocked`: nobody has it, and nobody
   * may take it yet: parked by `--at-least`, or unlocked by force. `free`: its row is kept for what it remembers. `bad`: its row is
   * not one that this library writes, and nobody takes it.
   */
  readonly state: "held" | "handed-off" | "expired" | "blocked" | "free" | "bad";
  /** Until `expires`, by the table's clock; negative if that has passed; undefined for a free lock. */
  readonly leftMs: number | undefined;
  /** The numbers of the permits that it holds; `ls` shows none. */
  readonly permits?: readonly number[];
  /** How many wait in the queue of this name, for a lock of this kind; undefined where they were not counted. */
  readonly waiting: number | undefined;
}

/** @param bounds the table's time; undefined if nothing is known of it. */
export function viewOf(
  lock: LockInfo & Partial<Pick<PermitInfo, "permits">>,
  bounds: Bounds | undefined,
  waiting?: number,
): LockView {
  const {
    name,
    kind,
    uuid,
    owner,
    acquired,
    expires,
    ttlMs,
    data,
    tick,
    attempts,
    succeeded,
    lastRun,
    problem,
    permits,
  } = lock;
  const state = stateOf(lock, bounds);
  const now = bounds === undefined ? acquired.getTime() : (bounds.earliest + bounds.latest) / 2;
  const leftMs = state === "free" || state === "bad" ? undefined : Math.round(expires.getTime() - now);
  // In the order in which JSON shows them.
  const row = { uuid, owner, acquired, expires, leftMs, ttlMs, tick, attempts, succeeded, data, waiting };
  return {
    name,
    kind,
    state,
    ...(permits && { permits }),
    ...row,
    ...(lastRun && { lastRun }),
    ...(problem !== undefined && { problem }),
  };
}

function stateOf({ uuid, handedOff, expires, problem }: LockInfo, bounds: Bounds | undefined): LockView["state"] {
  if (problem !== undefined) return "bad";
  const isOver = expires.getTime() < (bounds?.earliest ?? 1);
  if (uuid === undefined) return isOver ? "free" : "blocked";
  if (isOver) return "expired";
  return handedOff ? "handed-off" : "held";
}

/** Whether nobody else can take it. */
export const isTaken = ({ state }: LockView): boolean => state !== "expired" && state !== "free";

/** For how much longer it is taken, or how long ago that ended. */
export function leftOf({ leftMs }: Pick<LockView, "leftMs">): string {
  if (leftMs === undefined) return "-";
  return leftMs < 0 ? `${showDuration(-leftMs)} ago` : showDuration(leftMs);
}

/** By name, then kind, then owner, then age: how old the locks of two hosts are is only known within the bounds of their clocks. */
export function inOrder(views: readonly LockView[]): LockView[] {
  const by = ({ name, kind, owner, acquired }: LockView): string =>
    [name, kind, owner, acquired.toISOString()].join("\0");
  return views.toSorted((one, other) => (by(one) < by(other) ? -1 : by(one) > by(other) ? 1 : 0));
}

export interface Found {
  readonly locks: readonly LockView[];
  /** The places in the queues, and what each of them is for. */
  readonly waiters: readonly (Omit<WaiterInfo, "ticket"> & { readonly kind: LockInfo["kind"] })[];
}

/** Everything that is taken under a name: a mutex, permits of a semaphore, either side of a shared mutex. They may all be there. */
export async function findLocks({ locks, clock, keys }: OpenTable, name: string): Promise<Found> {
  const fair = keys.sort !== undefined;
  const kinds = fair ? (["mutex", "semaphore", "exclusive"] as const) : (["mutex"] as const);
  const looks = await Promise.all(kinds.map((kind) => lookAt(locks, { name, kind }, fair)));
  const bounds = clock.wall();
  const views = looks.flatMap(({ taken, queue }) => taken.map((lock) => viewOf(lock, bounds, sectionsIn(queue))));
  const waiters = looks.flatMap(({ kind, queue }) =>
    queue.map(({ ticket: _, ...waiter }) => ({ ...waiter, kind: waiter.side ?? kind })),
  );
  return { locks: inOrder(views), waiters };
}

/** How many queues are read at once. */
const AT_ONCE = 16;

/**
 * How many wait for each of these locks: those who wait for fair locks, because others have no rows. Each queue is read once.
 */
export async function countWaiters(locks: LockTable, listed: readonly LockInfo[]): Promise<Map<LockInfo, number>> {
  // Both sides of a shared mutex have one queue.
  const queueOf = ({ kind, name }: LockInfo): string => `${kind === "shared" ? "exclusive" : kind} ${name}`;
  const counts = new Map<string, number>();
  // The readers share one iterator: each takes the next queue from it.
  const queues = new Map(listed.map((lock) => [queueOf(lock), lock])).entries();
  const read = async (): Promise<void> => {
    for (const [queue, lock] of queues) counts.set(queue, sectionsIn((await lookAt(locks, lock, true)).queue));
  };
  await Promise.all(Array.from({ length: AT_ONCE }, read));
  return new Map(listed.map((lock) => [lock, counts.get(queueOf(lock)) ?? 0]));
}

type Address = Pick<LockInfo, "name" | "kind">;

/** What is locked there. How many permits there are does not matter to who holds one, or waits for one. */
export function lockableAt(locks: LockTable, { name, kind }: Address, fair?: boolean): Mutex | Semaphore | SharedMutex {
  if (kind === "mutex") return locks.mutex(name, { fair });
  return kind === "semaphore" ? locks.semaphore(name, { permits: 1, fair }) : locks.sharedMutex(name, { fair });
}

/** The holders of a lock of this kind, on either side, and the waiters in its queue. */
async function lookAt(locks: LockTable, address: Address, fair: boolean) {
  const { kind } = address;
  const state = await lockableAt(locks, address, fair).inspect();
  if (state === null) return { kind, taken: [], queue: [] };
  if ("holders" in state) return { kind, taken: state.holders, queue: state.waiters };
  const taken = "shared" in state ? [state.exclusive ?? [], state.shared].flat() : [state];
  return { kind, taken, queue: state.waiters };
}

const sectionsIn = (queue: readonly WaiterInfo[]): number => queue.reduce((sum, { sections }) => sum + sections, 0);
