import { setTimeout as sleep } from "node:timers/promises";
import { LockTable, type MutexOptions } from "../../../lib/index.js";
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
  await fenced.run(async (lock) => {
    const message: TakerMessage = { kind: "held", token: String(lock.fencingToken), at: now() };
    report(message);
    await sleep(2);
  });
}

for (let turn = 0; turn < turns; turn += 2) {
  await Promise.all([take(), take()]);
  if (turn % 6 === 0) await plain.run(() => sleep(1));
}
