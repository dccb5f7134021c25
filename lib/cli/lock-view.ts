import type { Bounds, LockInfo, LockTable, WaiterInfo } from "../index.js";
import type { OpenTable } from "./open-table.js";

/**
 * What a row says of its lock at this moment. `held`: somebody has it. `handed-off`: nobody has it, and whoever has the token
 * of the hand-off may go on with it. `expired`: its holder's lease is over, and anybody
 * may take it. `blocked`: nobody has it, and nobody may take it yet: parked by `--at-least`, or unlocked by force. `free`: its
 * row is kept for what it remembers. `bad`: its row is not one that this library writes, and nobody takes it.
 */
type LockViewState = "held" | "handed-off" | "expired" | "blocked" | "free" | "bad";

/** One lock as `ls` and `inspect` show it, and as `--json` prints it. */
export interface LockView {
  readonly name: string;
  readonly kind: LockInfo["kind"];
  readonly state: LockViewState;
  readonly uuid: string | undefined;
  readonly owner: string;
  readonly acquired: Date;
  readonly expires: Date;
  /** Until `expires`, by the table's clock; negative if that has passed; undefined for a free lock. */
  readonly leftMs: number | undefined;
  readonly ttlMs: number;
  readonly tick: number | undefined;
  readonly data: LockInfo["data"];
  /** How many wait in the queue of this name, for a lock of this kind; undefined where they were not counted. */
  readonly waiting: number | undefined;
  /** What is wrong with a bad row, and how to remove it. */
  readonly problem: string | undefined;
}

/** @param bounds the table's time; undefined if nothing is known of it. */
export function viewOf(lock: LockInfo, bounds: Bounds | undefined, waiting?: number): LockView {
  const { name, kind, uuid, owner, acquired, expires, ttlMs, data, tick, problem } = lock;
  const state = stateOf(lock, bounds);
  const now = bounds === undefined ? acquired.getTime() : (bounds.earliest + bounds.latest) / 2;
  const leftMs = state === "free" || state === "bad" ? undefined : Math.round(expires.getTime() - now);
  return { name, kind, state, uuid, owner, acquired, expires, leftMs, ttlMs, tick, data, waiting, problem };
}

function stateOf({ uuid, handedOff, expires, problem }: LockInfo, bounds: Bounds | undefined): LockViewState {
  if (problem !== undefined) return "bad";
  const isOver = expires.getTime() < (bounds?.earliest ?? 1);
  if (uuid === undefined) return isOver ? "free" : "blocked";
  if (isOver) return "expired";
  return handedOff ? "handed-off" : "held";
}

/** Whether nobody else can take it. */
export const isTaken = ({ state }: LockView): boolean => state !== "expired" && state !== "free";

/** By name, then kind, then owner, then age: how old the locks of two hosts are is only known within the bounds of their clocks. */
export function inOrder(views: readonly LockView[]): LockView[] {
  const by = ({ name, kind, owner, acquired }: LockView): string =>
    [name, kind, owner, acquired.toISOString()].join("\0");
  return views.toSorted((one, other) => (by(one) < by(other) ? -1 : by(one) > by(other) ? 1 : 0));
}

/** One place in a queue, as `inspect` shows it. */
export interface WaiterView extends Omit<WaiterInfo, "ticket"> {
  readonly kind: LockInfo["kind"];
}

export interface Found {
  readonly locks: readonly LockView[];
  readonly waiters: readonly WaiterView[];
}

/** Everything that is taken under a name: a mutex, permits of a semaphore, either side of a shared mutex. They may all be there. */
export async function findLocks({ locks, clock, names }: OpenTable, name: string): Promise<Found> {
  const fair = names.sort !== undefined;
  const mutex = await locks.mutex(name, { fair }).inspect();
  const found: { readonly lock: LockInfo; readonly waiting: number }[] = [];
  const waiters: WaiterView[] = [];
  const add = (taken: readonly LockInfo[], queue: readonly WaiterInfo[], kind: LockInfo["kind"]): void => {
    const waiting = sectionsIn(queue);
    found.push(...taken.map((lock) => ({ lock, waiting })));
    waiters.push(...queue.map(({ ticket: _, ...waiter }) => ({ ...waiter, kind: waiter.side ?? kind })));
  };
  if (mutex !== null) add([mutex], mutex.waiters, "mutex");
  if (fair) {
    // How many permits there are does not matter to who holds one.
    const [semaphore, shared] = await Promise.all([
      locks.semaphore(name, { permits: 1, fair }).inspect(),
      locks.sharedMutex(name, { fair }).inspect(),
    ]);
    add(semaphore.holders, semaphore.waiters, "semaphore");
    add([...(shared.exclusive === null ? [] : [shared.exclusive]), ...shared.shared], shared.waiters, "exclusive");
  }
  const bounds = clock.wall();
  return { locks: inOrder(found.map(({ lock, waiting }) => viewOf(lock, bounds, waiting))), waiters };
}

/** How many queues are read at once. */
const AT_ONCE = 16;

/**
 * How many wait for each of these locks: those who wait for fair locks, because others have no rows. Each queue is read once.
 */
export async function countWaiters(locks: LockTable, listed: readonly LockInfo[]): Promise<Map<LockInfo, number>> {
  // Both sides of a shared mutex have one queue.
  const queueOf = ({ kind, name }: LockInfo): string => `${kind === "shared" ? "exclusive" : kind} ${name}`;
  const queues = [...new Map(listed.map((lock) => [queueOf(lock), lock]))];
  const counts = new Map<string, number>();
  for (let first = 0; first < queues.length; first += AT_ONCE) {
    const some = queues.slice(first, first + AT_ONCE);
    await Promise.all(some.map(async ([queue, lock]) => counts.set(queue, sectionsIn(await waitersFor(locks, lock)))));
  }
  return new Map(listed.map((lock) => [lock, counts.get(queueOf(lock)) ?? 0]));
}

async function waitersFor(locks: LockTable, { name, kind }: LockInfo): Promise<readonly WaiterInfo[]> {
  if (kind === "mutex") return (await locks.mutex(name, { fair: true }).inspect())?.waiters ?? [];
  // How many permits there are does not matter to who waits for one.
  if (kind === "semaphore") return (await locks.semaphore(name, { permits: 1, fair: true }).inspect()).waiters;
  return (await locks.sharedMutex(name, { fair: true }).inspect()).waiters;
}

const sectionsIn = (queue: readonly WaiterInfo[]): number => queue.reduce((sum, { sections }) => sum + sections, 0);
