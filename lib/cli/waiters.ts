import type { LockInfo, LockTable, WaiterInfo } from "../index.js";

/** How many names are looked at at once. */
const AT_ONCE = 16;

/**
 * How many wait for each of these locks: those who wait for fair locks, because others have no rows. Each queue is read once.
 */
export async function countWaiters(locks: LockTable, listed: readonly LockInfo[]): Promise<Map<LockInfo, number>> {
  const queues = new Map<string, LockInfo[]>();
  for (const lock of listed) {
    const key = `${queueOf(lock)} ${lock.name}`;
    queues.set(key, [...(queues.get(key) ?? []), lock]);
  }
  const pending = [...queues.values()];
  const counts = new Map<LockInfo, number>();
  const countSome = async (): Promise<void> => {
    for (let same = pending.pop(); same?.[0] !== undefined; same = pending.pop()) {
      const waiters = await waitersFor(locks, same[0]);
      const sections = waiters.reduce((sum, waiter) => sum + waiter.sections, 0);
      for (const lock of same) counts.set(lock, sections);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, countSome));
  return counts;
}

/** Both sides of a shared mutex have one queue. */
const queueOf = ({ kind }: LockInfo): string => (kind === "shared" ? "exclusive" : kind);

async function waitersFor(locks: LockTable, { name, kind }: LockInfo): Promise<readonly WaiterInfo[]> {
  if (kind === "mutex") return (await locks.mutex(name, { fair: true }).inspect())?.waiters ?? [];
  // How many permits there are does not matter to who waits for one.
  if (kind === "semaphore") return (await locks.semaphore(name, { permits: 1, fair: true }).inspect()).waiters;
  return (await locks.sharedMutex(name, { fair: true }).inspect()).waiters;
}
