import { setTimeout as sleep } from "node:timers/promises";
import { LockTable, type MutexOptions } from "../../../lib/index.js";
import { hostConfig, report } from "../../support/host-process.js";

export interface SleeperConfig {
  readonly tableName: string;
  readonly mutex: MutexOptions;
  /** What its section does when it is suspended: calculates, or awaits. */
  readonly section: "busy" | "awaiting";
  /** A gap in time that means that it has been suspended. */
  readonly gapMs: number;
}

const { tableName, mutex, section, gapMs } = hostConfig<SleeperConfig>();
await using locks = new LockTable({ tableName, ...mutex });
const lock = await locks.mutex("job").lock();
// It may be suspended as soon as it has reported.
let last = performance.now();
report({ kind: "held", uuid: lock.uuid });
for (;;) {
  if (section === "awaiting") await sleep(10);
  const now = performance.now();
  if (now - last > gapMs) break;
  last = now;
}
// The first line after waking.
const { held } = lock;
report({ kind: "woke", held, aborted: lock.signal.aborted, remainingMs: lock.remainingMs });

const refusal = await lock.unlock().catch((error: unknown) => error);
report({
  kind: "unlocked",
  error: refusal instanceof Error ? refusal.name : refusal,
  reason: (refusal as { reason?: unknown } | undefined)?.reason,
  isSignalReason: refusal === lock.signal.reason,
});
