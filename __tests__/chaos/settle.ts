import { setTimeout as sleep } from "node:timers/promises";
import type { LockTable, MutexOptions } from "../../lib/index.js";
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

/** Whether what nobody holds can be had. @returns the locks that could not. */
export async function obtainAll(
  locks: LockTable,
  wanted: readonly { readonly name: string; readonly mutex: MutexOptions }[],
): Promise<string[]> {
  const outcomes = await Promise.allSettled(
    wanted.map(async ({ name, mutex }) => {
      // A lease of its own, because requests have a share of it to be answered in; when it may take over, the row says.
      const lock = await locks.mutex(name, { ...mutex, ttlMs: 30_000 }).lock({ waitMs: SETTLED_WITHIN_MS });
      await lock.unlock();
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
