import { subscribe } from "node:diagnostics_channel";
import { setTimeout as sleep } from "node:timers/promises";
import { type Diagnostics, LockTable } from "../../../../lib/index.js";
import { hostConfig, report } from "../../../support/host-process.js";
import { LEASE } from "../kinds.js";

export interface FlyerConfig {
  readonly tableName: string;
  /** How long its flight takes, if it has one. */
  readonly workMs: number;
}

const { tableName, workMs } = hostConfig<FlyerConfig>();
const writes: Record<string, number> = {};
subscribe("dynamutex:request", (message) => {
  const { operation, outcome } = message as Diagnostics["dynamutex:request"];
  if (outcome === "ok") writes[operation] = (writes[operation] ?? 0) + 1;
});

const locks = new LockTable({ tableName, ...LEASE });
const fly = async (): Promise<number> => {
  report({ kind: "flies" });
  await sleep(workMs);
  return process.pid;
};
const results = await Promise.all(
  Array.from({ length: 8 }, () => locks.mutex("report").singleFlight(fly, { freshMs: 60_000 })),
);
report({ kind: "results", results, writes });
await locks.close();
