import { setTimeout as sleep } from "node:timers/promises";
import { LockTable } from "../../../../lib/index.js";
import { hostConfig, report } from "../../../support/host-process.js";
import { KINDS, type Kind, LEASE, several } from "../kinds.js";

export interface HolderConfig {
  readonly tableName: string;
  readonly kind: Kind | "several permits";
  /** Default: often. */
  readonly renewEveryMs?: number;
}

const { tableName, kind, renewEveryMs = LEASE.renewEveryMs } = hostConfig<HolderConfig>();
const take = kind === "several permits" ? several : KINDS[kind][0];
await take(new LockTable({ tableName, owner: "holder", ...LEASE, renewEveryMs }));
report({ kind: "held" });
await sleep(2 ** 30);
