import { setTimeout as sleep } from "node:timers/promises";
import { findLockLost, LockTable, type MutexOptions } from "../../../lib/index.js";
import { hostConfig, report } from "../../support/host-process.js";
import { now } from "../../support/monotonic.js";

export interface TakerConfig {
  readonly tableName: string;
  readonly mutex: MutexOptions;
  /** How many fenced locks it takes, two of them at a time. */
  readonly turns: number;
}

/** A lock that was taken. */
export interface TakerMessage {
  readonly kind: "held";
  /** In digits. */
  readonly token: string;
  readonly at: number;
  readonly [other: string]: unknown;
}

const { tableName, mutex, turns } = hostConfig<TakerConfig>();
await using locks = new LockTable({ tableName });
const fenced = locks.mutex("job", { ...mutex, fencing: true });
const plain = locks.mutex("job", mutex);

async function take(): Promise<void> {
  const running = fenced.run(async (lock) => {
    const message: TakerMessage = { kind: "held", token: String(lock.fencingToken), at: now() };
    report(message);
    await sleep(2);
  });
  await running.catch(goOn);
}

/** On a busy machine a lease may end by itself in the middle of a section. Its token has been reported. */
function goOn(error: unknown): void {
  if (findLockLost(error) === undefined) throw error;
}

for (let turn = 0; turn < turns; turn += 2) {
  await Promise.all([take(), take()]);
  if (turn % 6 === 0) await plain.run(() => sleep(1)).catch(goOn);
}
