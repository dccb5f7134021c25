import type { LockState } from "../lock-info.js";
import { infoOf, isTaken } from "../protocol/row.js";
import { listWaiters } from "../queues/waiters.js";
import type { Host } from "../session/session.js";
import type { Target } from "../taking/grant.js";
import { ask } from "./admin-request.js";

/** Who has the lock, by one consistent read, and who waits in its queue; null if nobody has it. @throws the store's error. */
export async function inspect(host: Host, { name, settings }: Target): Promise<LockState | null> {
  const row = await ask(host, (signal) => host.store.read(name, { consistent: true }, signal));
  if (row === undefined || !isTaken(row, host.clock.wall())) return null;
  return { ...infoOf(row), waiters: settings.fair ? await listWaiters(host, name) : [] };
}
