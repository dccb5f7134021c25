import { ask } from "./asking.js";
import type { Target } from "./grant.js";
import type { Host } from "./host.js";
import type { LockInfo } from "./lock-info.js";
import { infoOf, isTaken } from "./row.js";

/** Who has the lock, by one consistent read; null if nobody has. @throws the store's error. */
export async function inspect(host: Host, { name }: Target): Promise<LockInfo | null> {
  const row = await ask(host, (signal) => host.store.read(name, { consistent: true }, signal));
  return row === undefined || !isTaken(row, host.clock.wall()) ? null : infoOf(row);
}
