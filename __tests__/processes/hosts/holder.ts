import { setTimeout as sleep } from "node:timers/promises";
import { LockTable, type MutexOptions } from "../../../lib/index.js";
import { hostConfig, report } from "../../support/host-process.js";
import { wrongClock } from "../../support/wrong-clock.js";

export interface HolderConfig {
  readonly tableName: string;
  readonly name: string;
  readonly mutex: MutexOptions;
  readonly clockWrongByMs: number;
}

const { tableName, name, mutex, clockWrongByMs } = hostConfig<HolderConfig>();
await using locks = new LockTable({ tableName, ...mutex, clock: wrongClock(clockWrongByMs) });
await using lock = await locks.mutex(name).lock();
lock.signal.addEventListener("abort", () => report({ kind: "lost", reason: String(lock.signal.reason) }));
report({ kind: "held", uuid: lock.uuid });
await sleep(2 ** 30);
