import { monitorEventLoopDelay } from "node:perf_hooks";
import { setTimeout as sleep } from "node:timers/promises";
import { type Lock, LockTable } from "../../../../lib/index.js";
import { hostConfig, report } from "../../../support/host-process.js";

/** What a process keeps, and what it is asked for meanwhile. */
export interface KeeperConfig {
  readonly tableName: string;
  readonly ttlMs: number;
  readonly locks: number;
  /** How many of them are taken at once. */
  readonly takenAtOnce: number;
  /** How long all of them are kept. */
  readonly keepMs: number;
  /** So many calls at once for locks of so many names, each released as soon as it is taken. */
  readonly burst?: { readonly calls: number; readonly names: number } | undefined;
}

export interface KeeperReport {
  readonly kind: "kept";
  /** How many were handed out, and how many of those were lost. */
  readonly taken: number;
  readonly lost: number;
  /** How many calls of the burst had their lock. */
  readonly served: number;
  /** What calls were rejected with. */
  readonly failures: readonly string[];
  /** For whoever looks for the cause of a loss; no test depends on it. */
  readonly figures: {
    readonly takenMs: number;
    readonly burstMs: number;
    readonly longestLoopDelayMs: number;
    readonly cpuMs: number;
    readonly totalMs: number;
  };
}

const { tableName, ttlMs, locks, takenAtOnce, keepMs, burst } = hostConfig<KeeperConfig>();
const table = new LockTable({ tableName, ttlMs });
const failures: string[] = [];
const kept: Lock[] = [];
let lost = 0;

const loopDelay = monitorEventLoopDelay({ resolution: 5 });
loopDelay.enable();
const startedAt = performance.now();
await inTurn(locks, takenAtOnce, async (index) => {
  const lock = await table.mutex(`kept-${index}`).lock();
  kept.push(lock);
  lock.signal.addEventListener("abort", () => {
    lost += 1;
  });
});
const takenAt = performance.now();

let served = 0;
const { calls, names } = burst ?? { calls: 0, names: 1 };
await inTurn(calls, calls, async (index) => {
  const lock = await table.mutex(`burst-${index % names}`).lock();
  served += 1;
  await lock.unlock();
});
const burstAt = performance.now();

// The keeping is what keeps this process alive: alarms of leases do not.
await sleep(keepMs);
const endedAt = performance.now();
const { user, system } = process.cpuUsage();
const figures = {
  takenMs: Math.round(takenAt - startedAt),
  burstMs: Math.round(burstAt - takenAt),
  longestLoopDelayMs: Math.round(loopDelay.max / 1e6),
  cpuMs: Math.round((user + system) / 1_000),
  totalMs: Math.round(endedAt - startedAt),
};
report({ kind: "kept", taken: kept.length, lost, served, failures, figures } satisfies KeeperReport & { kind: string });
process.exit();

/** Runs `count` tasks, so many at once. What they throw is noted. */
async function inTurn(count: number, atOnce: number, task: (index: number) => Promise<void>): Promise<void> {
  let next = 0;
  const runner = async (): Promise<void> => {
    for (let index = next++; index < count; index = next++) {
      await task(index).catch((error: unknown) => failures.push(String(error)));
    }
  };
  await Promise.all(Array.from({ length: Math.min(count, atOnce) }, runner));
}
