import type { LockInfo, WaiterInfo } from "../index.js";
import { inOrder, type LockView, viewOf } from "./lock-view.js";
import type { OpenTable } from "./open-table.js";

/** One place in a queue, as `inspect` shows it. */
export interface WaiterView extends Omit<WaiterInfo, "ticket"> {
  readonly kind: LockInfo["kind"];
}

export interface Found {
  readonly locks: readonly LockView[];
  readonly waiters: readonly WaiterView[];
}

/** Everything that is taken under a name: a mutex, permits of a semaphore, either side of a shared mutex. They may all be there. */
export async function findLocks({ locks, clock, hasSortKey: fair }: OpenTable, name: string): Promise<Found> {
  const mutex = await locks.mutex(name, { fair }).inspect();
  const found: { readonly lock: LockInfo; readonly waiting: number }[] = [];
  const waiters: WaiterView[] = [];
  const add = (taken: readonly LockInfo[], queue: readonly WaiterInfo[], kind: LockInfo["kind"]): void => {
    const waiting = queue.reduce((sum, { sections }) => sum + sections, 0);
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
