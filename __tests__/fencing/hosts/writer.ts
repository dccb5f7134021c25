import { setTimeout as sleep } from "node:timers/promises";
import { LockTable, type MutexOptions } from "../../../lib/index.js";
import { hostConfig, report } from "../../support/host-process.js";
import type { Answer } from "../storage.js";

export interface WriterConfig {
  readonly tableName: string;
  readonly mutex: MutexOptions;
  readonly storage: string;
  readonly value: string;
}

/** A section that writes on and on, and never looks whether it still holds the lock. */
const { tableName, mutex, storage, value } = hostConfig<WriterConfig>();
const locks = new LockTable({ tableName, ...mutex });
const lock = await locks.mutex("job", { fencing: true }).lock();
report({ kind: "held", token: String(lock.fencingToken) });
for (let count = 1; ; count += 1) {
  const body = JSON.stringify({ token: String(lock.fencingToken), value });
  const answer = (await (await fetch(storage, { method: "POST", body })).json()) as Answer;
  report({ kind: "wrote", count, ...answer });
  await sleep(10);
}
