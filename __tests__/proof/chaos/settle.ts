import { setTimeout as sleep } from "node:timers/promises";
import type { LockTable } from "../../../lib/index.js";
import { PERMITS } from "./holding.js";
import type { LockGroup } from "./lock-groups.js";
import type { Slot } from "./slot.js";

/** How long a process may take to leave, and a lock that nobody holds to be had, once the faults have stopped. */
const SETTLED_WITHIN_MS = 45_000;

/** Asks all hosts to leave. @returns those that did not. */
export async function leave(slots: readonly Slot[]): Promise<string[]> {
  for (const { host } of slots) host.kill("SIGTERM");
  const overdue = sleep(SETTLED_WITHIN_MS, undefined, { ref: false });
  await Promise.race([overdue, Promise.all(slots.map(({ host }) => host.exit))]);
  const late = slots.filter(({ host }) => host.running);
  for (const { host } of late) host.kill("SIGKILL");
  return late.map(({ tag }) => `${tag} has not left within ${SETTLED_WITHIN_MS} ms`);
}

/** Whether what nobody holds can be had: sets as a whole, and all permits of a semaphore. @returns the locks that could not. */
export async function obtainAll(locks: LockTable, groups: readonly LockGroup[]): Promise<string[]> {
  const outcomes = await Promise.allSettled(
    groups.map(async ({ names, kind, mutex }) => {
      // A lease of its own, because requests have a share of it to be answered in; when it may take over, the row says.
      const options = { ...mutex, ttlMs: 30_000, waitMs: SETTLED_WITHIN_MS };
      const [name, ...others] = names;
      if (name === undefined) return;
      if (kind === "semaphore") {
        const semaphore = locks.semaphore(name, { ...options, permits: PERMITS });
        const permits = await Promise.all(Array.from({ length: PERMITS }, () => semaphore.lock()));
        await Promise.all(permits.map((permit) => permit.unlock()));
        return;
      }
      if (kind === "shared mutex") {
        const { shared, exclusive } = locks.sharedMutex(name, options);
        await (await exclusive.lock()).unlock();
        await (await shared.lock()).unlock();
        return;
      }
      const held = await (others.length > 0 ? locks.lockAll(names, options) : locks.mutex(name, options).lock());
      await held.unlock();
    }),
  );
  return outcomes.flatMap((outcome) => (outcome.status === "rejected" ? [`not to be had: ${outcome.reason}`] : []));
}

/** @returns the programs that ended by a mistake of their own, at whatever time. All of them must have ended. */
export async function crashes(slots: readonly Slot[]): Promise<string[]> {
  const crashed: string[] = [];
  for (const { tag, hosts } of slots) {
    for (const host of hosts) {
      const { code, signal } = await host.exit;
      // Signals are ours: SIGKILL, and SIGTERM where it came before the program could listen to it.
      if (code !== 0 && signal === null) crashed.push(`${tag} ended with ${code}: ${host.stderr}`);
    }
  }
  return crashed;
}
